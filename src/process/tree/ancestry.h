#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <vector>

#include "process/tree/process_tree.h"

namespace zklock::process {

using ReadStat = std::function<std::optional<ProcessStat>(pid_t)>;

/// Returns `pid` and its ancestors, nearest first, up to the first that is dead or that /proc does
/// not show. /proc shows no ancestors in an outer PID namespace. Tests replace `read`.
[[nodiscard]] std::vector<ProcessId> Lineage(pid_t pid, const ReadStat& read = ReadProcessStat);

/// Returns whether the terminal's stop signals can stop this process. The kernel ignores them in an
/// orphaned process group (setpgid(2)), which no process would continue. Looks for an ancestor in
/// the same session but another group; may wrongly return false if members of the group have
/// different parents.
[[nodiscard]] bool HasJobControl();

}  // namespace zklock::process
