#pragma once

#include "cli/options/options.h"
#include "cli/reports/report.h"
#include "process/loop/signals.h"

namespace zklock::commands {

/// `inspect --servers-report`: asks each server by itself whether it is fit for locks, prints what
/// was found, and returns the exit status: 0, 1 if something should be fixed, or that of any
/// subcommand if no server was reached. All servers together get --connect-timeout. Nothing is left
/// on them.
[[nodiscard]] int ReportServers(const cli::InspectOptions& options, process::Signals& signals,
                                cli::Report& report);

}  // namespace zklock::commands
