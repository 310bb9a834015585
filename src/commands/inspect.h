#pragma once

#include "cli/options.h"
#include "cli/report.h"
#include "process/signals.h"

namespace zklock::commands {

/// `zklock inspect`: prints one LOCK's queue, or every lock in use below a path, on standard
/// output; with --mine nothing (commands/own_locks.h). Returns the exit status; with --quiet
/// nothing is printed and it says free (0) or held (75).
[[nodiscard]] int Inspect(const cli::InspectOptions& options, process::Signals& signals,
                          cli::Report& report);

}  // namespace zklock::commands
