#pragma once

#include "cli/parsed_command_line.h"
#include "cli/report.h"
#include "process/signals.h"

namespace zklock::commands {

/// exclusive, read, write, try: acquires the locks, runs the command while they are held, and
/// releases them when it has ended; with --hold, holds them for an owner. Returns the exit status.
[[nodiscard]] int Run(const cli::RunOptions& options, process::Signals& signals,
                      process::MessageSink& sink);

}  // namespace zklock::commands
