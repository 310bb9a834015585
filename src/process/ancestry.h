#pragma once

#include <sys/types.h>

#include <vector>

#include "process/process_tree.h"

namespace zklock::process {

/// The process `pid` and its ancestors, the nearest first, as far as they live and /proc shows
/// them. Names of processes are per pid namespace: one of another is nobody.
[[nodiscard]] std::vector<ProcessId> Lineage(pid_t pid);

/// Whether there is somebody who would continue this process's group, so that the kernel lets the
/// terminal's signals stop it (setpgid(2), orphaned process groups): an ancestor of its session, in
/// another group. A false answer may be wrong where the members of the group have several parents.
[[nodiscard]] bool HasJobControl();

}  // namespace zklock::process
