#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cli/reports/report.h"
#include "process/loop/event_loop.h"
#include "process/loop/signals.h"

namespace zklock::commands {

/// Called in place of a suspension by the terminal. Calls `suspend`, and does what is needed before
/// and after.
using AroundSuspension = std::function<void(const std::function<void()>& suspend)>;

/// The next signal that has arrived and by default ends a process. A signal that suspends
/// a process suspends zklock here; CONT is ignored.
[[nodiscard]] std::optional<int> TakeEndingSignal(process::Signals& signals,
                                                  const AroundSuspension& around_suspension = {});

/// Runs `loop` until `is_done`, or until a signal arrives as from TakeEndingSignal(): then returns
/// its number. `loop` has at least one source that waits.
[[nodiscard]] std::optional<int> RunUntil(process::EventLoop& loop, process::Signals& signals,
                                          const std::function<bool()>& is_done,
                                          const AroundSuspension& around_suspension = {});

/// Reports that a signal interrupted zklock, and returns the exit status for that.
[[nodiscard]] int InterruptedBy(int signal_number, cli::Report& report);

/// There is a user to ask: standard input and standard error are terminals.
[[nodiscard]] bool CanAsk();

struct Answer {
  std::optional<int> signal;  ///< that arrived instead
  bool yes = false;
};
/// Asks on standard error and reads one line. Anything but y and yes is no.
[[nodiscard]] Answer AskYesNo(const std::string& question, process::Signals& signals);

}  // namespace zklock::commands
