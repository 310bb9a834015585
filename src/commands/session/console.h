#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "cli/reports/report.h"
#include "process/loop/event_loop.h"
#include "process/loop/signals.h"

namespace zklock::commands {

/// Called to suspend zklock. Calls `suspend`, and does whatever is needed before and after that.
using AroundSuspension = std::function<void(const std::function<void()>& suspend)>;

/// Takes signals up to the first whose default action ends a process, and returns that signal; none
/// if there is no such signal. A signal whose default action suspends a process suspends zklock
/// here; CONT is ignored.
[[nodiscard]] std::optional<int> TakeEndingSignal(process::Signals& signals,
                                                  const AroundSuspension& around_suspension = {});

/// Runs `loop` until `is_done` or `deadline`, or until TakeEndingSignal() returns a signal; then
/// returns that signal. Without a deadline, `loop` must have at least one source that waits.
[[nodiscard]] std::optional<int> RunUntil(process::EventLoop& loop, process::Signals& signals,
                                          const std::function<bool()>& is_done,
                                          TimePoint deadline = kNever,
                                          const AroundSuspension& around_suspension = {});

/// Reports that a signal interrupted zklock, and returns the exit status for that.
[[nodiscard]] int InterruptedBy(int signal_number, cli::Report& report);

/// Returns whether there is a user to ask: standard input and standard error are terminals.
[[nodiscard]] bool CanAsk();

struct Answer {
  std::optional<int> signal;  ///< the signal that arrived instead of an answer
  bool yes = false;
};
/// Asks on standard error and reads one line. Anything but y and yes counts as no.
[[nodiscard]] Answer AskYesNo(const std::string& question, process::Signals& signals);

}  // namespace zklock::commands
