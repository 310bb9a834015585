#pragma once

#include <optional>
#include <string>

#include "lock/data/ticket.h"
#include "lock/operations/calls.h"
#include "zookeeper/store.h"

namespace zklock::lock {

struct ReservationRelease {
  bool has_released = false;                 ///< false: it was already gone
  std::optional<zookeeper::Error> unkept{};  ///< why its end is missing from the history
};

/// Releases the reservation for `id`, whose znode is `path`, chroot included. Deletes the znode and
/// those of its other permits. The same transaction writes the record of the release, if zklock
/// keeps one in LOCK's data, and the end of the reservation in LOCK's history, if its start was
/// recorded there. If one of these cannot be written, the reservation is released without it.
/// Throws OperationFailed.
///
/// The znode is read first, and left alone if it is no longer a reservation for this ID. A second
/// delete after a lost reply does no harm, since each name is used once.
[[nodiscard]] ReservationRelease ReleaseReservation(Calls& calls, const LockName& lock,
                                                    const std::string& path, const std::string& id);

}  // namespace zklock::lock
