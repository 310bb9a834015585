#pragma once

#include <cstdint>

namespace zklock::process {

/// Whether the process `pid` that was started at `start_time` (clock ticks since boot) lives and is
/// an ancestor of this one. Names of processes are per pid namespace: one of another is nobody.
[[nodiscard]] bool IsLivingAncestor(std::int64_t pid, std::uint64_t start_time);

}  // namespace zklock::process
