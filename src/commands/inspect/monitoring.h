#pragma once

#include <string_view>

#include "cli/options/options.h"
#include "cli/reports/report.h"
#include "process/loop/signals.h"

// What inspect prints for monitoring systems. Each function returns the exit status.

namespace zklock::commands {

/// `zklock inspect --check`: judges LOCKs, in one line and the status of a monitoring plugin. If
/// that cannot be done, the line says why, and the status is 3.
[[nodiscard]] int InspectCheck(const cli::InspectOptions& options, process::Signals& signals,
                               cli::Report& report);

/// The line and the status for an exception that was thrown before or during the check.
[[nodiscard]] int CheckFailed(std::string_view why);

/// `zklock inspect --prometheus`: prints metrics, or replaces a file by them, once the survey has
/// ended with success.
[[nodiscard]] int InspectMetrics(const cli::InspectOptions& options, process::Signals& signals,
                                 cli::Report& report);

}  // namespace zklock::commands
