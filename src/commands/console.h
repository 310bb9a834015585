#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cli/report.h"
#include "process/event_loop.h"
#include "process/signals.h"

namespace zklock::commands {

/// Is called in place of a stop by the terminal. Calls `stop`, and does what is needed before and
/// after.
using AroundStop = std::function<void(const std::function<void()>& stop)>;

/// The next signal that has arrived and by default ends a process. A signal that stops a process
/// stops zklock here; CONT is ignored.
[[nodiscard]] std::optional<int> TakeEndingSignal(process::Signals& signals,
                                                  const AroundStop& around_stop = {});

/// Runs `loop` until `is_done`, or until a signal arrives as from TakeEndingSignal(): then returns
/// its number. `loop` has at least one source that waits.
[[nodiscard]] std::optional<int> RunUntil(process::EventLoop& loop, process::Signals& signals,
                                          const std::function<bool()>& is_done,
                                          const AroundStop& around_stop = {});

/// Reports that a signal stopped zklock, and returns the exit status for that.
[[nodiscard]] int StoppedBy(int signal_number, cli::Report& report);

/// There is a user to ask: standard input and standard error are terminals.
[[nodiscard]] bool CanAsk();

struct Answer {
  std::optional<int> signal;  ///< that arrived instead
  bool yes = false;
};
/// Asks on standard error and reads one line. Anything but y and yes is no.
[[nodiscard]] Answer AskYesNo(const std::string& question, process::Signals& signals);

}  // namespace zklock::commands
