#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "lock/callback_scope.h"
#include "lock/reserved.h"
#include "lock/ticket.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// Deletes a reservation that has lasted long enough, on behalf of a waiter, and leaves the record
/// of its release in LOCK.
///
/// The servers' clock decides, never ours: the waiter writes to its own contender, and compares the
/// time that the servers give to this write with the end of the reservation. Our own clock only
/// decides when to ask.
///
/// Passive. It lasts as long as a connection: after a lost reply nothing more happens.
class ReservationExpiry {
 public:
  /// `queue`: the parent of the reservation's znode `name`. `was_first`: a list shows that it was
  /// before all other contenders; otherwise it may never have held the lock, and leaves no record.
  /// `own`: our contender in LOCK; `clock` and `store` outlive this.
  ReservationExpiry(zookeeper::Store& store, const Clock& clock, std::string queue,
                    std::string name, Reserved reserved, bool was_first, Ticket own);

  /// When to call Run(): at the end of the reservation, as far as we can tell. kNever while it
  /// runs, and after it was found that we may not delete the reservation.
  [[nodiscard]] TimePoint due() const { return due_; }
  /// Whether the reservation had ended when our own contender was created.
  [[nodiscard]] bool HadEnded() const { return own_.created >= *reserved_.until; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const Reserved& reserved() const { return reserved_; }

  enum class Result {
    kDeleted,  ///< by us
    kChanged,  ///< somebody else has deleted it, or written to it: look again
    kNotYet,   ///< the servers' clock says that it has not ended; due() is set anew
    kMayNot,   ///< we lack the right to delete it
  };
  /// Calls `done` once, but not after a lost reply.
  void Run(std::function<void(Result)> done);

 private:
  void AskForTime();
  void TakeTime(std::chrono::milliseconds now);
  void Delete();
  void DeleteWithoutRecord();
  void OnDeleted(const zookeeper::Reply& reply);
  void Schedule(std::chrono::milliseconds now);
  void End(Result result);

  zookeeper::Store& store_;
  const Clock& clock_;
  const std::string queue_;
  const std::string name_;
  const Reserved reserved_;
  const bool was_first_;
  const Ticket own_;
  TimePoint due_ = kNever;
  std::function<void(Result)> done_;
  CallbackScope scope_;
};

}  // namespace zklock::lock
