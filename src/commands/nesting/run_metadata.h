#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options/options.h"
#include "lock/data/ticket.h"
#include "process/tree/identity.h"
#include "process/tree/owner.h"
#include "protocol/contender_name.h"

namespace zklock::commands {

// What a run publishes about itself: to other contenders, and to its command.

/// Returns a variable of our own environment; none if it is not set.
[[nodiscard]] std::optional<std::string> GetEnvironment(const char* name);

/// Returns the data of our contender in `wanted`, which everyone who can read the LOCK can read.
/// `contained`: the command gets a cgroup of its own.
[[nodiscard]] std::string ContenderDataFor(const cli::RunOptions& options,
                                           const cli::WantedLock& wanted,
                                           const process::Identity& self, bool contained);

struct KeeperIdentity {
  const process::Identity& self;
  const process::Owner& owner;
  const std::string& socket;  ///< where it answers runs nested below the owner
};
/// Returns the same for a keeper's contender.
[[nodiscard]] std::string KeeperDataFor(const cli::RunOptions& options,
                                        const cli::WantedLock& wanted,
                                        const KeeperIdentity& keeper);

/// Returns the command's environment: our own, plus variables for the contenders that the command
/// runs under. These are `own`, which nested runs can use by connecting to `self` at `socket`, and
/// `inherited`, the contenders of the zklock processes above `self`.
[[nodiscard]] std::vector<std::string> EnvironmentFor(const std::vector<lock::Ticket>& own,
                                                      const std::vector<lock::Ticket>& inherited,
                                                      const process::Identity& self,
                                                      const std::string& socket);

}  // namespace zklock::commands
