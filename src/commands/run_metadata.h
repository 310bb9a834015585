#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "lock/ticket.h"
#include "process/identity.h"
#include "process/owner.h"

namespace zklock::commands {

// What a run tells of itself, and to whom.

/// A variable of our own environment.
[[nodiscard]] std::optional<std::string> GetEnvironment(const char* name);

/// To all who can read the LOCK: the contender's data, of one that asks for `mode`.
[[nodiscard]] std::string ContenderDataFor(const cli::RunOptions& options, protocol::Mode mode,
                                           const process::Identity& self);
/// The same of a keeper, that holds for `owner` and answers at `socket`.
[[nodiscard]] std::string KeeperDataFor(const cli::RunOptions& options, protocol::Mode mode,
                                        const process::Identity& self, const process::Owner& owner,
                                        const std::string& socket);

/// To the command: our environment as it was, and the contenders that it runs under, those of
/// `self`, which lets others run under them at `socket`, and those that others hold for it.
[[nodiscard]] std::vector<std::string> EnvironmentFor(const std::vector<lock::Ticket>& own,
                                                      const std::vector<lock::Ticket>& above,
                                                      const process::Identity& self,
                                                      const std::string& socket);

}  // namespace zklock::commands
