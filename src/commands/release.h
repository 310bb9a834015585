#pragma once

#include "cli/options.h"
#include "cli/report.h"
#include "process/signals.h"

namespace zklock::commands {

/// `zklock release LOCK`: lets go of what the calling shell holds by --hold. With --contender,
/// --holders or --all: asks others to let go, or deletes their contenders (--force), having shown
/// who that is and asked. Returns the exit status.
[[nodiscard]] int Release(const cli::ReleaseOptions& options, process::Signals& signals,
                          cli::Report& report);

}  // namespace zklock::commands
