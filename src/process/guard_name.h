#pragma once

#include "process/process_tree.h"

namespace zklock::process {

/// Gives this forked process a name of its own, so that `pkill zklock` and `kill -9 $(pidof
/// zklock)` spare it: the one goes by the process's name, the other by the first word of its
/// command line.
void TakeGuardName();

/// Gives another name to a process that a guard has forked. Async-signal-safe.
void DropGuardName();

/// Whether a process is a guard: it has a guard's name and executes the same file as this process.
/// A guard that was started from another build of zklock is not recognised. Any program of the
/// user's can pretend to be one.
[[nodiscard]] bool IsGuard(const ProcessStat& process);

}  // namespace zklock::process
