#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "lock/acquire/compatibility_check.h"
#include "lock/acquire/own_contender.h"
#include "lock/acquire/permit_number.h"
#include "lock/ahead/reservation_search.h"
#include "lock/data/acquire_request.h"
#include "lock/data/callback_scope.h"
#include "lock/data/event.h"
#include "lock/data/outcome.h"
#include "protocol/children.h"
#include "protocol/queue.h"
#include "protocol/queue_ahead.h"
#include "protocol/release_record.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// The proof that our contender still exists once all contenders before it are gone.
enum class Proof {
  kNone,         ///< nothing yet
  kCommit,       ///< the create that was sent together with a list, or a heartbeat
  kLeaseInHand,  ///< see SessionProof::HasLeaseInHand()
};

/// A part of an acquisition. At most one part is active, in a state of its own.
class AcquirePart {
 public:
  virtual ~AcquirePart() = default;
  /// Ends the current state. Called at every change of state, even within the same part: set the
  /// new state after Attempt::Enter().
  virtual void Leave() {}
  /// Returns whether the part waits for other contenders or for time to pass, rather than for an
  /// answer.
  [[nodiscard]] virtual bool IsWaiting() const { return false; }
};

/// The part that waits for other contenders: QueueWaitPart, or ZnodeWaitPart in Dialect::kSimple.
class WaitPart : public AcquirePart {
 public:
  // As in AcquireSteps.
  virtual void LookIfFree() = 0;
  virtual void WaitFor(const std::string& predecessor, const QueueList& list, bool is_rival) = 0;
  virtual void OnLockData(const zookeeper::GetReply& reply) = 0;
  virtual void CheckPredecessor() = 0;
  [[nodiscard]] virtual const protocol::QueueAhead& ahead() const = 0;
  /// Returns whether the search for a contender that holds on our behalf is over or unnecessary.
  [[nodiscard]] virtual bool HasSearched() const { return true; }

  /// Handles a watch event that is not for our own contender. Called only while IsWaiting().
  virtual void OnWatch(const std::string& path, zookeeper::Change change) = 0;
  /// Finishes the acquisition because of the contender in the way.
  virtual void FinishBlocked(Busy::Why why) = 0;
  /// Returns when the wait ends; kNever while it is unknown whether the lock is free.
  [[nodiscard]] virtual TimePoint end() const = 0;
  /// Returns when OnDue() is to be called.
  [[nodiscard]] virtual TimePoint due() const { return kNever; }
  virtual void OnDue() {}
  virtual void OnDisconnected() {}
  /// Called when the session has expired and our place in the queue is lost.
  virtual void OnPlaceLost() {}
};

/// The next steps of an acquisition when one of its parts is done. Each function begins another
/// state unless its comment says otherwise, so callers simply return after the call.
class AcquireSteps {
 public:
  virtual ~AcquireSteps() = default;
  /// Creates our contender and lists the queue with it.
  virtual void Join() = 0;
  /// Adopts the children `names` as our contender if they belong to our session, otherwise joins.
  /// `reply`: the answer to the read of the first.
  virtual void AdoptOrJoin(const std::vector<std::string>& names,
                           const zookeeper::GetReply& reply) = 0;
  /// For a `try` that has created nothing yet: joins if the lock is free, otherwise leaves.
  virtual void LookIfFree() = 0;
  /// Lists the queue and decides.
  virtual void ListAgain() = 0;
  /// Calls ListAgain() if our contender exists; otherwise the acquisition is over.
  virtual void CheckOwn() = 0;
  /// Requests a list now and decides when it arrives, in the caller's state. `proof`: the proof,
  /// once the list arrives, that our contender exists.
  virtual void DecideByNextList(Proof proof) = 0;
  /// Decides based on `children`, a list that the caller already has, in the caller's state.
  virtual void Decide(const protocol::Children& children) = 0;
  /// Waits for the deletion of `predecessor`, a child in `list`. `is_rival`: it does not exclude
  /// our contender, but has our ID (--reserve).
  virtual void WaitFor(const std::string& predecessor, const QueueList& list, bool is_rival) = 0;
  /// Proves that our contender exists, then takes the lock. `record_of`: the predecessor whose
  /// record must be in LOCK's data; empty if all contenders ahead of us are certainly gone.
  virtual void Confirm(const std::string& record_of) = 0;
  /// Takes the lock as soon as the lease is long enough. Called when our contender is first and
  /// proven.
  virtual void TakeTurn() = 0;
  /// Takes the answer to a read of LOCK's data while we wait. Does not always begin another state.
  virtual void OnLockData(const zookeeper::GetReply& reply) = 0;
  /// Asks whether the contender that we wait for still exists: since the fix for CVE-2024-23944, a
  /// server does not report its deletion to a client that has lost permission to read it.
  virtual void CheckPredecessor() = 0;
  /// Returns what the waiter knows about the contenders ahead of its own.
  [[nodiscard]] virtual const protocol::QueueAhead& ahead() const = 0;
};

/// Returns how long a server that has accepted the session may take to answer.
[[nodiscard]] Duration AnswerTime(const protocol::Lease& lease);

