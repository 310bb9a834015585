#pragma once

namespace zklock::process {

/// Locks into memory the pages that this process has touched or will touch (mlock2(2)): a guard
/// must act in time even if the host is swapping. Locks only as much as RLIMIT_MEMLOCK permits, and
/// nothing on a kernel without mlock2. Child processes do not inherit the locks.
void LockMemory();

}  // namespace zklock::process
