#pragma once

#include "base/clock.h"
#include "base/unique_fd.h"

namespace zklock::process {

/// A timer descriptor on CLOCK_BOOTTIME, not armed. Throws std::system_error.
[[nodiscard]] UniqueFd MakeTimer();

/// Makes the descriptor readable from `moment` on: at once if it has passed, never if it is kNever.
void SetTimer(int timer, TimePoint moment);

}  // namespace zklock::process
