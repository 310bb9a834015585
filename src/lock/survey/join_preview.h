#pragma once

#include <optional>
#include <string>

#include "lock/data/acquire_request.h"
#include "lock/data/last_runs.h"
#include "lock/data/outcome.h"
#include "lock/data/ticket.h"
#include "lock/operations/calls.h"
#include "zookeeper/store.h"

// For --dry-run: what a contender would encounter in a LOCK, determined without creating one. All
// of these functions throw OperationFailed.

namespace zklock::lock {

/// Whether the servers would let us create a contender, and who else may create one.
struct QueueAccess {
  std::string path;                      ///< the queue, or the nearest znode above it that exists
  zookeeper::AclReply acl;               ///< of that znode
  std::optional<RecordFailure> refusal;  ///< why the servers would refuse; none if they would not
};
/// `and_delete`: whether the run must be able to delete its contender while it keeps the session.
[[nodiscard]] QueueAccess FindQueueAccess(Calls& calls, const AcquireRequest& request,
                                          bool and_delete);

/// Returns why LOCK cannot be used for `request`, judging by its present contenders; none if it
/// can.
[[nodiscard]] std::optional<Unusable> FindUnusable(Calls& calls, const AcquireRequest& request);

/// Reads the records that `intervals` depend on.
[[nodiscard]] LastRuns ReadLastRuns(Calls& calls, const LockName& lock,
                                    const RunIntervals& intervals);
/// Throws OperationFailed if we lack permission to learn the servers' time in the LOCK of
/// `reserved` or, if the run `renews` it, to write to it.
void RequireReservationIsUsable(Calls& calls, const ReservedLock& reserved, bool renews);

/// For --once-per: throws OperationFailed if we lack permission to write to the last start of LOCK.
/// Does not throw if there is no last start: a run would create it, as it creates a contender.
void RequireStartIsWritable(Calls& calls, const LockName& lock);

}  // namespace zklock::lock
