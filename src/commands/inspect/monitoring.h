#pragma once

#include <string_view>

#include "cli/options/options.h"
#include "cli/reports/report.h"
#include "process/loop/signals.h"

// The output of inspect for monitoring systems. Each function returns the exit status.

namespace zklock::commands {

/// `zklock inspect --check`: judges LOCKs; like a monitoring plugin, prints one line and returns a
/// status. If it cannot judge them, the line says why, and the status is 3.
[[nodiscard]] int InspectCheck(const cli::InspectOptions& options, process::Signals& signals,
                               cli::Report& report);

/// Prints the line for an exception that was thrown before or during the check, and returns the
/// status.
[[nodiscard]] int CheckFailed(std::string_view why);

/// `zklock inspect --prometheus`: prints metrics, or replaces a file with them, once the survey has
/// succeeded.
[[nodiscard]] int InspectMetrics(const cli::InspectOptions& options, process::Signals& signals,
                                 cli::Report& report);

}  // namespace zklock::commands
