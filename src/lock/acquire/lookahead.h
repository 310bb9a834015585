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
#include <utility>
#include <vector>

#include "base/clock.h"
#include "lock/acquire/attempt.h"
#include "lock/ahead/holder_search.h"
#include "lock/ahead/reservation_expiry.h"
#include "lock/data/callback_scope.h"
#include "protocol/queue.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// While we wait for one contender, examines the others ahead of us: finds one that holds the lock
/// on our behalf, and deletes reservations when they end.
class Lookahead {
 public:
  /// Why a wait state looks ahead.
  enum class For {
    kDecision,  ///< to decide whether to join, or to leave a full queue: looks ahead only until
                ///< that is clear
    kWait,
  };

  /// `on_progress`: called after an answer, when IsOver() may have become true.
  Lookahead(Attempt& attempt, std::function<void()> on_progress)
      : attempt_(attempt), on_progress_(std::move(on_progress)) {}

  /// Begins a wait state. `predecessor`: the contender that it waits for; empty if none. `leaves`:
  /// the state does not wait for a reservation to end.
  void Begin(For purpose, std::string predecessor, bool leaves);
  /// Ends the state and discards everything that was found for it.
  void End();
  /// Called when the connection is lost.
  void OnDisconnected() { expiry_.reset(); }
  /// Called when our place in the queue is lost.
  void OnPlaceLost();

  /// Searches for a contender that holds the lock on our behalf. `awaited`: as for
  /// HolderSearch::Begin().
  void SearchHolders(const protocol::Children& children, const std::string& awaited);
  /// Returns whether the search is complete for this place in the queue, or was not requested.
  [[nodiscard]] bool HasSearched() const { return searched_ || !attempt_.request.holds_for_us; }
  /// Reads the contenders that may be reservations: in a queue, those ahead of us; in a semaphore,
  /// any permit. `reads_predecessor`: the wait itself reads the predecessor.
  void FindReserving(const protocol::Contenders& contenders, bool reads_predecessor);
  /// Takes the answer to a read of the predecessor. `reserved`: set if it is a reservation.
  void TakePredecessor(const zookeeper::GetReply& reply, const std::optional<Reserved>& reserved);
  /// For a `try` that has created nothing yet and has found `blocker`, which the caller reads next:
  /// joins if a reservation has an end, because we must create a contender to learn whether the end
  /// has passed.
  void JoinIfReservationEnds(const protocol::Contenders& contenders, std::string_view blocker);
  /// In a turnstile: counts zklock's contenders ahead of us, which may delete an overdue permit
  /// before we do.
  void CountZklocksBefore(const protocol::Contenders& contenders);

  /// Takes a new list of the permits: a reservation that has lost one of its permits has ended.
  void RecountPermits(const protocol::Contenders& permits);

  /// Makes the lookahead wait for another answer: call Take() when it arrives.
  void Expect() { ++state_->unread; }
  void Take();

  /// Returns whether there is nothing left to wait for before leaving.
  [[nodiscard]] bool IsOver() const;
  /// Returns whether a reservation may become due for deletion by `moment`; true if that is not
  /// known yet.
  [[nodiscard]] bool MayDeleteOneBy(TimePoint moment) const;

  /// Returns when the next reservation is due for deletion.
  [[nodiscard]] TimePoint expiry_due() const;
  void OnExpiryDue();
  /// Returns when to look for new reservations.
  [[nodiscard]] TimePoint list_due() const { return state_ ? state_->list_at : kNever; }
  void OnListed() { state_->list_at = kNever; }

 private:
  /// A contender in the list with `-reserve` in its name, which may be a reservation.
  struct Reserving {
    std::string name;
    std::string run{};                   ///< ContenderNameView::run()
    std::size_t between = 0;             ///< the number of zklock names between it and our own
    bool was_first = false;              ///< it was the first in the list
    std::vector<std::string> more{};     ///< its other permits
    bool is_more = false;                ///< it is listed in the `more` of another contender
    std::optional<Reserved> reserved{};  ///< none: it was not a reservation when it was read
    std::size_t position = 0;            ///< of our contender among those that may delete it
    /// When to delete it, or to list the queue first; kNever while it is being deleted.
    TimePoint due = kNever;
    bool lists_first = false;
  };
  struct State {
    State(For looks_for, std::string after, bool is_leaving)
        : purpose(looks_for), predecessor(std::move(after)), leaves(is_leaving) {}

    const For purpose;
    const std::string predecessor;
    const bool leaves;
    std::optional<HolderSearch> search{};
    std::vector<Reserving> reserving{};  ///< in queue order
    std::size_t unread = 0;              ///< awaited answers
    bool reads_predecessor = false;      ///< the wait reads `predecessor`, which is in `reserving`
    bool has_more = false;               ///< there were too many contenders for `reserving`
    TimePoint list_at = kNever;
    std::size_t zklocks_before = 0;  ///< in a turnstile: zklock's contenders before our own
  };

  void OnSearchProgress();
  void ReadReserving(const std::string& name);
  void TakeReserving(const std::string& name, const std::optional<Reserved>& reserved);
  void DropGone(const protocol::Contenders& contenders);
  void GroupPermits();
  void PlanExpiries();
  void PlanExpiry(Reserving& one);
  [[nodiscard]] std::chrono::milliseconds LatestServerTime(const Reserving& one) const;
  void ReadBeforeList(Reserving& one);
  void OnExpiry(ReservationExpiry::Result result);
  [[nodiscard]] const Reserving* NextExpiry() const;
  [[nodiscard]] Reserving* Find(std::string_view name);
  [[nodiscard]] bool is_ordered() const;
  [[nodiscard]] std::string ReservationPath(std::string_view name) const;

  Attempt& attempt_;
  const std::function<void()> on_progress_;
  std::optional<State> state_;

  bool searched_ = false;  ///< SearchHolders() has completed its search
  /// Overdue reservations: those for which the queue was listed again, and those whose delete was
  /// refused, with the time of the refusal.
  std::set<std::string> listed_again_;
  std::map<std::string, TimePoint> refused_;
  /// Reservations that had not yet ended when we last asked for the servers' time.
  std::map<std::string, ServersTime> not_ended_;
  /// The expiry that is under way. Not in State, because the deletion ends the state before the
  /// reply arrives.
  std::unique_ptr<ReservationExpiry> expiry_;
  CallbackScope scope_;
};

}  // namespace zklock::lock
