#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "protocol/contender_name.h"
#include "protocol/lock_path.h"

namespace zklock::lock {

/// A LOCK: the znode that is the parent of its queue.
struct LockName {
  std::string path;    ///< on the servers, chroot included
  std::string chroot;  ///< the part of `path` that the user does not see; may be empty

  /// Returns the LOCK that the user knows as `shown`.
  [[nodiscard]] static LockName In(const std::string& chroot, const std::string& shown) {
    if (shown == "/") return {chroot.empty() ? shown : chroot, chroot};
    return {chroot + shown, chroot};
  }

  /// Returns the path as the user knows it.
  [[nodiscard]] std::string display_path() const { return path.substr(chroot.size()); }
  /// Returns any path as the user knows it: the chroot is the user's root. A path above the chroot
  /// is displayed as the servers know it.
  [[nodiscard]] std::string DisplayPath(const std::string& any) const {
    if (any.size() < chroot.size()) return any;
    return any.size() == chroot.size() ? "/" : any.substr(chroot.size());
  }
};

/// One contender, as opposed to an earlier or later one with the same name.
struct ContenderId {
  std::string path;        ///< its znode, chroot included
  std::int64_t token = 0;  ///< its czxid; 0: unknown; then only the name counts

  /// Returns whether a later contender may have the same name, so that the path alone does not
  /// identify this one.
  [[nodiscard]] bool has_reused_name() const {
    return protocol::BaseOf(path) == protocol::kSimpleName;
  }
};

/// Our own contender in one LOCK's queue.
struct Ticket {
  LockName lock;
  protocol::Mode mode = protocol::Mode::kExclusive;
  std::string path;  ///< the contender's znode, chroot included
  /// With --take: the znodes of its other permits, after `path` in the queue. They were created in
  /// the same transaction, and the run holds the lock only while all of them exist.
  std::vector<std::string> more{};
  std::int64_t session = 0;
  std::int64_t token = 0;  ///< its czxid: increases from each holder to the next conflicting one
  /// When the contender was created: the time by the servers' clock, and two times on our clock
  /// that enclose it.
  std::chrono::milliseconds created{};
  TimePoint created_after{};
  TimePoint created_before{};
  /// The version of LOCK's data when we last read it, if zklock wrote that data; only then may we
  /// leave a record there.
  std::optional<std::int32_t> lock_version{};
  /// The lock was acquired without reading LOCK's data: `lock_version` is a guess until the holder
  /// has read it. If the guess is wrong, the record is refused.
  bool lock_version_is_guess = false;

  [[nodiscard]] std::string display_path() const { return lock.DisplayPath(path); }
  [[nodiscard]] ContenderId id() const { return {path, token}; }
  /// Returns all znodes, `path` first.
  [[nodiscard]] std::vector<std::string> paths() const {
    std::vector<std::string> all{path};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  /// Returns the IDs of all znodes, `id()` first.
  [[nodiscard]] std::vector<ContenderId> ids() const {
    std::vector<ContenderId> all;
    for (const std::string& one : paths()) all.push_back({one, token});
    return all;
  }
  /// Return the latest and the earliest time that the servers' clock may show at `moment` on our
  /// clock. They differ by the round trip of the create.
  [[nodiscard]] std::chrono::milliseconds LatestServerTimeAt(TimePoint moment) const {
    return created + std::chrono::ceil<std::chrono::milliseconds>(moment - created_after);
  }
  [[nodiscard]] std::chrono::milliseconds EarliestServerTimeAt(TimePoint moment) const {
    return created + std::chrono::floor<std::chrono::milliseconds>(moment - created_before);
  }
};

}  // namespace zklock::lock
