#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lock/data/contender_data.h"
#include "lock/data/ticket.h"
#include "lock/operations/calls.h"

namespace zklock::lock {

// Operations on contenders of other processes, which are children of `lock`. They throw
// OperationFailed.

/// Returns the znodes of the run that the contender at `path` belongs to: for a permit, `path` and
/// the run's other permits that were created with it; otherwise just `path`.
[[nodiscard]] std::vector<std::string> PathsOfRun(Calls& calls, const std::string& path);

/// Deletes a contender, and in the same transaction the other permits of its run. Returns false if
/// it was already gone.
///
/// The znode is read first, and deleted only if it still is that contender and has not been written
/// to in between: a reservation takes the name of the contender that it was converted from, and in
/// Dialect::kSimple all contenders have one name. ZooKeeper cannot check both conditions in one
/// request. The delete requires the version that was read, which the conversion changes. But a
/// later contender of Dialect::kSimple that has been written to equally often has the same version,
/// and is then deleted by mistake.
bool DeleteContender(Calls& calls, const LockName& lock, const ContenderId& contender);

/// Records in the history of `lock`, if it contains the run with this token, that the run's
/// contender was deleted, by whom and why. Returns the error if that could not be written; does not
/// throw OperationFailed, since the contender is gone anyway.
std::optional<zookeeper::Error> EnterTaken(Calls& calls, const LockName& lock, std::int64_t token,
                                           const ReleaseRequest& request);

/// Asks a contender to release its lock or to leave the queue, by writing to its znode. Returns
/// false if it was already gone. `edit`: given the old data, returns the new.
///
/// The data is written only if it has not changed since it was read. Asking again after a lost
/// reply does no harm. A later contender with the same name is not asked, unless it takes the name
/// between the read and the write.
bool RequestRelease(Calls& calls, const LockName& lock, const ContenderId& contender,
                    const std::function<std::string(const std::string&)>& edit);

/// For --dry-run: the checks of DeleteContender() and RequestRelease() without their effects.
/// Return whether the contender at `path` exists, and throw if the servers would refuse.
[[nodiscard]] bool MayDelete(Calls& calls, const LockName& lock, const std::string& path);
[[nodiscard]] bool MayRequestRelease(Calls& calls, const LockName& lock, const std::string& path);

/// Waits until a contender is gone, but only for a few seconds. Does not wait for a later contender
/// with the same name. Returns whether it is gone.
[[nodiscard]] bool IsGoneSoon(Calls& calls, const LockName& lock, const ContenderId& contender);
/// Waits until a contender is gone, like IsGoneSoon(), but however long that takes.
void WaitUntilGone(Calls& calls, const LockName& lock, const ContenderId& contender);

/// Checks with a commit whether `contenders` still hold the lock: all of them exist, and none of
/// them is a later contender with the same name. `contenders`: at least one.
[[nodiscard]] bool AreHeld(Calls& calls, const LockName& lock,
                           const std::vector<ContenderId>& contenders);

}  // namespace zklock::lock
