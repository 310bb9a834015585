#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lock/data/callback_scope.h"
#include "lock/data/reserved.h"
#include "lock/data/ticket.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// A reading of the servers' clock.
struct ServersTime {
  std::chrono::milliseconds shown{};
  TimePoint asked{};  ///< on our clock, before the reading
};

/// Deletes a reservation that has lasted long enough, on behalf of a waiter, and leaves the record
/// of its release in LOCK.
///
/// The servers' clock decides, never this host's: the waiter writes to its own contender, and
/// compares the servers' timestamp of that write with the end of the reservation. The write is not
/// needed if the contender was created after both the reservation and its end.
///
/// Passive. It serves one connection only: after a lost reply nothing more happens.
class ReservationExpiry {
 public:
  /// `queue`: the parent of the reservation's znode `name` and of `more`, the znodes of its other
  /// permits. `was_first`: a list has shown it before all other contenders; otherwise it may never
  /// have held the lock, and leaves no record. `own`: our contender in LOCK. `store` must outlive
  /// this.
  ReservationExpiry(zookeeper::Store& store, std::string queue, std::string name,
                    std::vector<std::string> more, Reserved reserved, bool was_first, Ticket own)
      : store_(store),
        queue_(std::move(queue)),
        name_(std::move(name)),
        more_(std::move(more)),
        reserved_(std::move(reserved)),
        was_first_(was_first),
        own_(std::move(own)) {}

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const Reserved& reserved() const { return reserved_; }

  enum class Result {
    kDeleted,  ///< we have deleted it
    kChanged,  ///< someone else has deleted it or written to it: look again
    kNotYet,   ///< by the servers' clock, it has not ended yet; see servers_time()
    kMayNot,   ///< we lack the permission to delete it, or cannot do so for another reason
  };
  /// Calls `done` once, but not after a lost reply.
  void Run(std::function<void(Result)> done);
  /// Valid after kNotYet.
  [[nodiscard]] const ServersTime& servers_time() const { return servers_time_; }
  /// After kMayNot, returns whether we lack DELETE permission on the reservation's parent.
  [[nodiscard]] bool lacks_right() const { return lacks_right_; }

 private:
  void AskForTime();
  void Delete();
  void DeleteWithoutRecord();
  void OnDeleted(const zookeeper::Reply& reply);
  void End(Result result);

  zookeeper::Store& store_;
  const std::string queue_;
  const std::string name_;
  const std::vector<std::string> more_;
  const Reserved reserved_;
  const bool was_first_;
  const Ticket own_;
  ServersTime servers_time_;
  bool lacks_right_ = false;
  std::function<void(Result)> done_;
  CallbackScope scope_;
};

}  // namespace zklock::lock
