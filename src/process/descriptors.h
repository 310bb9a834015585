#pragma once

#include <initializer_list>

namespace zklock::process {

/// Puts 0, 1 and 2 on /dev/null and closes every other descriptor but `kept` (which are above 2; -1
/// is none), for a process that lives on beside the one that was started: it must keep no pipe of
/// the user's open, and no connection.
void KeepOnlyDescriptors(std::initializer_list<int> kept);

}  // namespace zklock::process
