#pragma once

#include "cli/options.h"
#include "cli/report.h"
#include "process/signals.h"

namespace zklock::commands {

/// exclusive, read, write, try: queues for the lock, runs the command while it is held, lets go
/// when the command has ended. The exit status of zklock.
[[nodiscard]] int Run(const cli::RunOptions& options, process::Signals& signals,
                      process::MessageSink& sink);

}  // namespace zklock::commands
