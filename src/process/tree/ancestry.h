#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <vector>

#include "process/tree/process_tree.h"

namespace zklock::process {

using ReadStat = std::function<std::optional<ProcessStat>(pid_t)>;

/// The process `pid` and its ancestors, nearest first, as far as they are alive and /proc shows
/// them. Pids are local to a PID namespace: processes of others are not shown. `read`: replaced in
/// tests.
[[nodiscard]] std::vector<ProcessId> Lineage(pid_t pid, const ReadStat& read = ReadProcessStat);

/// Whether there is a process that would continue this process's group, so that the kernel lets the
/// terminal's signals stop it (setpgid(2), orphaned process groups): an ancestor in its session,
/// but in another group. False may be wrong if the members of the group have different parents.
[[nodiscard]] bool HasJobControl();

}  // namespace zklock::process
