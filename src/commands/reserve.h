#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/parsed_command_line.h"
#include "commands/queue_wait.h"
#include "commands/run_context.h"
#include "commands/session_driver.h"
#include "lock/ticket.h"
#include "protocol/contender_name.h"
#include "protocol/reservation.h"

namespace zklock::commands {

/// None without --reserve.
[[nodiscard]] std::optional<protocol::ReservationRequest> ReservationRequestOf(
    const cli::RunOptions& options);

/// Makes reservations of the locks that were taken, unless they are reserved already, and closes
/// the session. Returns the reservations, by LOCK. Throws Exit. Signals are not looked at
/// meanwhile: they cannot undo the reservations. `contender_data`: as for AcquireTask.
[[nodiscard]] std::vector<lock::Ticket> Reserve(
    RunContext& context, SessionDriver& session_driver, const TakenLocks& taken,
    const std::function<std::string(protocol::Mode)>& contender_data);

}  // namespace zklock::commands
