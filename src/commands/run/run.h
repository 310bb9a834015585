#pragma once

#include "cli/options/options.h"
#include "process/loop/message_sink.h"
#include "process/loop/signals.h"

namespace zklock::commands {

/// exclusive, read, write, try: acquires the locks, runs the command while they are held, and
/// releases them when it has ended; with --hold, holds them for an owner.
[[nodiscard]] int Run(const cli::RunOptions& options, process::Signals& signals,
                      process::MessageSink& sink);

}  // namespace zklock::commands
