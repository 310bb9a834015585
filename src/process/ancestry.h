#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "process/process_tree.h"

namespace zklock::process {

/// Whether the process `pid` that was started at `start_time` (clock ticks since boot) lives and is
/// an ancestor of this one. Names of processes are per pid namespace: one of another is nobody.
[[nodiscard]] bool IsLivingAncestor(std::int64_t pid, std::uint64_t start_time);

/// The process `pid` and its ancestors, the nearest first, as far as they live and /proc shows
/// them.
[[nodiscard]] std::vector<ProcessId> Lineage(pid_t pid);

}  // namespace zklock::process