/// Returns the outcome after an unhandled error: the failure that FailureOf() returns.
[[nodiscard]] AcquireOutcome UnexpectedEnd(zookeeper::Error error, const std::string& operation,
                                           const LockName& lock, const char* right,
                                           const std::string& path = "");

/// The state that the parts of an acquisition share.
class Attempt {
 public:
  Attempt(zookeeper::Store& its_store, const Clock& its_clock, AcquireRequest its_request,
          std::function<std::string()> make_uuid, AcquireEventSink its_publish,
          AcquireSteps& its_next);

  /// Begins a state of `part`. Ends the previous state and drops the answers that it still awaited.
  /// The server has AnswerTime() to answer the requests of the new state.
  void Enter(AcquirePart& part);
  /// Ends the current state: no part is active.
  void Stop();
  [[nodiscard]] bool IsAtWork(const AcquirePart& part) const { return at_work_ == &part; }
  /// Returns whether the active part waits, but not for an answer.
  [[nodiscard]] bool IsWaiting() const { return at_work_ != nullptr && at_work_->IsWaiting(); }
  /// Wraps `f` in a callback that runs only within the current state.
  template <typename F>
  auto InState(F f) const {
    return state_scope_.Wrap(std::move(f));
  }

  /// Sets a deadline, after AnswerTime(), for giving up on the server, unless an earlier one is
  /// set. Call this when an answer is awaited.
  void ExpectAnswer();
  /// Gives the server AnswerTime() again if more answers are awaited, otherwise clears the
  /// deadline. Call this when an awaited answer arrives while we wait.
  void OnAnswer();
  /// Returns whether an awaited answer may show that the contender in the way is gone.
  [[nodiscard]] bool AwaitsAnswer() const { return unanswered > 0 || is_proving; }

  [[nodiscard]] bool IsOver() const { return outcome.has_value(); }
  void Finish(AcquireOutcome its_outcome);
  void FinishBusy(Busy::Why why) { Finish(Busy{why, "", ""}); }
  void FinishQuota();
  /// Finishes with the outcome of UnexpectedEnd() or FinishQuota(). Ignores a lost reply:
  /// OnDisconnected() follows. `path`: the znode on which `right` may be missing; the queue if
  /// empty.
  void OnUnexpected(const std::string& operation, zookeeper::Error error,
                    const char* right = "READ", const std::string& path = "");
  /// Returns whether `reply`, to a check of our contenders, shows that they exist. If it does not,
  /// finishes, unless the reply was lost.
  bool ExistsOrFinish(const zookeeper::Reply& reply);
  /// Finishes and returns true if the lock is reserved for our ID.
  [[nodiscard]] bool FinishIfReserved(const ReservationSearch::Found& found);
  /// With --supersede: finishes and returns true if a newer contender supersedes ours, or has
  /// released the lock since ours was lost.
  [[nodiscard]] bool FinishIfSuperseded(const protocol::Contenders& contenders);
  /// Returns whether every user of LOCK can see our contender; if not, finishes.
  [[nodiscard]] bool AcceptOrFinish(const Compatibility& found);
  /// Calls `then` with the list if every user of LOCK can see our contender, otherwise finishes.
  void IfCompatible(const protocol::Children& children, std::function<void(const QueueList&)> then);

  /// For a `try` that has created nothing yet: lists the queue, and calls `then` if every user of
  /// LOCK could see our contender. Joins if LOCK does not exist.
  void LookAtQueue(std::function<void(const QueueList&)> then);

  /// Returns whether a reservation may have ended by the servers' clock; false before our contender
  /// exists.
  [[nodiscard]] bool HasEnded(const Reserved& reserved) const;
  /// Takes a reply with LOCK's data, and notes whether we may leave a record there. Returns the
  /// record of the last release, if zklock wrote one and it is not a reservation's.
  std::optional<protocol::ReleaseRecord> TakeLockData(const zookeeper::GetReply& reply);
  [[nodiscard]] std::string ChildPath(std::string_view child) const;

  zookeeper::Store& store;
  const Clock& clock;
  const AcquireRequest request;
  const AcquireEventSink publish;
  AcquireSteps& next;

  OwnContender contender;
  CompatibilityCheck compatibility;
  ReservationSearch reservations;
  PermitNumber permit_number;

  std::optional<AcquireOutcome> outcome;
  bool has_queued = false;   ///< our contender has been in the queue
  bool has_decided = false;  ///< a list has shown that LOCK can be used
  bool may_hold = false;     ///< according to the last list, our contender may hold the lock
  std::vector<std::string> rivals{};  ///< ReservationSearch::Found::pooled
  bool may_be_reserved = false;       ///< see Acquire::MayBeReserved()
  std::int64_t newest_released = 0;   ///< the token in LOCK's record if it is from a `-newest` run
  bool is_first = false;              ///< FirstEvent was published: only the lease is missing
  std::optional<TimePoint> unserved_since;  ///< no server has served us since then
  TimePoint answer_deadline = kNever;       ///< when to give up on the server
  TimePoint wait_deadline = kNever;         ///< when the wait ends
  std::size_t unanswered = 0;               ///< requests of this state that AwaitsAnswer() counts
  bool is_proving = false;                  ///< SessionProof awaits an answer, in any state

 private:
  AcquirePart* at_work_ = nullptr;
  CallbackScope state_scope_;
};

}  // namespace zklock::lock
