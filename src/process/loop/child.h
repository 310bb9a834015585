#pragma once

#include <sys/types.h>

namespace zklock::process {

/// Forks with all signals blocked; they stay blocked in the child. Returns as fork(2) does, or
/// throws std::system_error naming `operation`.
[[nodiscard]] pid_t ForkBlocked(const char* operation);

/// Waits for a child that is about to end, and reaps it. Returns its status as from waitpid(2).
int WaitFor(pid_t child);

}  // namespace zklock::process
