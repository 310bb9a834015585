#pragma once

#include "cli/options/options.h"
#include "cli/reports/report.h"
#include "process/loop/signals.h"

namespace zklock::commands {

/// `zklock release LOCK`: releases what the calling shell holds by --hold. With --contender,
/// --holders or --all it asks other contenders to leave, or deletes them (--force), after it has
/// shown them and asked the user.
[[nodiscard]] int Release(const cli::ReleaseOptions& options, process::Signals& signals,
                          cli::Report& report);

}  // namespace zklock::commands
