#pragma once

#include "cli/options.h"
#include "cli/report.h"
#include "process/signals.h"

namespace zklock::commands {

/// `zklock release LOCK --contender NAME --force`: deletes one contender, having shown who that is
/// and asked. Returns the exit status.
[[nodiscard]] int Release(const cli::ReleaseOptions& options, process::Signals& signals,
                          cli::Report& report);

}  // namespace zklock::commands
