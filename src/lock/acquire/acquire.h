#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/event_source.h"
#include "lock/acquire/acquire_request.h"
#include "lock/acquire/compatibility_check.h"
#include "lock/acquire/holder_search.h"
#include "lock/acquire/lock_creation.h"
#include "lock/acquire/own_contender.h"
#include "lock/acquire/permit_number.h"
#include "lock/acquire/preemption.h"
#include "lock/acquire/reservation_expiry.h"
#include "lock/acquire/reservation_search.h"
#include "lock/data/callback_scope.h"
#include "lock/data/outcome.h"
#include "protocol/queue.h"
#include "protocol/queue_ahead.h"
#include "protocol/release_record.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// Acquires one LOCK: joins its queue, decides, watches the predecessor, decides again. Or finds
/// that it is reserved for our ID already.
///
/// Passive: driven by the store's callbacks and by OnReady() at its moments. The store's listener
/// while it lives. All znodes that it leaves behind are the session's: unless the outcome is
/// Acquired, the caller closes the session.
///
/// Follows zklock-protocol(7), section 3; ZooKeeper's lock recipe; Curator's LockInternals.
class Acquire final : public EventSource, public zookeeper::StoreListener {
 public:
  /// `make_uuid`: as for OwnContender.
  Acquire(zookeeper::Store& store, const Clock& clock, AcquireRequest request,
          std::function<std::string()> make_uuid, AcquireObserver& observer);
  ~Acquire() override;
  Acquire(const Acquire&) = delete;
  Acquire& operator=(const Acquire&) = delete;

  /// Null until it is over.
  [[nodiscard]] const AcquireOutcome* outcome() const;
  /// Our turn may come within milliseconds: the answer to a commit that is under way may make us
  /// the holder, or has just done so; or we are next in line, or few contenders were before us.
  [[nodiscard]] bool IsNearTurn() const;
  /// We wait, and our contender is not in the queue or has many others before it.
  [[nodiscard]] bool IsFarFromTurn() const;
  /// When the wait is over; kNever before the queue has been joined, or without a `wait`.
  [[nodiscard]] TimePoint wait_deadline() const { return wait_deadline_; }
  /// How long a server that has accepted the session may take for an answer.
  [[nodiscard]] Duration AnswerTime() const;

  Interest GetInterest() override;
  void OnReady(short revents) override;

  void OnConnected(bool fresh) override;
  void OnDisconnected() override;
  void OnExpired() override;
  void OnRefused(zookeeper::Error why) override;
  void OnWatch(const std::string& path, zookeeper::Change change) override;

 private:
  /// Whether all contenders before our own are gone: the list shows it, or the record in LOCK's
  /// data has to confirm it.
  enum class Turn { kShownByList, kNeedsRecord };

  /// A contender in the list with `-reserve` in its name, which may be a reservation.
  struct Reserving {
    std::string name;
    std::size_t between = 0;             ///< zklock's names between it and our contender
    bool was_first = false;              ///< in the list
    std::optional<Reserved> reserved{};  ///< none: it was no reservation when it was read
    std::size_t position = 0;            ///< of our contender among those that may delete it
    /// When to delete it, or to list the queue before that; kNever while it is being deleted.
    TimePoint due = kNever;
    bool lists_first = false;
  };
  /// What is looked up about other contenders, beside the wait for one of them.
  struct Lookup {
    std::optional<HolderSearch> search{};
    std::vector<Reserving> reserving{};  ///< in queue order
    std::size_t unread = 0;              ///< of `reserving`
    bool reads_predecessor = false;      ///< which is one of them
    bool has_more = false;               ///< too many for `reserving`
  };

  // The states, each with those that may follow it. A lost connection leads from all but Done to
  // Disconnected, a failure to Done.

