#pragma once

#include <initializer_list>
#include <vector>

namespace zklock::process {

/// Puts 0, 1 and 2 on /dev/null and closes every other descriptor but `kept` (which are above 2; -1
/// is none), for a process that lives on beside the one that was started: it must keep no pipe of
/// the user's open, and no connection.
void KeepOnlyDescriptors(const std::vector<int>& kept);

/// Changes to "/": a process that lives on beside the command must not keep a file system busy.
void LeaveWorkingDirectory();

/// Puts these streams (of 0, 1 and 2) on /dev/null.
void Silence(std::initializer_list<int> streams);

/// Closes every descriptor above 2 that exec has passed on: those of zklock's own are all
/// close-on-exec.
void CloseInherited();

}  // namespace zklock::process
