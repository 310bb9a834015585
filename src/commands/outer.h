#pragma once

#include <sys/types.h>

#include <optional>
#include <variant>
#include <vector>

#include "cli/contender_data.h"
#include "cli/options.h"
#include "cli/report.h"
#include "commands/steps.h"
#include "lock/holder_search.h"
#include "lock/ticket.h"
#include "process/identity.h"
#include "process/signals.h"
#include "protocol/held.h"

namespace zklock::commands {

/// What the living zklocks hold that the process `below` runs under, by $ZKLOCK_HELD: a claim, to
/// be checked. The outermost first.
[[nodiscard]] std::vector<protocol::HeldLock> HeldAbove(pid_t below);

/// Leaves out of `wanted` what zklocks above us hold for the process `below`, ours or one that
/// somebody named, and adds their contenders to `above`: $ZKLOCK_HELD says so, they are living
/// ancestors, and their contenders are still there by a committed check. A copied environment, a
/// daemon that outlived its lock, or a lock that was lost makes us a stranger. The exit status,
/// when that could not be found out; why has been said. Throws cli::UsageError where waiting would
/// never end: a reader asks to write, all permits are held above us, or --no-nest or somebody who
/// is not below asks to wait without end.
[[nodiscard]] std::optional<int> LeaveOutWhatIsHeldAbove(const cli::RunOptions& options,
                                                         std::vector<cli::WantedLock>& wanted,
                                                         std::vector<lock::Ticket>& above,
                                                         pid_t below, process::Signals& signals,
                                                         cli::Report& report, Steps& steps);

/// Whether who holds a LOCK for which the process `below`, or one that it starts, wants to queue in
/// `mode` holds it by --hold for that process or one above it, so that queueing makes no sense.
/// Empty where that is not to be asked. `self` outlives it.
[[nodiscard]] lock::HoldsForUs HoldsFor(const cli::RunOptions& options,
                                        const process::Identity& self, pid_t below,
                                        protocol::Mode mode);

/// Nobody holds it for us.
struct NotHeldForUs {};
/// A contender of --hold, and the shell that it holds for.
struct OwnHold {
  lock::Ticket ticket;
  cli::OwnerData owner;
};
/// A signal ended the look; nothing has been said.
struct LookStopped {
  int signal_number = 0;
};
/// Or the exit status, when that could not be found out; why has been said.
using FoundHold = std::variant<OwnHold, NotHeldForUs, LookStopped, int>;

/// Whether a shell holds `lock` by --hold that is the process `below` or above it: the data of the
/// holders says so, of this host, boot and pid namespace, and the contender is still there by a
/// committed check. The nearest one.
[[nodiscard]] FoundHold LookForHold(const cli::ServerOptions& server, const lock::LockName& lock,
                                    pid_t below, process::Signals& signals, cli::Report& report);

/// Who is below a holder of `held` goes on under it. Throws as LeaveOutWhatIsHeldAbove where it may
/// not.
void GoOnUnder(protocol::Mode held, const cli::RunOptions& options, const lock::LockName& lock,
               protocol::Mode mode);

}  // namespace zklock::commands
