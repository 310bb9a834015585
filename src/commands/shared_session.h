#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "process/shared_page.h"
#include "zookeeper/access.h"
#include "zookeeper/session.h"

namespace zklock::commands {

/// What a guard needs to close the session of its zklock, in memory that both share: the guard is
/// forked before the session exists.
class SharedSession {
 public:
  /// `access` outlives it. Throws std::system_error.
  explicit SharedSession(const zookeeper::Access& access) : access_(access) {}

  /// From now on it is `session`, which has been connected. To be called before anything is created
  /// with a session.
  void Set(const zookeeper::Session& session);
  /// No session any more.
  void Clear() { page_->is_set.exchange(false); }

  /// For CommandSpec::when_orphaned: closes it, if there is one.
  void Close() const;

 private:
  /// Read only when its writer has died, perhaps in the middle of writing.
  struct Page {
    std::atomic<bool> is_set{false};  // all below is written
    std::int64_t session_id = 0;
    std::array<char, 16> password{};
    Duration timeout{};
    std::array<char, 4000> addresses{};  // each followed by a newline; those that fit
  };

  const zookeeper::Access& access_;
  process::SharedPage<Page> page_;
};

}  // namespace zklock::commands
