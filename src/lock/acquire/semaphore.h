#pragma once

#include <vector>

#include "lock/data/acquire_request.h"

namespace zklock::lock {

/// The requests of an AcquireSet for one permit of a semaphore, as Curator's
/// InterProcessSemaphoreV2 makes them: first for the turnstile, where one contender at a time
/// passes, then for the permit. `permit` has the LOCK, and in `permits` their number.
[[nodiscard]] std::vector<AcquireRequest> RequestsForPermit(AcquireRequest permit);

}  // namespace zklock::lock
