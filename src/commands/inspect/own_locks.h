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

/// A contender of --hold that claims to hold for us.
struct OwnHold {
  lock::Ticket ticket;
  HolderClaim claim;
};
/// The holders of `lock` whose data claims that they hold by --hold for the process `pid` or an
/// ancestor of it, the nearest first. AskHolder() asks for proof. Closes the session. Throws Exit.
[[nodiscard]] std::vector<OwnHold> FindOwnHolds(ShortSession& session, const lock::LockName& lock,
                                                pid_t pid);

/// `zklock inspect --mine`: whether the locks that this command runs under, or its shell holds, are
/// still held, by a committed check. Returns 0 if all are, 76 if one is not or none is known.
/// Throws Exit if that could not be found out.
[[nodiscard]] int InspectMine(const cli::InspectOptions& options, process::Signals& signals,
                              cli::Report& report);

}  // namespace zklock::commands
