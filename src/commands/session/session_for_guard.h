#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "cli/options/option_table.h"
#include "process/guard/owner_guard.h"
#include "process/guard/shared_memory.h"
#include "zookeeper/session.h"

namespace zklock::commands {

/// What a guard needs to close its zklock's session. It is in memory that both share, since the
/// guard may be forked before the session exists.
class SessionForGuard {
 public:
  /// `options` must outlive it. Throws std::system_error.
  explicit SessionForGuard(const cli::ServerOptions& options) : options_(options) {}

  /// Sets the session that the guard closes from now on. It must have been connected. Call this
  /// before the session creates anything.
  void Set(const zookeeper::Session& session);
  /// Call when the session's addresses have changed. Does nothing unless Set() was last called with
  /// this session.
  void UpdateAddresses(const zookeeper::Session& session);
  /// Call when the session has been closed.
  void Clear() { page_->is_set.exchange(false); }
  /// Returns whether a session was set and, as far as is known, has not been closed.
  [[nodiscard]] bool is_set() const { return page_->is_set; }

  /// In the guard, when zklock is gone: closes the session, if there is one.
  void Close() const;
  /// Returns the duty of the guard for a run without a command.
  [[nodiscard]] process::OwnerDuty GuardDuty() const {
    return {.when_orphaned = [this] { Close(); }, .is_needed = [this] { return is_set(); }};
  }

 private:
  /// Read only after its writer has died, perhaps in the middle of writing.
  struct Page {
    std::atomic<bool> is_set{false};  // everything below is written
    std::int64_t session_id = 0;
    std::array<char, 16> password{};
    Duration timeout{};
    /// As many as fit, each as "ADDRESS NAME\n". New ones are written beside those in use.
    std::array<std::array<char, 2000>, 2> addresses{};
    std::atomic<int> in_use{0};
  };

  /// Keeps the addresses in use until the new ones are complete.
  void WriteAddresses(const zookeeper::Session& session);

  const cli::ServerOptions& options_;
  process::SharedPage<Page> page_;
};

}  // namespace zklock::commands
