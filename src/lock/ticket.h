#pragma once

#include <cstdint>
#include <string>

#include "protocol/contender_name.h"

namespace zklock::lock {

/// A LOCK: the znode that is the parent of its queue.
struct LockName {
  std::string path;    ///< on the servers, chroot included
  std::string chroot;  ///< the part of `path` that the user does not see; may be empty

  /// As the user knows it.
  [[nodiscard]] std::string shown() const { return path.substr(chroot.size()); }
  /// A path below it, as the user knows it.
  [[nodiscard]] std::string Shown(const std::string& below) const {
    return below.substr(chroot.size());
  }
};

/// Our own contender in one LOCK's queue.
struct Ticket {
  LockName lock;
  protocol::Mode mode = protocol::Mode::kExclusive;
  std::string path;  ///< the contender's znode, chroot included
  std::int64_t session = 0;
  std::int64_t token = 0;  ///< its czxid: grows from each holder to the next that conflicts

  [[nodiscard]] std::string shown_path() const { return lock.Shown(path); }
};

}  // namespace zklock::lock
