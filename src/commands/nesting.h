#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "cli/options.h"
#include "cli/report.h"
#include "commands/ancestor_locks.h"
#include "commands/event_broadcaster.h"
#include "lock/holder_search.h"
#include "lock/ticket.h"
#include "process/identity.h"
#include "process/signals.h"
#include "protocol/held.h"

namespace zklock::commands {

/// Leaves out of `wanted` what zklocks above us hold for the process `below`, ours or one that
/// somebody named, and adds it to `outer`: $ZKLOCK_HELD says so, they are living ancestors, their
/// contenders are still there by a committed check, and they let us run under their locks. With a
/// copied environment, in a daemon that outlived its lock, or after a lost lock we queue like
/// anybody else. Returns the exit status when that could not be found out; the error has been
/// reported. Throws cli::UsageError where waiting would never end: a reader asks to write, all
/// permits are held above us, the zklock above does not answer, or --no-nest or somebody who is not
/// below asks to wait without end.
[[nodiscard]] std::optional<int> RemoveInheritedLocks(const cli::RunOptions& options,
                                                      std::vector<cli::WantedLock>& wanted,
                                                      AncestorLocks& outer, pid_t below,
                                                      process::Signals& signals,
                                                      cli::Report& report, EventBroadcaster& steps);

/// The sockets of keepers that were asked, and do not hold for us.
using PassedOver = std::set<std::string>;

/// Whether the holder of a LOCK for which the process `below`, or one that it starts, wants to
/// queue in `mode` says that it holds by --hold for that process or one above it: then queueing may
/// make no sense, and GoOnUnderKeeper() asks it. Empty where that is not to be asked. All but the
/// mode outlive it.
[[nodiscard]] lock::HoldsForUs HoldsFor(const cli::RunOptions& options,
                                        const process::Identity& self, pid_t below,
                                        protocol::Mode mode, const PassedOver& passed_over);

/// For a reader with --no-nest and without a limit, which waits although a reader above it holds
/// `lock`: a writer is between the two.
[[nodiscard]] cli::UsageError WaitsBehindWriter(const std::string& lock);

/// A keeper that says that it holds a LOCK for us.
struct KeeperFound {
  lock::Ticket holder;
  std::string data;  ///< of its contender
};
/// Asks the keeper for proof. The link where we may run under its lock. None: we queue like anybody
/// else, and it is in `passed_over`. Or the exit status; the error has been reported. Throws
/// cli::UsageError where waiting would never end.
[[nodiscard]] std::variant<std::unique_ptr<process::NestingLink>, int> GoOnUnderKeeper(
    const KeeperFound& found, const cli::RunOptions& options, protocol::Mode mode,
    const process::Identity& self, PassedOver& passed_over, process::Signals& signals,
    cli::Report& report);

}  // namespace zklock::commands
