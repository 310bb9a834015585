#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "lock/callback_scope.h"
#include "lock/lock_children.h"
#include "lock/ticket.h"
#include "protocol/queue.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// What a waiter sees before it.
struct QueuePosition {
  std::size_t ahead = 0;    ///< contenders before ours
  std::size_t holders = 1;  ///< of a semaphore's permits
  std::string first;        ///< the child at the head of the queue: it holds
  std::string first_data;   ///< its data: somebody else's; empty where not known
  /// How much older its contender is than ours, by the servers' clock.
  std::optional<Duration> first_older_by;
};

/// Looks at the queue for a waiter that wants to tell where it stands: a list and a read or two
/// over the session that it queues with; of a semaphore at its permits and its turnstile. They
/// watch nothing and come to nothing without harm.
class FindQueuePosition {
 public:
  FindQueuePosition(zookeeper::Store& store, LockName lock)
      : store_(store), lock_(std::move(lock)) {}

  /// Calls `done` once: with nothing when a reply was lost, or nobody is before us. `own`: our
  /// contender's path. Not before the last look is over.
  void Begin(const std::string& own, std::function<void(const std::optional<QueuePosition>&)> done);
  [[nodiscard]] bool IsUnderWay() const { return done_ != nullptr; }

 private:
  void OnListed(const zookeeper::ListReply& reply);
  void OnSemaphore();
  /// How many are before ours; none where it is not one of them.
  [[nodiscard]] std::optional<std::size_t> PlaceIn(const protocol::Contenders& contenders) const;
  void ReadFirst(const std::string& queue);
  void OnFirst(const zookeeper::GetReply& reply);
  void End(bool seen);

  zookeeper::Store& store_;
  const LockName lock_;
  std::string own_;
  std::optional<std::int64_t> own_created_ms_;
  std::optional<LockChildren> children_;  ///< of a semaphore
  QueuePosition position_;
  std::function<void(const std::optional<QueuePosition>&)> done_;
  CallbackScope scope_;
};

}  // namespace zklock::lock
