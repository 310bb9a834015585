#pragma once

#include <sys/types.h>

#include <vector>

#include "cli/options/options.h"
#include "cli/reports/report.h"
#include "commands/nesting/holder_claim.h"
#include "commands/session/short_session.h"
#include "lock/data/ticket.h"
#include "process/loop/signals.h"

namespace zklock::commands {

/// A keeper's contender (--hold) that claims to hold the LOCK for us.
struct OwnHold {
  lock::Ticket ticket;
  HolderClaim claim;
};
/// Finds the holders of `lock` that, according to their data, hold it with --hold for the process
/// `pid` or one of its ancestors, the nearest first. AskHolder() asks for proof. Closes the
/// session. Throws Exit.
[[nodiscard]] std::vector<OwnHold> FindOwnHolds(ShortSession& session, const lock::LockName& lock,
                                                pid_t pid);

/// `zklock inspect --mine`: finds out, by a committed check, whether the locks that this command
/// runs under, or that its shell holds, are still held. Returns 0 if all are, 76 if one is not or
/// none is known. Throws Exit if that could not be determined.
[[nodiscard]] int InspectMine(const cli::InspectOptions& options, process::Signals& signals,
                              cli::Report& report);

}  // namespace zklock::commands
