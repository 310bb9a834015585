#pragma once

namespace zklock::process {

/// Keeps in memory what this process has touched, and what it touches from now on (mlock2(2)): a
/// guard must act in time on a host that swaps. Locks only as much as RLIMIT_MEMLOCK permits, and
/// nothing on a kernel without mlock2. A process that is forked later has nothing locked.
void LockMemory();

}  // namespace zklock::process
