#pragma once

#include <vector>

#include "lock/data/acquire_request.h"

namespace zklock::lock {

/// The requests of an AcquireSet for one permit of a semaphore, as Curator's
/// InterProcessSemaphoreV2 makes them: first for the turnstile, which one contender at a time
/// passes, then for the permit. `permit`: the request for the LOCK, with the number of permits in
/// `permits`.
[[nodiscard]] std::vector<AcquireRequest> RequestsForPermit(AcquireRequest permit);

}  // namespace zklock::lock
