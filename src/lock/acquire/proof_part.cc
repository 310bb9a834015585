#include "lock/acquire/proof_part.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "protocol/lease.h"
#include "protocol/release_record.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using zookeeper::Error;
using zookeeper::GetReply;
using zookeeper::ListReply;
using zookeeper::Reply;
using zookeeper::Watch;

// Added to the time between pings, because clocks and servers round times.
constexpr Duration kRoundMargin = 1ms;

}  // namespace

void ProofPart::Confirm(const std::string& record_of) {
  const bool by_lease = !record_of.empty() && proof_.HasLeaseInHand();
  attempt_.Enter(*this);
  state_ =
      Confirming{.record_of = record_of, .proof = by_lease ? Proof::kLeaseInHand : Proof::kNone};
  if (!by_lease) {
    attempt_.contender.Check(attempt_.InState([this](const Reply& reply) {
      if (attempt_.ExistsOrFinish(reply)) std::get<Confirming>(state_).proof = Proof::kCommit;
    }));
  }
  // Sent with the heartbeat and answered after it, so the data is never older than what the
  // heartbeat saw. Without a heartbeat it may be older; then the record does not name the
  // predecessor.
  attempt_.store.Get(attempt_.request.QueuePath(), Watch::kNo,
                     attempt_.InState([this](const GetReply& reply) { OnConfirmed(reply); }));
}

void ProofPart::OnConfirmed(const GetReply& reply) {
  // If the heartbeat's reply was lost, OnDisconnected() follows.
  const Confirming confirming = std::get<Confirming>(state_);
  if (confirming.proof == Proof::kNone || IsLost(reply.error)) return;
  const auto record = attempt_.TakeLockData(reply);
  if (attempt_.IsOver()) return;  // we lack permission to read it
  const bool settled =
      confirming.record_of.empty() || (record && record->contender == confirming.record_of);
  // The number was read after our place in the turnstile was proven, so the next contender finds
  // our number.
  const auto permits = attempt_.request.permits;
  const bool agreed = !permits || attempt_.permit_number.written() == permits;
  if (!settled || !agreed) return attempt_.next.ListAgain();
  if (confirming.proof == Proof::kLeaseInHand) {
    return proof_.HasLeaseInHand() ? TakeTurn() : Confirm("");
  }
  attempt_.request.supersede ? CheckForNewer() : TakeTurn();
}

/// Once the session is proven, this is the last chance to leave in favour of a newer contender: any
/// contender in this list joined before our command began.
void ProofPart::CheckForNewer() {
  const std::string path = attempt_.request.QueuePath();
  attempt_.store.List(path, Watch::kNo, attempt_.InState([this](const ListReply& reply) {
    if (reply.error == Error::kNoNode) return attempt_.next.CheckOwn();
    if (reply.error != Error::kNone) return attempt_.OnUnexpected("list", reply.error);
    if (!attempt_.FinishIfSuperseded(reply.children)) TakeTurn();
  }));
}

void ProofPart::TakeTurn() {
  const protocol::Lease& lease = attempt_.store.lease();
  const TimePoint now = attempt_.clock.Now();
  if (lease.SufficesToStart(now)) return attempt_.Finish(Acquired{*attempt_.contender.ticket()});
  const auto* const round = std::get_if<Confirming>(&state_);
  const bool is_round = round != nullptr && round->round_began != kNever;
  const Duration took = is_round ? now - round->round_began : Duration::zero();
  // If the next round is like this one, its answers will take this long: the one before the pause,
  // and those after it.
  const Duration answers = is_round ? now - *lease.newest_sent() + took : Duration::zero();
  if (answers + kRoundMargin >= lease.AnswerBudget() || (is_round && attempt_.request.try_only)) {
    return attempt_.Finish(TooSlow{.timeout = lease.timeout(),
                                   .answer = is_round ? std::max(took, lease.commits_take()) : took,
                                   .ping_span = lease.PingSpan(),
                                   .longer = lease.SufficientTimeout(answers + kRoundMargin)});
  }
  // The session is alive, but not proven for long enough to start anything, for example because
  // this process was suspended. Get one request answered, allow for a ping between follower and
  // leader, then confirm once more.
  if (!std::exchange(attempt_.is_first, true)) {
    attempt_.publish(FirstEvent{attempt_.request.lock.display_path()});
  }
  attempt_.Enter(*this);
  state_ = AwaitingLease{.confirm_at = now + lease.PingSpan() + kRoundMargin};
  attempt_.answer_deadline = kNever;
  proof_.Prove();
}

TimePoint ProofPart::due() const {
  const auto* const lease = std::get_if<AwaitingLease>(&state_);
  return lease == nullptr ? kNever : lease->confirm_at;
}

void ProofPart::ConfirmAgain() {
  Confirm("");
  std::get<Confirming>(state_).round_began = attempt_.clock.Now();
}

}  // namespace zklock::lock
