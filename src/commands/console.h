#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "cli/report.h"
#include "process/event_loop.h"
#include "process/signals.h"

namespace zklock::commands {

/// Serves `loop` until `done`, or until a signal ends it: then its number. The terminal's stop
/// stops zklock and ends nothing. `loop` has at least one source that waits.
[[nodiscard]] std::optional<int> RunUntil(process::EventLoop& loop, process::Signals& signals,
                                          const std::function<bool()>& done);

/// Says that a signal ended it, and returns the exit status for that.
[[nodiscard]] int StoppedBy(int signal_number, cli::Report& report);

/// What became of an attempt to print.
struct PrintResult {
  std::optional<int> signal;  ///< that ended it
  int error = 0;  ///< errno; EPIPE where nobody reads any more, EBADF where it is closed
};
/// Writes all of `text` to standard output. Signals end it even while nobody reads.
[[nodiscard]] PrintResult Print(const std::string& text, process::Signals& signals);

/// The width of the terminal that standard output is; 0 if it is none, or does not say.
[[nodiscard]] std::size_t OutputWidth();

/// Somebody can be asked: standard input and standard error are terminals.
[[nodiscard]] bool CanAsk();

struct Answer {
  std::optional<int> signal;  ///< that came instead
  bool yes = false;
};
/// Asks on standard error and reads one line; everything but y and yes is no.
[[nodiscard]] Answer AskYesNo(const std::string& question, process::Signals& signals);

}  // namespace zklock::commands
