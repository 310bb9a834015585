#pragma once

#include <string>
#include <vector>

#include "lock/calls.h"
#include "lock/ticket.h"

namespace zklock::lock {

/// Finds possible LOCKs below the znode `above`, by names alone, for completion: every znode that
/// has contenders, a record of its runs or no children, and every semaphore. Contenders, records,
/// the children of a semaphore and the servers' own znodes are not offered. Lists the nearest
/// znodes first, and at most 1,000.
///
/// `paths` gets them as shown to users, in no order. If this throws, it has those found until then.
void FindLockNames(Calls& calls, const LockName& above, std::vector<std::string>& paths);

}  // namespace zklock::lock
