#pragma once

#include "cli/options.h"
#include "cli/report.h"
#include "process/signals.h"

namespace zklock::commands {

/// `zklock inspect --mine`: whether what this command runs under, or what its shell holds, is still
/// held, by a committed check. 0 if all of it is, 76 if something is not, or nothing is known to
/// be; else the status of what kept it from finding out.
[[nodiscard]] int InspectMine(const cli::InspectOptions& options, process::Signals& signals,
                              cli::Report& report);

}  // namespace zklock::commands
