#pragma once

#include "cli/options/completion.h"
#include "process/loop/signals.h"

namespace zklock::commands {

/// `zklock --complete WORD...`, which the shells' completions call: prints the words that fit in
/// the place of the last WORD, a line each, with a tab and a description after some; or an
/// instruction to the shell: `:files`, or `:command N` if a command line of its own begins at WORD
/// N, counted from 0. Takes at most 300 ms to find LOCKs on the servers; errors are not reported.
[[nodiscard]] int Complete(const cli::Completion& completion, process::Signals& signals);

}  // namespace zklock::commands
