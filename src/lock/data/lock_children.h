#pragma once

#include <functional>
#include <optional>
#include <string>

#include "protocol/children.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// What a semaphore keeps in its two children.
struct SemaphoreChildren {
  protocol::Children permits;
  protocol::Children turnstile;
  std::optional<std::size_t> permit_limit;  ///< none: another program's, which does not write it
};

/// The children of a LOCK, and if they are a semaphore's, the two queues below it.
///
/// The users of this class send requests in different ways: with or without a watch, from a cache,
/// a few at a time. So it only decides which request is next, and collects the replies. It must
/// outlive the callbacks that it hands out, and must not move while one of them is pending.
class LockChildren {
 public:
  /// How to send a request: each function calls back once with the reply, now or later.
  struct Requests {
    std::function<void(const std::string& path, zookeeper::Done<zookeeper::ListReply>)> list;
    std::function<void(const std::string& path, zookeeper::Done<zookeeper::GetReply>)> get;
  };

  /// `children`: the list of `lock`'s children, read before.
  LockChildren(std::string lock, protocol::Children children);
  /// For a LOCK that is known to be a semaphore: its own children and its limit are not read.
  [[nodiscard]] static LockChildren OfSemaphore(std::string lock);

  /// Sends the next request; false if all have been sent. With the last reply `done` is called,
  /// which may destroy this object.
  bool SendNext(const Requests& requests, std::function<void()> done);
  /// Sends all requests. Calls `done` at once if there are none.
  void SendAll(const Requests& requests, const std::function<void()>& done);

  /// Everything was read. What follows is valid only then.
  [[nodiscard]] bool IsComplete() const { return pending_ == 0 && next_ == Part::kNone; }
  /// None if the LOCK is not a semaphore. Lists that could not be read are empty.
  [[nodiscard]] const std::optional<SemaphoreChildren>& semaphore() const { return semaphore_; }
  [[nodiscard]] zookeeper::Error permits_error() const { return permits_.error; }
  [[nodiscard]] zookeeper::Error turnstile_error() const { return turnstile_.error; }

  [[nodiscard]] const std::string& lock() const { return lock_; }
  /// The LOCK's own.
  [[nodiscard]] const protocol::Children& children() const { return children_; }

 private:
  /// In the order of the requests.
  enum class Part { kLimit, kPermits, kTurnstile, kNone };

  template <typename Reply>
  [[nodiscard]] zookeeper::Done<Reply> Keep(Reply LockChildren::*kept, std::function<void()> done);
  void Decide();

  std::string lock_;
  protocol::Children children_;
  bool is_semaphore_ = false;  ///< known beforehand
  Part next_ = Part::kNone;
  int pending_ = 0;
  zookeeper::GetReply limit_;
  zookeeper::ListReply permits_;
  zookeeper::ListReply turnstile_;
  std::optional<SemaphoreChildren> semaphore_;
};

}  // namespace zklock::lock
