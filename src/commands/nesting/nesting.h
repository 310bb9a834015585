#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "cli/options/options.h"
#include "commands/session/run_context.h"
#include "lock/ahead/holder_search.h"
#include "lock/data/ticket.h"
#include "process/nesting/nesting_link.h"
#include "protocol/contender_name.h"

namespace zklock::commands {

/// Moves from `wanted` to RunContext::ancestors what ancestors of the process `beneficiary`, which
/// is this one or was named by the user, hold for it. $ZKLOCK_HELD names them; it counts only if
/// they are living ancestors, their contenders still exist by a committed check, and they let us
/// run under their locks. Otherwise (a copied environment, a daemon that outlived its lock, a lost
/// lock) the LOCK is queued for. Throws Exit if that could not be found out, and cli::UsageError
/// where waiting would never end: a reader asks to write, ancestors hold all permits or have
/// reserved the LOCK, the ancestor does not answer, or --no-nest, or an owner that is not below the
/// ancestor, asks to wait without a limit.
void RemoveInheritedLocks(RunContext& context, std::vector<cli::WantedLock>& wanted,
                          pid_t beneficiary);

/// Sockets of keepers that were asked, and do not hold for us.
using DisprovenKeepers = std::set<std::string>;

/// For an acquisition: whether a holder of the LOCK claims to hold by --hold for `beneficiary` or
/// an ancestor of it. Then waiting in `mode` may make no sense, and UseExistingHold() asks the
/// keeper. Empty where it is not to be asked. `context` and `disproven` outlive the result.
[[nodiscard]] lock::HoldsForUs HoldsFor(RunContext& context, pid_t beneficiary, protocol::Mode mode,
                                        const DisprovenKeepers& disproven);

/// For --preempt; none without it. Never asks what `beneficiary` or its ancestors hold or wait for.
[[nodiscard]] std::optional<lock::Preempt> PreemptFor(RunContext& context, pid_t beneficiary);

/// A keeper that claims to hold a LOCK for us.
struct KeeperFound {
  lock::Ticket holder;
  std::string data;  ///< of its contender
};
/// Asks the keeper for proof. Returns the link under which we may run; or null if we have to queue:
/// then the keeper is in `disproven`. Throws Exit if a signal arrives, and cli::UsageError where
/// waiting would never end.
[[nodiscard]] std::unique_ptr<process::NestingLink> UseExistingHold(RunContext& context,
                                                                    const KeeperFound& found,
                                                                    protocol::Mode mode,
                                                                    DisprovenKeepers& disproven);

/// The error of a --no-nest reader without a time limit that an ancestor's read lock does not let
/// wait: a writer between the two waits for the ancestor.
[[nodiscard]] cli::UsageError WaitsBehindWriter(const std::string& lock);

}  // namespace zklock::commands
