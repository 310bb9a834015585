#pragma once

#include "cli/completion.h"
#include "cli/parsed_command_line.h"
#include "cli/report.h"
#include "process/message_sink.h"
#include "process/signals.h"

namespace zklock::commands {

// Each runs one subcommand and returns the exit status.

/// exclusive, read, write, try: acquires the locks, runs the command while they are held, and
/// releases them when it has ended; with --hold, holds them for an owner.
[[nodiscard]] int Run(const cli::RunOptions& options, process::Signals& signals,
                      process::MessageSink& sink);

/// `zklock inspect`: prints one LOCK's queue, or every lock in use below a path, on standard
/// output. Prints nothing with --mine (commands/own_locks.h), and with --quiet, where the exit
/// status is 0 for a free lock and 75 for a held one.
[[nodiscard]] int Inspect(const cli::InspectOptions& options, process::Signals& signals,
                          cli::Report& report);

/// `zklock release LOCK`: releases what the calling shell holds by --hold. With --contender,
/// --holders or --all it asks other contenders to leave, or deletes them (--force), after it has
/// shown them and asked the user.
[[nodiscard]] int Release(const cli::ReleaseOptions& options, process::Signals& signals,
                          cli::Report& report);

/// `zklock --complete WORD...`, which the shells' completions call: prints the words that fit in
/// the place of the last WORD, a line each, with a tab and a description after some; or an
/// instruction to the shell: `:files`, or `:command N` if a command line of its own begins at WORD
/// N, counted from 0. Takes at most 300 ms to find LOCKs on the servers; errors are not reported.
[[nodiscard]] int Complete(const cli::Completion& completion, process::Signals& signals);

}  // namespace zklock::commands
