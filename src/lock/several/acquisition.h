#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/event_source.h"
#include "lock/data/acquire_request.h"
#include "lock/data/outcome.h"
#include "lock/data/ticket.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// Acquires the LOCKs of one run: AcquireSet acquires all of them, AcquireAny one of them.
///
/// Passive: driven by the store's callbacks, and by OnReady() at the times in its Interest. It is
/// the store's listener while it exists. All znodes that it leaves behind belong to the session:
/// unless the outcome is Acquired or ReservedLock, the caller closes the session.
class Acquisition : public EventSource, public zookeeper::StoreListener {
 public:
  /// Set once, when the acquisition is over: Acquired or ReservedLock if the requested LOCKs are
  /// held or reserved, otherwise the outcome for lock().
  [[nodiscard]] const std::optional<AcquireOutcome>& outcome() const { return outcome_; }
  /// Returns whether a LOCK is held already, or our turn is near (Acquire::IsNearTurn): if this
  /// process were killed, others would have to wait for the session's end.
  [[nodiscard]] virtual bool IsNearTurn() const = 0;
  /// Returns whether no LOCK is held, and our turn is far (Acquire::IsFarFromTurn).
  [[nodiscard]] virtual bool IsFarFromTurn() const = 0;
  /// Returns the contenders that hold the LOCKs, in the order of the requests.
  [[nodiscard]] virtual std::vector<Ticket> tickets() const = 0;
  /// Returns the LOCKs that were already reserved, in the same order.
  [[nodiscard]] virtual std::vector<ReservedLock> reserved() const = 0;
  /// Returns our contenders that are no longer needed; the caller deletes them.
  [[nodiscard]] virtual std::vector<std::string> passed() const = 0;
  /// With --any --reserve: returns whether another of the LOCKs may be reserved for our ID now or
  /// soon. If so, we have left its queue, or the queue contains a reservation that does not seem to
  /// be in force or seems to have ended.
  [[nodiscard]] virtual bool MayBeReserved() const { return false; }
  /// Returns when the wait ends; kNever before the first queue has been joined, or without a
  /// `wait`.
  [[nodiscard]] virtual TimePoint wait_end() const = 0;
  /// Returns the LOCK that is being acquired, or that was being acquired when the acquisition
  /// ended.
  [[nodiscard]] virtual const LockName& lock() const = 0;

  /// Leaves the queue of `contender` if the acquisition can continue without it; otherwise returns
  /// false.
  virtual bool GiveUp(const std::string& /*contender*/) { return false; }

 protected:
  std::optional<AcquireOutcome> outcome_;
};

}  // namespace zklock::lock
