#pragma once

#include <vector>

#include "cli/options/options.h"
#include "cli/reports/report.h"
#include "cli/views/dry_run_text.h"
#include "process/loop/message_sink.h"
#include "process/loop/signals.h"

namespace zklock::commands {

/// Prints rows of a report. Throws Exit if that is not possible, or a signal arrives.
void PrintRows(const std::vector<cli::DryRunRow>& rows, process::Signals& signals,
               cli::Report& report);

/// exclusive, read, write, try with --dry-run: prints what a run with these options would find and
/// do. Creates nothing, neither on the servers nor on this host. Returns the exit status: 0 if the
/// run could begin at once, the status set with -E if not, or that of the error that would end the
/// run.
[[nodiscard]] int DryRun(const cli::RunOptions& options, process::Signals& signals,
                         process::MessageSink& sink);

}  // namespace zklock::commands