  /// No connection. -> FindingReservation, CheckingFree, Joining (new session); Rejoining (same
  /// session)
  struct Disconnected {};
  /// Is there a reservation with our ID? Nothing has been created yet. -> CheckingFree, Joining,
  /// Done
  struct FindingReservation {};
  /// `try`: is the lock free? Nothing has been created yet. -> Joining, Done
  struct CheckingFree {
    Lookup lookup{};
  };
  /// The create is under way, with a list. -> Waiting, LeavingFull, Deciding, Confirming,
  /// AwaitingLease, Done; Joining, after LOCK has been created
  struct Joining {};
  /// Does our contender still exist, or did the create succeed? -> Waiting, LeavingFull, Deciding,
  /// Confirming; CheckingFree, Joining if there is no contender
  struct Rejoining {};
  /// A list, or what it depends on, is under way. -> Waiting, LeavingFull, Deciding, Confirming,
  /// AwaitingLease; Done, with a lease in hand
  struct Deciding {};
  /// The predecessor is watched. -> Deciding, Waiting, Confirming; Joining in Dialect::kSimple;
  /// Done, with a lease in hand
  struct Waiting {
    Lookup lookup{};
    TimePoint list_at = kNever;      ///< when to look for new reservations
    std::size_t zklocks_before = 0;  ///< in the turnstile: zklock's contenders before our own
    bool permits_are_taken = false;  ///< of a `try` in the turnstile, which leaves
  };
  /// As many contenders wait as are allowed to: leaves, unless the lock is held for us, or one of
  /// them is a reservation that has ended. -> Deciding, Done
  struct LeavingFull {
    Lookup lookup{};
  };
  /// What shows that our contender still exists, once all before it are gone.
  enum class Proof {
    kNone,         ///< nothing yet
    kCommit,       ///< the create that was sent together with a list, or a heartbeat
    kLeaseInHand,  ///< see HasLeaseInHand()
  };
  /// A read of LOCK's data is under way, and the proof of the session unless the lease in hand will
  /// do. -> Deciding, AwaitingLease, Done
  struct Confirming {
    Turn turn;
    Proof proof = Proof::kNone;
    /// When it began, after AwaitingLease; kNever after any other state.
    TimePoint round_began = kNever;
  };
  /// It is our turn, but the lease is too short to start anything. -> Confirming
  struct AwaitingLease {
    TimePoint confirm_at;
  };
  /// It is over.
  struct Done {
    AcquireOutcome outcome;
  };

  // The way in: acquire_join.cc.
  void Begin();
  void FindReservationOfOurs();
  void Queue();
  void CheckIfFree();
  void JoinOrLeave(const QueueList& list);
  void Join();
  void OnCreated(const zookeeper::CreateReply& reply);
  void CreateLock();
  void Rejoin();
  void FindLostCreate();
  void AdoptOrJoin(const std::string& name, const zookeeper::GetReply& reply);

  // The wait: acquire_wait.cc.
  void ReadUse();
  void ListAgain();
  void ListQueue(Proof proof);
  void DecideIfCompatible(const protocol::Children& children, Proof proof);
  void FindRival(const QueueList& list, Proof proof);
  void Decide(const QueueList& list, Proof proof, const std::string& rival);
  [[nodiscard]] bool AgreeOnPermits(const protocol::Contenders& permits);
  [[nodiscard]] bool LeaveIfSuperseded(const protocol::Contenders& contenders);
  [[nodiscard]] bool Holds(const QueueList& list, std::string_view contender) const;
  void BeginWait(const std::string& predecessor, const QueueList& list);
  void BeginPreemption(const QueueList& list);
  void BeginSimpleWait();
  void WatchPredecessor(const std::string& name);
  void ReadPredecessor();
  void OnPredecessor(const zookeeper::GetReply& reply);
  void WatchChildren();
  void OnPredecessorGone();
  void CountPermits(std::size_t ahead);
  void ReadPermitNumber(const std::shared_ptr<std::size_t>& taken);
  void SearchHolders(const protocol::Children& children, const std::string& awaited);
  void OnSearchProgress();
  void LeaveAfterLookup();
  void Confirm(Turn turn);
  void OnConfirmed(const zookeeper::GetReply& reply);
  std::optional<protocol::ReleaseRecord> TakeLockData(const zookeeper::GetReply& reply);
  void CheckForNewer();
  void TakeTurn();

  // Reservations before our own contender: acquire_reservations.cc.
  void CountZklocksBefore(const protocol::Contenders& contenders);
  void ListPermits();
  void FindReservationIn(const protocol::Contenders& contenders);
  [[nodiscard]] bool FinishIfReserved(const ReservationSearch::Found& found);
  [[nodiscard]] bool HasEnded(const Reserved& reserved) const;
  void OnReservationAhead(const Reserved& reserved);
  void JoinIfReservationEnds(const protocol::Contenders& contenders, std::string_view blocker);
  void FindReserving(const protocol::Contenders& contenders);
  void ReadReserving(const std::string& name);
  void TakeReserving(const std::string& name, const std::optional<Reserved>& reserved);
  void PlanExpiries();
  [[nodiscard]] std::chrono::milliseconds LatestServerTime(const Reserving& one) const;
  void PlanExpiry(Reserving& one);
  void OnExpiryDue(Reserving& one);
  void ReadBeforeList(Reserving& one);
  void OnExpiry(ReservationExpiry::Result result);
  void LookForReservations();
  [[nodiscard]] Reserving* NextExpiry();
  [[nodiscard]] bool MayExpireAtOnce();
  [[nodiscard]] bool LeavesAtOnce() const;

