#pragma once

#include <sys/types.h>

#include "base/unique_fd.h"

namespace zklock::process {

/// What ForkKeeper() returns in both processes.
struct KeeperFork {
  pid_t keeper = 0;  ///< 0: this process is the keeper
  UniqueFd link;     ///< to the other process; does not block
};

/// Forks the keeper of `--hold` from the zklock that the user waits for: a child that has closed
/// every descriptor it was started with except standard error, and whose working directory is the
/// root. Throws std::system_error.
///
/// The keeper reports "held" once it has left standard error and its session. The parent
/// acknowledges that and exits. If it exits without, the keeper releases the lock.
[[nodiscard]] KeeperFork ForkKeeper();

/// In the keeper: leaves the terminal and standard error, and reports "held".
void ReportHeld(int link);
/// In the parent: acknowledges that.
void AcknowledgeHeld(int link);

/// In the parent: waits for the keeper's end. A status as from waitpid.
[[nodiscard]] int ReapKeeper(pid_t keeper);

enum class LinkState {
  kNothing,  ///< none yet
  kMessage,  ///< "held", or its acknowledgement
  kClosed,   ///< the other process has ended, or closed its end
};
[[nodiscard]] LinkState ReadLink(int link);

}  // namespace zklock::process
