#pragma once

#include "cli/options/options.h"
#include "cli/reports/report.h"
#include "process/loop/signals.h"

namespace zklock::commands {

/// `zklock release LOCK`: releases the LOCK that the calling shell holds with --hold. With
/// --reserve, releases reservations. With --contender, --position, --host, --holders or --all,
/// shows these contenders, asks the user to confirm, and asks them to leave or, with --force,
/// deletes them.
[[nodiscard]] int Release(const cli::ReleaseOptions& options, process::Signals& signals,
                          cli::Report& report);

}  // namespace zklock::commands
