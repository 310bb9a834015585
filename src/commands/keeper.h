#pragma once

#include "cli/options.h"
#include "process/message_sink.h"
#include "process/signals.h"

namespace zklock::commands {

/// --hold: returns 0 when the lock is held for the owner, by a keeper in the background: zklock
/// itself, with the owner's end in the place of a command's. Returns in both processes, each with
/// its own exit status. Throws cli::UsageError where the owner cannot be told.
[[nodiscard]] int HoldForOwner(const cli::RunOptions& options, process::Signals& signals,
                               process::MessageSink& sink);

}  // namespace zklock::commands
