#pragma once

#include <sys/types.h>

#include "base/unique_fd.h"

namespace zklock::process {

/// What ForkKeeper() gives to both of the processes that return from it.
struct KeeperFork {
  pid_t keeper = 0;  ///< 0: this is the keeper
  UniqueFd link;     ///< to the other one; does not block
};

/// Forks the keeper of `--hold` from the zklock that the user waits for: a child that keeps nothing
/// open of what it was started with but standard error, and has its directory at the root. Throws
/// std::system_error.
///
/// The keeper says "held", and has let go of standard error and of its session by then; the other
/// one answers that it goes, or has gone without an answer: then the keeper lets go of the lock.
[[nodiscard]] KeeperFork ForkKeeper();

/// In the keeper: leaves the terminal and standard error, and says so.
void SayHeld(int link);
/// In the other one: that it has heard.
void SayHeard(int link);

/// Likewise: waits for the keeper's end. A status as from waitpid.
[[nodiscard]] int ReapKeeper(pid_t keeper);

enum class LinkMessage {
  kNothing,  ///< not yet
  kWord,     ///< what the other one had to say
  kGone,     ///< it has ended, or will say nothing
};
[[nodiscard]] LinkMessage ReadLink(int link);

}  // namespace zklock::process
