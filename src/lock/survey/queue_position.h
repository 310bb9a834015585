#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "lock/data/callback_scope.h"
#include "lock/data/lock_children.h"
#include "lock/data/reserved.h"
#include "lock/data/ticket.h"
#include "protocol/queue.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// The contenders ahead of a waiter in the queue.
struct QueuePosition {
  std::size_t ahead = 0;                   ///< contenders ahead of us
  std::size_t waiting = 0;                 ///< those of them that do not hold the lock
  std::size_t holders = 1;                 ///< more than one only for a semaphore
  std::string first;                       ///< the name of the first contender, a holder
  std::string first_data;                  ///< its data; empty if unknown
  std::optional<Reserved> first_reserved;  ///< set if it is a reservation
  /// How much older the first contender is than ours, by the servers' clock.
  std::optional<Duration> first_older_by;
  std::string last_run;  ///< the data of LOCK's last-run, read once; empty if unknown
};

/// Finds the position of a waiter, for its progress messages: over the waiter's session, lists the
/// queue and reads the first contender, our own contender, and LOCK's history. Sets no watches; a
/// failure does no harm.
class FindQueuePosition {
 public:
  FindQueuePosition(zookeeper::Store& store, LockName lock)
      : store_(store), lock_(std::move(lock)) {}

  /// Calls `done` once: without a position if a reply was lost or no contender is ahead of us.
  /// `own`: our contender's path. Must not be called while IsUnderWay().
  void Begin(const std::string& own, std::function<void(const std::optional<QueuePosition>&)> done);
  [[nodiscard]] bool IsUnderWay() const { return done_ != nullptr; }

 private:
  void OnListed(const zookeeper::ListReply& reply);
  void OnSemaphore();
  /// Returns the rank of our contender; none if it is not in the list.
  [[nodiscard]] std::optional<protocol::Rank> RankIn(const protocol::Contenders& contenders) const;
  void ReadLastRun();
  void ReadFirst(const std::string& queue);
  void OnFirst(const zookeeper::GetReply& reply);
  void End(bool seen);

  zookeeper::Store& store_;
  const LockName lock_;
  std::string own_;
  std::optional<std::int64_t> own_created_ms_;
  std::optional<LockChildren> children_;  ///< for a semaphore
  std::optional<std::string> last_run_;
  QueuePosition position_;
  std::function<void(const std::optional<QueuePosition>&)> done_;
  CallbackScope scope_;
};

}  // namespace zklock::lock
