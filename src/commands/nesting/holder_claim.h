#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "cli/reports/report.h"
#include "lock/data/ticket.h"
#include "process/loop/signals.h"
#include "process/nesting/nesting_link.h"
#include "process/tree/identity.h"
#include "protocol/held.h"

namespace zklock::commands {

/// A claim that a process holds a LOCK for us: from $ZKLOCK_HELD, or from a contender's data, which
/// anyone may have written. AskHolder() finds out whether it is true.
struct HolderClaim {
  std::string node;            ///< the contender's path, chroot included
  process::ProcessId holder;   ///< the process that claims to hold
  std::string socket;          ///< where it listens; empty if unknown
  process::ProcessId owner{};  ///< with --hold the owner, otherwise the holder
  bool is_elsewhere = false;   ///< in another PID namespace: its processes cannot be found here
};
[[nodiscard]] HolderClaim ClaimOf(const protocol::HeldLock& held);
/// Returns none if the data names no process, or comes from another host or boot than that of
/// `self`.
[[nodiscard]] std::optional<HolderClaim> ClaimIn(const std::string& data, const std::string& node,
                                                 const process::Identity& self);

/// Returns the locks that, according to $ZKLOCK_HELD, the process `pid` or its living ancestors
/// hold, the outermost first. These are claims, to be verified.
[[nodiscard]] std::vector<protocol::HeldLock> AncestorHolds(pid_t pid);
/// Likewise, the reservations under which `pid` or its living ancestors run their commands. Each
/// token is the reservation's own, not the czxid of its znode, which is newer.
[[nodiscard]] std::vector<protocol::HeldLock> AncestorReservations(pid_t pid);

/// Returns the locks that, according to $ZKLOCK_HELD, are held by processes that cannot be found as
/// ancestors from here, because they are in another PID or time namespace. These, too, are only
/// claims.
[[nodiscard]] std::vector<protocol::HeldLock> HoldsElsewhere(const process::Identity& self);
/// Returns whether the process in the claim cannot be found from here, but accepts this process as
/// a run nested in it or, if the claim has no node, does not refuse it at once. Blocks for at most
/// half a second.
[[nodiscard]] bool IsHeldElsewhere(const HolderClaim& claim);

/// The process in the claim has ended, or no longer holds the lock.
struct HoldsNothing {};
/// The process does not (or no longer) let runs begin under the lock; or, for kRelease, we run
/// under the lock ourselves.
struct Refuses {};
/// The process is alive, but gives no proof that it holds the lock for us: nothing answers at its
/// socket, another process does, or it does not see us below itself or the owner.
struct NoProof {};
/// So many processes connect to the holder's socket that it has not accepted our connection.
struct Crowded {};
/// The link is in the state kHeld or kReleasing.
using HolderAnswer =
    std::variant<std::unique_ptr<process::NestingLink>, HoldsNothing, Refuses, NoProof, Crowded>;

/// Asks the process in the claim, and waits up to `patience` for its answer. Throws Exit if a
/// signal arrives.
[[nodiscard]] HolderAnswer AskHolder(const HolderClaim& claim, protocol::NestingRequest::Kind kind,
                                     Duration patience, process::Signals& signals,
                                     cli::Report& report);

}  // namespace zklock::commands
