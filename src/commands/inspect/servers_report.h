#pragma once

#include "cli/options/options.h"
#include "cli/reports/report.h"
#include "process/loop/signals.h"

namespace zklock::commands {

/// `inspect --servers-report`: checks for each server separately whether it is fit for locks,
/// prints the findings, and returns the exit status: 0; 1 if something should be fixed; or, if no
/// server was reached, the usual status for that. --connect-timeout limits the time for all servers
/// together. Leaves nothing on the servers.
[[nodiscard]] int ReportServers(const cli::InspectOptions& options, process::Signals& signals,
                                cli::Report& report);

}  // namespace zklock::commands
