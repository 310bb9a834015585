#pragma once

#include "cli/options/completion.h"
#include "process/loop/signals.h"

namespace zklock::commands {

/// `zklock --complete WORD...`, which the shells' completion scripts call. Prints the words that
/// can replace the last WORD, one per line, some followed by a tab and a description; or an
/// instruction to the shell: `:files`, or `:command N` if another command line begins at WORD N,
/// counted from 0. Takes at most 300 ms to find LOCKs on the servers. Does not report errors.
[[nodiscard]] int Complete(const cli::Completion& completion, process::Signals& signals);

}  // namespace zklock::commands
