#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/options.h"
#include "commands/run/queue_wait.h"
#include "commands/session/run_context.h"
#include "commands/session/session_driver.h"
#include "lock/data/ticket.h"
#include "protocol/contender_name.h"
#include "protocol/reservation.h"

namespace zklock::commands {

/// Returns the reservation that --reserve requests; none without it.
[[nodiscard]] std::optional<protocol::ReservationRequest> ReservationRequestOf(
    const cli::RunOptions& options);

/// Reserves the locks that were taken, unless they are already reserved, and closes the session.
/// With --for, renews those that are. Returns the reservations, in the order of the LOCKs' paths.
/// Returns none, and leaves the session open, if an existing reservation is gone or has ended, or
/// if an earlier run comes first (--any); the caller must then queue again. Throws Exit. Leaves
/// signals pending while it makes reservations: a signal could not undo them. `contender_data`: as
/// in AcquireTask.
///
/// With --any, uses a reservation for our ID in any of the LOCKs instead of what was taken. If
/// nothing was taken and there is no such reservation, also returns none.
[[nodiscard]] std::optional<std::vector<lock::Ticket>> Reserve(
    RunContext& context, SessionDriver& session_driver, const TakenLocks& taken,
    const std::function<std::string(const cli::WantedLock&)>& contender_data);

/// For --resume: finds the reservations of all LOCKs, and closes the session. Returns them in the
/// order of the LOCKs' paths. Throws Exit if one of the LOCKs is not reserved; with --any, if none
/// is.
[[nodiscard]] std::vector<lock::Ticket> Resume(RunContext& context, SessionDriver& session_driver);

/// Call when the command has ended: reports the reservations that ended before it. Nothing depends
/// on the servers' answer, so it waits only briefly.
void ReportOutlived(RunContext& context, const std::vector<lock::Ticket>& reserved);

}  // namespace zklock::commands
