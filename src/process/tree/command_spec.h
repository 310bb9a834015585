#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace zklock::process {

/// What happens to processes that outlive the command.
enum class Descendants {
  kLeave,  ///< left alone, and named in Ended
  kWait,   ///< the end is reported once they have ended too
  kKill,   ///< ended like the whole tree before the end is reported
};

/// What to run, and how to end it.
struct CommandSpec {
  std::string executable;              ///< from FindExecutable
  std::vector<std::string> arguments;  ///< argv; the first is the name as the user typed it
  int stop_signal = 15;                ///< what the tree gets first when it must end
  Duration kill_after{};               ///< between the stop signal and KILL, until SetLease()
  Duration max_run = Duration::max();  ///< from its execution until the tree has to end
  Descendants descendants = Descendants::kLeave;
  bool outlives_lease = false;  ///< once executed, the command is not ended with the lease
  /// The directory of the cgroup below which the command gets its own; empty: it gets none.
  std::string cgroup_parent{};
  bool requires_cgroup = false;  ///< it is not started without one
  /// Stay open in the guard until the tree has ended, even if zklock dies.
  std::vector<int> kept_open{};
  /// Run in the guard after zklock died unexpectedly and the tree has ended: closes the session.
  /// Not run if a process survived because it could not be signalled: the lock must not be released
  /// early. All signals are blocked, 0 to 2 are /dev/null, other descriptors are closed. Must not
  /// throw.
  std::function<void()> when_orphaned;
};

}  // namespace zklock::process