  // Our own contender, the lease, and the end: acquire.cc.
  void WatchOwn();
  [[nodiscard]] bool HasLeaseInHand() const;
  void ScheduleProof();
  void KeepProving();
  void SendHeartbeat();
  void ReadLock();
  void OnProof(zookeeper::Error error);
  void CheckOwn();
  void Finish(AcquireOutcome outcome);
  void FinishBusy(Busy::Why why);
  /// Because of the predecessor.
  void FinishBlocked(Busy::Why why);
  void FinishQuota();
  void OnUnexpected(const std::string& operation, zookeeper::Error error,
                    const char* right = "READ", const std::string& path = "");

  /// Leaves the state before, and drops the answers that it waits for.
  template <typename State>
  void Enter(State state = {}) {
    state_.template emplace<State>(std::move(state));
    state_scope_ = CallbackScope();
    answer_deadline_ = kNever;
    if constexpr (!std::is_same_v<State, Disconnected> && !std::is_same_v<State, Done>) {
      answer_deadline_ = clock_.Now() + AnswerTime();
    }
  }
  /// A callback that runs only until the next Enter().
  template <typename F>
  auto InState(F f) const {
    return state_scope_.Wrap(std::move(f));
  }
  /// Calls `then` with the list if everybody who uses LOCK can see our contender, else finishes.
  void IfCompatible(const protocol::Children& children, std::function<void(const QueueList&)> then);
  [[nodiscard]] bool AcceptOrFinish(const Compatibility& found);
  [[nodiscard]] bool IsOver() const { return std::holds_alternative<Done>(state_); }
  [[nodiscard]] TimePoint UnreachableAt() const;
  [[nodiscard]] TimePoint WaitEnd() const;
  /// We wait in the queue: there is a contender before our own.
  [[nodiscard]] bool HasPlace() const;
  [[nodiscard]] Lookup* LookupOfState();
  [[nodiscard]] std::string ChildPath(std::string_view child) const;

  zookeeper::Store& store_;
  const Clock& clock_;
  const AcquireRequest request_;
  AcquireObserver& observer_;

  std::variant<Disconnected, FindingReservation, CheckingFree, Joining, Rejoining, Deciding,
               Waiting, LeavingFull, Confirming, AwaitingLease, Done>
      state_;
  CallbackScope state_scope_;
  TimePoint answer_deadline_ = kNever;  ///< then the server is given up

  OwnContender contender_;
  CompatibilityCheck compatibility_;
  ReservationSearch reservations_;
  // Of a reservation for our ID in the way, for which the queue was listed again. If it is still in
  // the way, it does not hold.
  std::int64_t listed_for_ = 0;
  LockCreation creation_;
  PermitNumber permit_number_;

  /// What is lost with a connection.
  struct Connection {
    /// How many contenders of All() have no watch that is known to be set. None: not begun.
    std::optional<std::size_t> unwatched{};
    CallbackScope watches{};
    bool proof_pending = false;
    TimePoint next_proof = kNever;
    /// The one that runs. Not in Waiting: the deletion ends that state before its reply arrives.
    std::unique_ptr<ReservationExpiry> expiry{};
    std::unique_ptr<Preemption> preemption{};
  };
  Connection connection_;

  /// What is done once for a place in the queue.
  struct Place {
    bool ranked = false;     ///< `max_queue` has been applied
    bool preempted = false;  ///< the contenders before ours were asked to leave
    bool searched = false;   ///< the search for a holder that holds for us is over
    bool is_first = false;   ///< the observer knows that only the lease is missing
    /// In a turnstile: the permits do not show yet whether another number of them is in use.
    bool watches_permits = false;
    /// Overdue reservations: those that a new list was asked for, and when a delete was refused.
    std::set<std::string> listed_again{};
    std::map<std::string, TimePoint> refused{};
    /// Reservations that had not ended when the servers' clock was asked last.
    std::map<std::string, ServersTime> not_ended{};
  };
  Place place_;

  /// The contender that we wait for, or waited for last.
  struct Predecessor {
    std::string name;
    std::string data{};
    std::optional<Reserved> reserved{};  ///< it is this reservation
    bool readable = true;
    protocol::QueueAhead ahead{};  ///< from the list that made it the predecessor
    bool is_rival = false;  ///< it does not exclude our contender, but has our ID (--reserve)
    bool holds = false;     ///< it was the first in the list, or has a permit
  };
  Predecessor predecessor_;

  bool has_queued_ = false;                  ///< our contender has been in the queue
  int missing_ = 0;                          ///< how often the list lacked our znode, which exists
  std::optional<TimePoint> unserved_since_;  ///< since when no server has done anything for us
  TimePoint wait_deadline_ = kNever;
  CallbackScope scope_;
};

}  // namespace zklock::lock
