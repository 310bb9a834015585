#pragma once

#include "cli/parsed_command_line.h"
#include "cli/report.h"
#include "process/signals.h"

namespace zklock::commands {

/// `zklock release LOCK`: releases what the calling shell holds by --hold. With --contender,
/// --holders or --all it asks other contenders to leave, or deletes them (--force), after it has
/// shown them and asked the user. Returns the exit status.
[[nodiscard]] int Release(const cli::ReleaseOptions& options, process::Signals& signals,
                          cli::Report& report);

}  // namespace zklock::commands
