#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace zklock::process {

/// What happens to processes that outlive the command.
enum class Descendants {
  kLeave,  ///< left alone, and listed in Ended
  kWait,   ///< the command's end is reported only once they have also ended
  kKill,   ///< sent the stop signal, then KILL, before the command's end is reported
};

/// What to run, and how to end it.
struct CommandSpec {
  std::string executable;              ///< from FindExecutable
  std::vector<std::string> arguments;  ///< argv; the first is the name as the user typed it
  int stop_signal = 15;                ///< the first signal sent to a tree that must end
  Duration kill_after{};               ///< the grace before KILL, until SetLease() sets another
  Duration max_run = Duration::max();  ///< the tree must end this long after the command is
                                       ///< executed
  Descendants descendants = Descendants::kLeave;
  bool outlives_lease = false;  ///< the end of the lease does not end an executed command
  /// The cgroup directory below which the command gets its own cgroup; empty: no cgroup.
  std::string cgroup_parent{};
  bool requires_cgroup = false;  ///< the command is not started without one
  /// Links to the ancestors that hold locks for the command (NestingLink). They stay open in the
  /// guard until the tree has ended, even if zklock dies.
  std::vector<int> kept_open{};
  /// Closes the session. Called in the guard once zklock has died unexpectedly and the tree has
  /// ended. Not called if a process that could not be signalled survives: the lock must not be
  /// released early. All signals are blocked, descriptors 0 to 2 are /dev/null, and the others are
  /// closed. Must not throw.
  std::function<void()> when_orphaned;
};

}  // namespace zklock::process
