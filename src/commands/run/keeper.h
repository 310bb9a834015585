#pragma once

#include "cli/options/options.h"
#include "process/loop/message_sink.h"
#include "process/loop/signals.h"
#include "process/tree/owner.h"

namespace zklock::commands {

/// Finds the owner for --hold. Throws cli::UsageError if it is unclear which process that is.
[[nodiscard]] process::Owner FindOwner(const cli::RunOptions& options);

/// --hold: forks a keeper, a zklock in the background that holds the lock until the owner ends,
/// just as an ordinary zklock holds it until its command ends. Returns in both processes: in this
/// one when the lock is held (0) or could not be acquired, in the keeper when it has released the
/// lock. Throws like FindOwner().
[[nodiscard]] int HoldForOwner(const cli::RunOptions& options, process::Signals& signals,
                               process::MessageSink& sink);

}  // namespace zklock::commands
