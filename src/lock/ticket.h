#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "protocol/contender_name.h"
#include "protocol/lock_path.h"

namespace zklock::lock {

/// A LOCK: the znode that is the parent of its queue.
struct LockName {
  std::string path;    ///< on the servers, chroot included
  std::string chroot;  ///< the part of `path` that the user does not see; may be empty

  /// What the user knows as `shown`.
  [[nodiscard]] static LockName In(const std::string& chroot, const std::string& shown) {
    if (shown == "/") return {chroot.empty() ? shown : chroot, chroot};
    return {chroot + shown, chroot};
  }

  /// As the user knows it.
  [[nodiscard]] std::string display_path() const { return path.substr(chroot.size()); }
  /// Any path as the user knows it: the chroot's own znode is their root. One above it has no such
  /// name, and is shown as the servers know it.
  [[nodiscard]] std::string DisplayPath(const std::string& any) const {
    if (any.size() < chroot.size()) return any;
    return any.size() == chroot.size() ? "/" : any.substr(chroot.size());
  }
};

/// One contender, and no other of the same name, earlier or later.
struct ContenderId {
  std::string path;        ///< its znode, chroot included
  std::int64_t token = 0;  ///< its czxid; only needed where its name is used again

  /// Another contender may have the same name after it: the path alone does not identify it.
  [[nodiscard]] bool has_reused_name() const {
    return protocol::BaseOf(path) == protocol::kSimpleName;
  }
};

/// Our own contender in one LOCK's queue.
struct Ticket {
  LockName lock;
  protocol::Mode mode = protocol::Mode::kExclusive;
  std::string path;  ///< the contender's znode, chroot included
  std::int64_t session = 0;
  std::int64_t token = 0;  ///< its czxid: grows from each holder to the next that conflicts
  /// When the contender was made, by the servers' clock, and a moment of ours no later than that.
  std::chrono::milliseconds created{};
  TimePoint created_after{};
  /// Of LOCK's data, if that was zklock's when we last looked: then we may leave a record there.
  std::optional<std::int32_t> lock_version{};

  [[nodiscard]] std::string display_path() const { return lock.DisplayPath(path); }
  [[nodiscard]] ContenderId id() const { return {path, token}; }
  /// What the servers' clock shows at a moment of ours, as far as the contender's making tells.
  [[nodiscard]] std::chrono::milliseconds ServerTimeAt(TimePoint moment) const {
    return created + std::chrono::duration_cast<std::chrono::milliseconds>(moment - created_after);
  }
};

}  // namespace zklock::lock
