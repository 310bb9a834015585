#pragma once

#include <functional>
#include <optional>
#include <string>

#include "protocol/children.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// The contents of a semaphore's two children.
struct SemaphoreChildren {
  protocol::Children permits;
  protocol::Children turnstile;
  std::optional<std::size_t> permit_limit;  ///< none: not recorded, or not read
};

/// The children of a LOCK and, if it is a semaphore, those of the two znodes below it.
///
/// The users of this class send requests in different ways: with or without a watch, from a cache,
/// a few at a time. So this class only decides which request is next, and collects the replies. It
/// must outlive the callbacks that it hands out, and must not move while one of them is pending.
class LockChildren {
 public:
  /// How to send a request: each function calls back once with the reply, immediately or later.
  struct Requests {
    std::function<void(const std::string& path, zookeeper::Done<zookeeper::ListReply>)> list;
    std::function<void(const std::string& path, zookeeper::Done<zookeeper::GetReply>)> get;
  };

  /// `children`: the children of `lock`, already read.
  LockChildren(std::string lock, protocol::Children children);
  /// For a LOCK that is known to be a semaphore: its own children and its limit are not read.
  [[nodiscard]] static LockChildren OfSemaphore(std::string lock);

  /// Sends the next request, or returns false if all have been sent. Calls `done`, which may
  /// destroy this object, after the last reply.
  bool SendNext(const Requests& requests, std::function<void()> done);
  /// Sends all requests. Calls `done` at once if there are none.
  void SendAll(const Requests& requests, const std::function<void()>& done);

  /// Returns whether everything was read. The next three functions are valid only then.
  [[nodiscard]] bool IsComplete() const { return pending_ == 0 && next_ == Part::kNone; }
  /// Returns none if the LOCK is not a semaphore. Any list that could not be read is empty.
  [[nodiscard]] const std::optional<SemaphoreChildren>& semaphore() const { return semaphore_; }
  [[nodiscard]] zookeeper::Error permits_error() const { return permits_.error; }
  [[nodiscard]] zookeeper::Error turnstile_error() const { return turnstile_.error; }

  [[nodiscard]] const std::string& lock() const { return lock_; }
  /// Returns the children of the LOCK itself.
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
