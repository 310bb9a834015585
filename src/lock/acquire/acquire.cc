#include "lock/acquire/acquire.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "lock/data/contender_check.h"
#include "protocol/lease.h"
#include "protocol/lock_path.h"

// Connection, time, our own contender, and the end. The way in is in acquire_join.cc; the decision,
// the wait and the turn are in acquire_wait.cc; reservations are in acquire_reservations.cc.

namespace zklock::lock {

using namespace std::chrono_literals;
using zookeeper::Error;
using zookeeper::GetReply;
using zookeeper::Reply;
using zookeeper::Watch;

Acquire::Acquire(zookeeper::Store& store, const Clock& clock, AcquireRequest request,
                 std::function<std::string()> make_uuid, AcquireObserver& observer)
    : store_(store),
      clock_(clock),
      request_(std::move(request)),
      observer_(observer),
      contender_(store_, clock_, request_, std::move(make_uuid)),
      compatibility_(store_, request_, observer_),
      reservations_(store_, request_),
      creation_(store_, request_),
      permit_number_(store_, request_),
      unserved_since_(clock.Now()) {
  store_.SetListener(this);
  if (store_.IsConnected()) OnConnected(true);
}

Acquire::~Acquire() { store_.SetListener(nullptr); }

const AcquireOutcome* Acquire::outcome() const {
  const auto* done = std::get_if<Done>(&state_);
  return done == nullptr ? nullptr : &done->outcome;
}

bool Acquire::IsNearTurn() const {
  if (IsOver()) return std::holds_alternative<Acquired>(*outcome());
  // The create proves the session, but not what is held in other LOCKs.
  if (std::holds_alternative<Joining>(state_)) {
    return contender_.may_exist() && request_.held.empty();
  }
  // It starts its command when the last contender before it is gone, without another commit.
  if (std::holds_alternative<Waiting>(state_) || std::holds_alternative<Deciding>(state_)) {
    return !request_.try_only && (predecessor_.ahead.IsNextInLine() || predecessor_.ahead.IsNear());
  }
  return std::holds_alternative<Confirming>(state_) ||
         std::holds_alternative<AwaitingLease>(state_);
}

bool Acquire::IsFarFromTurn() const {
  return std::holds_alternative<Waiting>(state_) && !IsNearTurn() &&
         (!contender_.may_exist() || predecessor_.ahead.IsFar());
}

// ---- connection and time ---------------------------------------------------------------------

void Acquire::OnConnected(bool fresh) {
  if (IsOver()) return;
  observer_.OnConnected();
  if (store_.lease().timeout() < protocol::kLeastSessionTimeout) {
    return Finish(Unusable{Unusable::Why::kShortSessions});
  }
  fresh ? Begin() : Rejoin();
}

void Acquire::OnDisconnected() {
  if (IsOver()) return;
  if (!unserved_since_) unserved_since_ = clock_.Now();
  connection_ = {};
  permit_number_.Forget();
  Enter<Disconnected>();
}

void Acquire::OnExpired() {
  if (IsOver()) return;
  if (!unserved_since_) unserved_since_ = clock_.Now();
  if (contender_.ticket()) observer_.OnPlaceLost(request_.lock);
  contender_.OnExpired();
  place_ = {};
  Enter<Disconnected>();
  store_.Renew();
}

void Acquire::OnRefused(Error why) {
  if (!IsOver()) OnUnexpected("queue in", why, "");
}

void Acquire::OnWatch(const std::string& path, zookeeper::Change change) {
  if (IsOver()) return;
  if (contender_.IsOneOfAll(path)) {
    WatchOwn();  // deleted, or only written to: the read tells, and renews the watch
  } else if (std::holds_alternative<Waiting>(state_)) {
    if (request_.is_for_turnstile() && path == request_.ReservationsPath()) return ListPermits();
    if (path != ChildPath(predecessor_.name)) return request_.is_simple() ? Join() : ListAgain();
    change == zookeeper::Change::kDeleted ? OnPredecessorGone() : ReadPredecessor();
  }
}

EventSource::Interest Acquire::GetInterest() {
  if (IsOver()) return {};
  const auto* lease = std::get_if<AwaitingLease>(&state_);
  const auto* const waiting = std::get_if<Waiting>(&state_);
  const Reserving* const expiry = NextExpiry();
  return {.wake = std::min({UnreachableAt(), WaitEnd(), answer_deadline_, connection_.next_proof,
                            lease == nullptr ? kNever : lease->confirm_at,
                            waiting == nullptr ? kNever : waiting->list_at,
                            expiry == nullptr ? kNever : expiry->due})};
}

void Acquire::OnReady(short /*revents*/) {
  const TimePoint now = clock_.Now();
  if (IsOver()) return;
  const auto* lease = std::get_if<AwaitingLease>(&state_);
  if (now >= WaitEnd()) {
    FinishBlocked(Busy::Why::kWaitOver);
  } else if (now >= UnreachableAt()) {
    Finish(Unreachable{});
  } else if (now >= answer_deadline_) {
    answer_deadline_ = kNever;
    store_.GiveUpServer();
  } else if (lease != nullptr && now >= lease->confirm_at) {
    Confirm(Turn::kShownByList);
    std::get<Confirming>(state_).round_began = now;
  } else if (Reserving* const expiry = NextExpiry(); expiry != nullptr && now >= expiry->due) {
    OnExpiryDue(*expiry);
  } else if (const auto* waiting = std::get_if<Waiting>(&state_);
             waiting != nullptr && now >= waiting->list_at) {
    LookForReservations();
  } else if (now >= connection_.next_proof) {
    KeepProving();
  }
}

TimePoint Acquire::UnreachableAt() const {
  if (!unserved_since_) return kNever;
  const TimePoint usual = After(*unserved_since_, request_.connect_timeout);
  if (!has_queued_) return usual;
  // A contender that has been in the queue has a place to lose: stay as long as the session and the
  // wait can last.
  const TimePoint session_end = After(*unserved_since_, store_.lease().timeout());
  return std::max(usual, std::min(session_end, wait_deadline_));
}

/// `wait` limits the wait for other contenders: only while the last answer has shown one before our
/// contender, and none that is or may be an overdue reservation. In all other states an answer is
/// under way that may show that the lock is free, or there is no server to ask: UnreachableAt() and
/// answer_deadline_ limit those.
TimePoint Acquire::WaitEnd() const {
  const auto* const waiting = std::get_if<Waiting>(&state_);
  if (waiting == nullptr || connection_.expiry || waiting->lookup.unread > 0) return kNever;
  const auto& reserving = waiting->lookup.reserving;
  const TimePoint latest = std::max(wait_deadline_, clock_.Now());
  const bool has_due = std::any_of(reserving.begin(), reserving.end(),
                                   [&](const auto& one) { return one.due <= latest; });
  return has_due ? kNever : wait_deadline_;
}

Duration Acquire::AnswerTime() const {
  return std::max<Duration>(2s, store_.lease().timeout() / 3);
}

bool Acquire::HasPlace() const {
  return contender_.ticket() || (request_.is_simple() && has_queued_);
}

// ---- our own contender and the lease --------------------------------------------------------

void Acquire::WatchOwn() {
  const std::vector<ContenderId> all = contender_.All();
  connection_.watches = CallbackScope();
  connection_.unwatched = all.size();
  for (const ContenderId& one : all) {
    store_.Get(one.path, Watch::kYes, connection_.watches.Wrap([this, one](const GetReply& reply) {
      if (IsOver()) return;
      if (IsGone(one, reply)) return FinishBusy(Busy::Why::kRemoved);
      if (reply.error != Error::kNone) return;
      --*connection_.unwatched;
      observer_.OnOwnData(reply.data);
    }));
  }
}

/// Our contenders exist without a commit to prove it: the servers cannot have ended the session,
/// and if one of them had been deleted by force before what the server has just shown us, its watch
/// would have fired before. Permits need a commit for their number (OnConfirmed).
bool Acquire::HasLeaseInHand() const {
  return !request_.permits && connection_.unwatched == std::size_t{0} &&
         store_.lease().IsInHand(clock_.Now());
}

void Acquire::ScheduleProof() {
  if (connection_.proof_pending || connection_.next_proof != kNever) return;
  connection_.next_proof = clock_.Now() + store_.lease().PingSpan();
}

/// While we wait: shows whether the server still answers, and keeps the lease ready. The next in
/// line sends a heartbeat, so that it has a lease in hand at its turn. For all others the answer to
/// a small read will do, from which the next commit makes a lease; they read LOCK's data, and so
/// learn when they are next.
void Acquire::KeepProving() {
  connection_.next_proof = kNever;
  if (connection_.proof_pending || !HasPlace()) return;
  connection_.proof_pending = true;
  answer_deadline_ = std::min(answer_deadline_, clock_.Now() + AnswerTime());
  predecessor_.ahead.IsNextInLine() ? SendHeartbeat() : ReadLock();
}

void Acquire::SendHeartbeat() {
  contender_.Check(scope_.Wrap([this](const Reply& reply) {
    OnProof(reply.error);
    if (IsOver() || reply.error == Error::kNone) return;
    if (reply.error == Error::kNoNode) return FinishBusy(Busy::Why::kRemoved);
    OnUnexpected("check our own contender in", reply.error, "READ", contender_.ticket()->path);
  }));
}

void Acquire::ReadLock() {
  store_.Get(request_.QueuePath(), Watch::kNo, scope_.Wrap([this](const GetReply& reply) {
    OnProof(reply.error);
    if (!std::holds_alternative<Waiting>(state_) || !contender_.ticket()) return;
    if (reply.error == Error::kNoNode) return CheckOwn();  // deleted, and our contender before it
    if (reply.error != Error::kNone || request_.permits) return;
    if (const auto record = TakeLockData(reply)) predecessor_.ahead.Take(*record);
    if (predecessor_.ahead.IsNextInLine() && !HasLeaseInHand()) KeepProving();
  }));
}

void Acquire::OnProof(Error error) {
  connection_.proof_pending = false;
  if (IsOver() || IsLost(error)) return;
  ScheduleProof();
  if (std::holds_alternative<Waiting>(state_) || std::holds_alternative<AwaitingLease>(state_)) {
    answer_deadline_ = kNever;
  }
}

void Acquire::CheckOwn() {
  Enter<Deciding>();
  contender_.Check(InState([this](const Reply& reply) {
    if (reply.error == Error::kNone) return ListAgain();
    if (reply.error == Error::kNoNode) return FinishBusy(Busy::Why::kRemoved);
    OnUnexpected("check our own contender in", reply.error, "READ", contender_.ticket()->path);
  }));
}

// ---- the end ---------------------------------------------------------------------------------

void Acquire::Finish(AcquireOutcome outcome) { Enter(Done{std::move(outcome)}); }

void Acquire::FinishBusy(Busy::Why why) { Finish(Busy{why, "", ""}); }

void Acquire::FinishBlocked(Busy::Why why) {
  Finish(
      Busy{why, predecessor_.name, predecessor_.data, predecessor_.reserved, predecessor_.holds});
}

void Acquire::IfCompatible(const protocol::Children& children,
                           std::function<void(const QueueList&)> then) {
  const protocol::Contenders contenders(children);
  compatibility_.Check(
      {children, contenders}, contender_.name(),
      InState([this, then = std::move(then)](const Compatibility& found, const QueueList& list) {
        if (AcceptOrFinish(found)) then(list);
      }));
}

/// Whether every user of LOCK can see our contender; if not, finishes.
bool Acquire::AcceptOrFinish(const Compatibility& found) {
  if (const auto* unusable = std::get_if<Unusable>(&found)) Finish(*unusable);
  if (const auto* failed = std::get_if<CheckFailed>(&found)) {
    OnUnexpected(failed->operation, failed->error, "READ", failed->path);
  }
  return std::holds_alternative<Compatible>(found);
}

void Acquire::FinishQuota() {
  Enter<Deciding>();
  FindQuota(store_, request_, InState([this](const std::string& limited) {
              const LockName& lock = request_.lock;
              Finish(QuotaExceeded{lock.display_path(), lock.DisplayPath(limited)});
            }));
}

/// For an error that no branch expects; after a lost reply OnDisconnected() follows. `right` on
/// `path`, LOCK if empty, is what an ACL has to grant.
void Acquire::OnUnexpected(const std::string& operation, Error error, const char* right,
                           const std::string& path) {
  if (IsLost(error)) return;
  if (error == Error::kQuotaExceeded) return FinishQuota();
  const LockName& lock = request_.lock;
  if (IsRefusal(error)) {
    return Finish(Refused{operation, lock.display_path(), error, right,
                          lock.DisplayPath(path.empty() ? lock.path : path)});
  }
  Finish(Defect{Defect::What::kAnswer, lock.display_path(), operation, error});
}

std::string Acquire::ChildPath(std::string_view child) const {
  return protocol::ChildPath(request_.QueuePath(), child);
}

}  // namespace zklock::lock
