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
#include "lock/data/acquire_request.h"
#include "lock/data/ticket.h"
#include "process/nesting/nesting_link.h"
#include "protocol/contender_name.h"

namespace zklock::commands {

/// Moves the LOCKs that ancestors already hold for the process `beneficiary`, which is this one or
/// the owner of --hold, from `wanted` to RunContext::ancestors. $ZKLOCK_HELD names these holders;
/// an entry counts only if the holder is a living ancestor, a committed check shows that its
/// contender still exists, and it lets us run under its lock. Otherwise (a copied environment, a
/// daemon that outlived its lock, a lost lock) the LOCK remains in `wanted`. Throws Exit if this
/// could not be determined, and cli::UsageError if the wait would never end: if a reader asks to
/// write, if ancestors hold all permits or have reserved the LOCK, if the ancestor does not answer,
/// or if the wait has no limit, with --no-nest or for an owner that is not below the ancestor.
void RemoveInheritedLocks(RunContext& context, std::vector<cli::WantedLock>& wanted,
                          pid_t beneficiary);

/// Sockets of keepers that were asked and do not hold the LOCK for us.
using DisprovenKeepers = std::set<std::string>;

/// Returns a function that tells whether a holder of the LOCK claims to hold it with --hold for
/// `beneficiary` or one of its ancestors; empty if keepers need not be asked. Waiting for such a
/// holder in `mode` might never end, so UseExistingHold() asks the keeper. `context` and
/// `disproven` must outlive the result.
[[nodiscard]] lock::HoldsForUs HoldsFor(RunContext& context, pid_t beneficiary, protocol::Mode mode,
                                        const DisprovenKeepers& disproven);

/// Returns the preemption that --preempt requests; none without it. Never asks the contenders of
/// `beneficiary` or its ancestors to leave.
[[nodiscard]] std::optional<lock::Preempt> PreemptFor(RunContext& context, pid_t beneficiary);

/// A keeper that claims to hold a LOCK for us.
struct KeeperFound {
  lock::Ticket holder;
  std::string data;  ///< of its contender
};
/// Asks the keeper for proof. Returns the link that lets us run under its lock; if we have to
/// queue instead, returns null and adds the keeper to `disproven`. Throws Exit if a signal arrives,
/// and cli::UsageError if the wait would never end.
[[nodiscard]] std::unique_ptr<process::NestingLink> UseExistingHold(RunContext& context,
                                                                    const KeeperFound& found,
                                                                    protocol::Mode mode,
                                                                    DisprovenKeepers& disproven);

/// Returns the error for a --no-nest reader without a time limit that would wait forever: the
/// writer ahead of it waits for an ancestor that holds `lock` as a reader.
[[nodiscard]] cli::UsageError WaitsBehindWriter(const std::string& lock);

}  // namespace zklock::commands
