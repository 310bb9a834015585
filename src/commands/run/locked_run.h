#pragma once

#include <memory>

#include "commands/run/acquire_locks.h"
#include "commands/run/preforked_command.h"
#include "commands/session/run_context.h"

namespace zklock::commands {

/// Runs the command under `locks`, at least one of which our own session holds, and releases them
/// when the command and all runs nested in it have ended. Returns the exit status.
[[nodiscard]] int RunUnderLocks(RunContext& context, HeldLocks locks,
                                std::unique_ptr<PreforkedCommand> command);

}  // namespace zklock::commands
