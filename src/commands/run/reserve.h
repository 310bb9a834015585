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

/// None without --reserve.
[[nodiscard]] std::optional<protocol::ReservationRequest> ReservationRequestOf(
    const cli::RunOptions& options);

/// Makes reservations of the locks that were taken, unless they are reserved already, and closes
/// the session. With --for, renews those that are. Returns the reservations, by LOCK; none if one
/// of those that were found is gone or has ended, or if it is an earlier run's turn (--any), so
/// that the LOCKs have to be queued for again. Throws Exit. Signals are not looked at while
/// reservations are made: they cannot undo them. `contender_data`: as for AcquireTask.
///
/// With --any, a reservation of our ID in any of the LOCKs is used instead of what was taken. If
/// nothing was taken and there is none, returns none and leaves the session open.
[[nodiscard]] std::optional<std::vector<lock::Ticket>> Reserve(
    RunContext& context, SessionDriver& session_driver, const TakenLocks& taken,
    const std::function<std::string(const cli::WantedLock&)>& contender_data);

/// For --resume: finds the reservations of all LOCKs, and closes the session. Returns them by LOCK.
/// Throws Exit if one of the LOCKs is not reserved; with --any, if none is.
[[nodiscard]] std::vector<lock::Ticket> Resume(RunContext& context, SessionDriver& session_driver);

/// The command has ended: reports the reservations that ended before it. Nothing depends on the
/// answer, so it is waited for only briefly.
void ReportOutlived(RunContext& context, const std::vector<lock::Ticket>& reserved);

}  // namespace zklock::commands
