#pragma once

#include <sys/types.h>
#include <sys/wait.h>

#include <string>
#include <vector>

#include "base/exit_status.h"

namespace zklock::process {

/// A process that could not be signalled or was left behind.
struct Survivor {
  pid_t pid = 0;
  std::string name;
  friend bool operator==(const Survivor&, const Survivor&) = default;
};

/// How the command ended.
struct Ended {
  int wait_status = 0;                ///< the command's, as from waitpid; that of a KILL if unknown
  bool guard_failed = false;          ///< the guard died or hung, so zklock ended the tree
  std::vector<Survivor> survivors;    ///< still running, because they could not be signalled
  std::vector<Survivor> left_behind;  ///< with Descendants::kLeave: outlived the command
  // Only if the tree had to end (EndCause):
  bool got_stop = false;     ///< the tree was sent the stop signal
  bool got_kill = false;     ///< the tree was sent KILL
  bool was_refused = false;  ///< no process of the tree could be signalled
};

/// Returns a wait status as shells report it: the exit status, or 128+N for signal N.
[[nodiscard]] inline int ShellStatus(int wait_status) {
  return WIFSIGNALED(wait_status) ? kExitSignalBase + WTERMSIG(wait_status)
                                  : WEXITSTATUS(wait_status);
}

}  // namespace zklock::process
