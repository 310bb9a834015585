#pragma once

#include <initializer_list>
#include <vector>

namespace zklock::process {

/// Redirects 0, 1 and 2 to /dev/null and closes every other descriptor except `kept` (all above 2;
/// -1 is ignored). For a process that the user did not start: it must not keep the user's pipes and
/// connections open.
void KeepOnlyDescriptors(const std::vector<int>& kept);

/// Changes to "/": a process that runs alongside the command must not keep a file system busy.
void LeaveWorkingDirectory();

/// Redirects these standard streams (0, 1 or 2) to /dev/null.
void Silence(std::initializer_list<int> streams);

/// Closes every descriptor above 2 that was inherited across exec, that is, those without
/// close-on-exec.
void CloseInherited();

}  // namespace zklock::process
