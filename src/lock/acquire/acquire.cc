#include "lock/acquire/acquire.h"

#include <algorithm>
#include <utility>

#include "lock/acquire/queue_wait_part.h"
#include "lock/acquire/znode_wait_part.h"
#include "protocol/lease.h"

namespace zklock::lock {
namespace {

std::unique_ptr<WaitPart> MakeWait(Attempt& attempt, SessionProof& proof) {
  if (attempt.request.is_simple()) return std::make_unique<ZnodeWaitPart>(attempt, proof);
  return std::make_unique<QueueWaitPart>(attempt, proof);
}

}  // namespace

Acquire::Acquire(zookeeper::Store& store, const Clock& clock, AcquireRequest request,
                 std::function<std::string()> make_uuid, AcquireEventSink publish)
    : attempt_(store, clock, std::move(request), std::move(make_uuid), std::move(publish), *this),
      proof_(attempt_),
      join_(attempt_),
      decide_(attempt_, proof_),
      wait_(MakeWait(attempt_, proof_)),
      prove_(attempt_, proof_) {
  store.SetListener(this);
  if (store.IsConnected()) OnConnected(true);
}

Acquire::~Acquire() { attempt_.store.SetListener(nullptr); }

const AcquireOutcome* Acquire::outcome() const {
  return attempt_.outcome ? &*attempt_.outcome : nullptr;
}

bool Acquire::IsNearTurn() const {
  if (attempt_.IsOver()) return std::holds_alternative<Acquired>(*attempt_.outcome);
  // The create proves the session, but not that other LOCKs are still held.
  if (join_.IsCreating()) return attempt_.request.held.empty();
  // A waiter starts its command as soon as the last contender before it is gone, without another
  // commit.
  if (wait_->IsWaiting() || attempt_.IsAtWork(decide_)) {
    return ahead().IsNextInLine() || ahead().IsNear();
  }
  return attempt_.IsAtWork(prove_);
}

bool Acquire::IsFarFromTurn() const {
  return wait_->IsWaiting() && !IsNearTurn() &&
         (!attempt_.contender.may_exist() || ahead().IsFar());
}

bool Acquire::HasDecided() const {
  return attempt_.IsOver() || (attempt_.has_decided && (attempt_.may_hold || wait_->HasSearched()));
}

bool Acquire::HasRivalFor(const std::string& lock) const {
  const auto& rivals = attempt_.rivals;
  return !attempt_.IsOver() && std::find(rivals.begin(), rivals.end(), lock) != rivals.end();
}

const Ticket* Acquire::contender() const {
  const std::optional<Ticket>& ticket = attempt_.contender.ticket();
  return ticket ? &*ticket : nullptr;
}

void Acquire::OnConnected(bool fresh) {
  if (attempt_.IsOver()) return;
  if (!attempt_.request.given) attempt_.publish(SessionAcceptedEvent{});  // else AcquireAny does
  if (attempt_.store.lease().timeout() < protocol::kLeastSessionTimeout) {
    return attempt_.Finish(Unusable{Unusable::Why::kShortSessions});
  }
  fresh ? join_.Begin() : join_.Rejoin();
  // A contender that is being proven again does not wait, but can be asked to leave.
  const auto& given = attempt_.request.given;
  if (given && given->known && attempt_.contender.ticket()) proof_.WatchOwn();
}

void Acquire::OnDisconnected() {
  if (attempt_.IsOver()) return;
  if (!attempt_.unserved_since) attempt_.unserved_since = attempt_.clock.Now();
  proof_.Forget();
  wait_->OnDisconnected();
  attempt_.permit_number.Forget();
  attempt_.Stop();
}

void Acquire::OnExpired() {
  // Expiry requires another connection, and thus another turn of the event loop: by then, the
  // caller has taken any outcome.
  if (attempt_.IsOver()) return;
  if (!attempt_.unserved_since) attempt_.unserved_since = attempt_.clock.Now();
  if (attempt_.contender.ticket()) {
    attempt_.publish(PlaceLostEvent{attempt_.request.lock.display_path()});
  }
  attempt_.contender.OnExpired();
  attempt_.is_first = attempt_.may_hold = false;
  wait_->OnPlaceLost();
  attempt_.Stop();
  attempt_.store.Renew();
}

void Acquire::OnRefused(zookeeper::Error why) {
  if (!attempt_.IsOver()) attempt_.OnUnexpected("queue in", why, "");
}

void Acquire::OnWatch(const std::string& path, zookeeper::Change change) {
  if (attempt_.IsOver()) return;
  if (attempt_.contender.IsOneOfAll(path)) {
    proof_.OnOwnChanged(path);  // deleted or written to: the read tells which, and renews the watch
  } else if (wait_->IsWaiting()) {
    wait_->OnWatch(path, change);
  }
}

EventSource::Interest Acquire::GetInterest() {
  if (attempt_.IsOver()) return {};
  return {.wake = std::min({UnreachableAt(), wait_->end(), attempt_.answer_deadline, proof_.due(),
                            prove_.due(), wait_->due()})};
}

void Acquire::OnReady(short /*revents*/) {
  if (attempt_.IsOver()) return;
  const TimePoint now = attempt_.clock.Now();
  if (now >= wait_->end()) {
    wait_->FinishBlocked(Busy::Why::kWaitOver);
  } else if (now >= UnreachableAt()) {
    attempt_.Finish(Unreachable{});
  } else if (now >= attempt_.answer_deadline) {
    attempt_.answer_deadline = kNever;
    attempt_.store.GiveUpServer();
  } else if (now >= prove_.due()) {
    prove_.ConfirmAgain();
  } else if (now >= wait_->due()) {
    wait_->OnDue();
  } else if (now >= proof_.due()) {
    proof_.Prove();
  }
}

TimePoint Acquire::UnreachableAt() const {
  if (!attempt_.unserved_since) return kNever;
  const TimePoint since = *attempt_.unserved_since;
  const TimePoint usual = After(since, attempt_.request.connect_timeout);
  if (!attempt_.has_queued) return usual;
  // A contender that has been in the queue has a place to lose: stay as long as the session and the
  // wait can last.
  const TimePoint session_end = After(since, attempt_.store.lease().timeout());
  return std::max(usual, std::min(session_end, attempt_.wait_deadline));
}

}  // namespace zklock::lock
