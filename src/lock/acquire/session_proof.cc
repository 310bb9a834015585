#include "lock/acquire/session_proof.h"

#include <utility>
#include <vector>

#include "lock/data/contender_check.h"
#include "protocol/lease.h"

namespace zklock::lock {

using zookeeper::Error;
using zookeeper::GetReply;
using zookeeper::Reply;
using zookeeper::Watch;

namespace {

/// About once per session timeout: only a contender whose owner takes away READ and then leaves is
/// found in this way, and each look doubles the requests of a proof.
constexpr unsigned kAnswersPerLook = 4;

}  // namespace

void SessionProof::WatchOwn() {
  watches_ = CallbackScope();
  unwatched_ = 0;
  for (const ContenderId& one : attempt_.contender.All()) WatchOne(one);
}

void SessionProof::OnOwnChanged(const std::string& path) {
  if (!HasBegunToWatch()) return WatchOwn();
  for (const ContenderId& one : attempt_.contender.All()) {
    if (one.path == path) WatchOne(one);
  }
}

void SessionProof::WatchOne(const ContenderId& one) {
  ++*unwatched_;
  attempt_.store.Get(one.path, Watch::kYes, watches_.Wrap([this, one](const GetReply& reply) {
    if (attempt_.IsOver()) return;
    if (IsGone(one, reply)) return attempt_.FinishBusy(Busy::Why::kRemoved);
    if (reply.error != Error::kNone) return;
    --*unwatched_;
    attempt_.publish(OwnDataEvent{one.path, reply.data});
  }));
}

bool SessionProof::HasLeaseInHand() const {
  return !attempt_.request.permits && unwatched_ == std::size_t{0} &&
         attempt_.store.lease().IsInHand(attempt_.clock.Now());
}

void SessionProof::Schedule() {
  if (attempt_.is_proving || due_ != kNever) return;
  due_ = attempt_.clock.Now() + attempt_.store.lease().PingSpan();
}

void SessionProof::Prove() {
  due_ = kNever;
  if (attempt_.is_proving || !HasPlace()) return;
  attempt_.is_proving = true;
  attempt_.ExpectAnswer();
  attempt_.next.ahead().IsNextInLine() ? SendHeartbeat() : ReadLock();
}

bool SessionProof::HasPlace() const {
  return attempt_.contender.ticket() || (attempt_.request.is_simple() && attempt_.has_queued);
}

void SessionProof::SendHeartbeat() {
  attempt_.contender.Check(scope_.Wrap([this](const Reply& reply) {
    OnProof(reply.error);
    if (!attempt_.IsOver()) attempt_.ExistsOrFinish(reply);
  }));
}

void SessionProof::ReadLock() {
  const std::string path = attempt_.request.QueuePath();
  attempt_.store.Get(path, Watch::kNo, scope_.Wrap([this](const GetReply& reply) {
    OnProof(reply.error);
    if (!attempt_.IsOver()) attempt_.next.OnLockData(reply);
  }));
}

void SessionProof::OnProof(Error error) {
  attempt_.is_proving = false;
  if (attempt_.IsOver() || IsLost(error)) return;
  Schedule();
  if (!attempt_.IsWaiting()) return;
  attempt_.OnAnswer();
  if (++answers_ % kAnswersPerLook == 0) attempt_.next.CheckPredecessor();
}

void SessionProof::Forget() {
  unwatched_.reset();
  watches_ = CallbackScope();
  attempt_.is_proving = false;
  due_ = kNever;
}

}  // namespace zklock::lock
