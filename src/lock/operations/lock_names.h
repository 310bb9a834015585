#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lock/data/ticket.h"
#include "lock/operations/calls.h"

namespace zklock::lock {

/// A znode that may be a LOCK, and its queue, judged by the names of its children alone: a
/// reservation looks like any other holder.
struct FoundLock {
  std::string path;  ///< as shown to users
  bool is_semaphore = false;
  std::size_t held = 0;  ///< how many contenders hold the lock, or how many permits are used
  std::size_t waiting = 0;
  std::optional<std::size_t> permit_limit{};  ///< for a semaphore, if known
};

/// Finds possible LOCKs below the znode `above`, by names alone, for completion: every znode that
/// has contenders, a record of its runs or no children, and every semaphore. Contenders, records,
/// the children of a semaphore and the servers' own znodes are not offered. Lists the nearest
/// znodes first, and at most 1,000.
///
/// Adds them to `locks` in no particular order. If this throws, `locks` contains those found so
/// far.
void FindLockNames(Calls& calls, const LockName& above, std::vector<FoundLock>& locks);

}  // namespace zklock::lock
