#pragma once

#include "cli/options/options.h"
#include "cli/reports/report.h"
#include "process/loop/signals.h"

namespace zklock::commands {

/// `zklock inspect`: prints one LOCK's queue, or every lock in use below a path, on standard
/// output. Prints nothing with --mine (commands/inspect/own_locks.h) or --quiet. With --quiet, the
/// exit status is 0 for a free lock and 75 for a held one.
[[nodiscard]] int Inspect(const cli::InspectOptions& options, process::Signals& signals,
                          cli::Report& report);

}  // namespace zklock::commands
