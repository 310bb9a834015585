#pragma once

namespace zklock::process {

/// Gives this forked process a name of its own, so that `pkill zklock` and `kill -9 $(pidof
/// zklock)` spare it: the one goes by the process's name, the other by the first word of its
/// command line.
void TakeGuardName();

}  // namespace zklock::process
