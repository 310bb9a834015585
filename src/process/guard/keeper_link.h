#pragma once

#include <sys/types.h>

#include "base/unique_fd.h"

namespace zklock::process {

/// What ForkKeeper() returns in both processes.
struct KeeperFork {
  pid_t keeper = 0;  ///< 0: this process is the keeper
  UniqueFd link;     ///< to the other process; non-blocking
};

/// Forks the keeper of `--hold` from the zklock that the user is waiting for. The keeper has closed
/// every inherited descriptor except standard error, and its working directory is "/". Throws
/// std::system_error.
///
/// The keeper reports "held" once it has given up standard error and its session. The parent
/// acknowledges the report and exits. If the parent exits without doing so, the keeper releases the
/// lock.
[[nodiscard]] KeeperFork ForkKeeper();

/// Gives up the terminal and standard error, and reports "held". For the keeper.
void ReportHeld(int link);
/// Acknowledges the report. For the parent.
void AcknowledgeHeld(int link);

enum class LinkState {
  kNothing,  ///< no message yet
  kMessage,  ///< "held", or its acknowledgement
  kClosed,   ///< the other process has ended, or closed its end
};
[[nodiscard]] LinkState ReadLink(int link);

}  // namespace zklock::process
