#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "lock/data/ticket.h"
#include "lock/operations/calls.h"
#include "protocol/contender_name.h"

namespace zklock::lock {

/// One holder of a LOCK.
struct Holder {
  protocol::ContenderName name;
  std::string path{};               ///< on the servers
  std::vector<std::string> more{};  ///< the paths of its other permits (--take)
  zookeeper::NodeStat stat{};
  std::string data{};  ///< truncated; any bytes if another program wrote it
};

/// The maximum number of readers to read if they hold the lock together, unless all are needed.
inline constexpr std::size_t kMostHolders = 256;
inline constexpr std::size_t kAllHolders = std::numeric_limits<std::size_t>::max();

/// Reads the holders of a LOCK, however long its queue is: the first contender, or the readers at
/// the head of the queue; for a semaphore, the contenders with a permit. Leaves out contenders that
/// vanish in the meantime. Those that we lack permission to read are added to `unreadable` instead,
/// if given. `most`: the maximum number to read. Throws OperationFailed.
[[nodiscard]] std::vector<Holder> ReadHolders(Calls& calls, const LockName& lock,
                                              std::size_t most = kMostHolders,
                                              std::vector<Holder>* unreadable = nullptr);

/// Returns the failure to read this holder for lack of permission.
[[nodiscard]] OperationFailed MayNotRead(const LockName& lock, const Holder& holder);

}  // namespace zklock::lock
