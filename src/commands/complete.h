#pragma once

#include "cli/completion.h"
#include "process/signals.h"

namespace zklock::commands {

/// `zklock --complete WORD...`, for the shells' completions: prints what fits in the place of the
/// last word, a line each: the word, and behind a tab what it is for. Or an instruction to the
/// shell:
/// `:files`, or `:command N` where a command line of its own begins at WORD N, from 0. The servers
/// have 300 ms for LOCKs; nothing is said of what goes wrong. Returns 0.
[[nodiscard]] int Complete(const cli::Completion& completion, process::Signals& signals);

}  // namespace zklock::commands
