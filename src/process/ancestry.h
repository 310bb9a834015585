#pragma once

#include <sys/types.h>

#include <vector>

#include "process/process_tree.h"

namespace zklock::process {

/// The process `pid` and its ancestors, the nearest first, as far as they live and /proc shows
/// them. Names of processes are per pid namespace: one of another is nobody.
[[nodiscard]] std::vector<ProcessId> Lineage(pid_t pid);

}  // namespace zklock::process
