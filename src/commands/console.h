#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cli/report.h"
#include "process/event_loop.h"
#include "process/signals.h"

namespace zklock::commands {

/// What is done around a stop by the terminal: it is called with what stops, and calls that.
using AroundStop = std::function<void(const std::function<void()>& stop)>;

/// The next signal that has come and ends what zklock does. The terminal's stop stops zklock, and
/// CONT is nothing.
[[nodiscard]] std::optional<int> TakeEndingSignal(process::Signals& signals,
                                                  const AroundStop& around_stop = {});

/// Serves `loop` until `done`, or until a signal ends it: then its number. The terminal's stop
/// stops zklock and ends nothing. `loop` has at least one source that waits.
[[nodiscard]] std::optional<int> RunUntil(process::EventLoop& loop, process::Signals& signals,
                                          const std::function<bool()>& done,
                                          const AroundStop& around_stop = {});

/// Says that a signal ended it, and returns the exit status for that.
[[nodiscard]] int StoppedBy(int signal_number, cli::Report& report);

/// Somebody can be asked: standard input and standard error are terminals.
[[nodiscard]] bool CanAsk();

struct Answer {
  std::optional<int> signal;  ///< that came instead
  bool yes = false;
};
/// Asks on standard error and reads one line; everything but y and yes is no.
[[nodiscard]] Answer AskYesNo(const std::string& question, process::Signals& signals);

}  // namespace zklock::commands
