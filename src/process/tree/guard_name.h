#pragma once

#include "process/tree/process_tree.h"

namespace zklock::process {

/// Renames this forked process, so that `pkill zklock` and `kill -9 $(pidof zklock)` spare it: the
/// former matches the process's name, the latter the first word of its command line. From then on,
/// IsGuard() recognises it in other processes.
void TakeGuardName();

/// Gives this process the command's name before a fork, so that the child does not look like a
/// guard.
void TakeCommandName();

/// Returns whether a process has a guard's name: a quick check before IsGuard().
[[nodiscard]] bool HasGuardName(pid_t pid);

/// Returns whether a process is a guard: it has a guard's name and executes the same file as this
/// process, or another version of it (see Executes()). A program that pretends to be a guard gets
/// no stop signal, and KILL up to five seconds later than others, but before the lease ends
/// (protocol::NestedGuardsUntil()).
[[nodiscard]] bool IsGuard(const ProcessStat& process);

}  // namespace zklock::process
