#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/end_cause.h"
#include "base/exit_status.h"

namespace zklock::cli {

/// Why a run ends. Each has one row in end_reason.cc: its name in --events, whether the locks
/// were held to run the command, zklock's exit status, and the message.
enum class EndReason {
  kEnded,          ///< the command ended
  kLost,           ///< the lock was lost, which ended the command
  kRequested,      ///< the release was requested, which ended the command
  kRunTooLong,     ///< --max-run, which ended the command
  kNotExecuted,    ///< the lock was held, but the command could not be executed
  kTaken,          ///< `try`: the lock is not free
  kWaitOver,       ///< --wait
  kRemoved,        ///< our contender was deleted
  kAskedToLeave,   ///< somebody asked our contender to leave the queue
  kCancelled,      ///< nobody wants the lock any more
  kLostBeforeRun,  ///< the lock was lost before the command was run
  kLostStarting,   ///< likewise, but the start may be committed (--once-per): nobody runs it
  kQueueFull,      ///< --max-queue
  kSuperseded,     ///< --supersede
  kTooRecent,      ///< --min-interval, --once-per
  kNotReserved,    ///< --resume
  kInterrupted,    ///< a signal
  kUnreachable,    ///< no server gave us a session in time
  kRefused,        ///< credentials or an ACL
  kUnusable,       ///< the LOCK cannot be used this way
  kUsage,          ///< the wait would never end
  kDefect,         ///< the servers answered what sound servers do not
};

/// What follows from the cause of a run's end.
struct CauseRow {
  EndCause cause;
  EndReason reason;    ///< decides the exit status and the reason of the `released` event
  bool is_recorded;    ///< the release record and the history get the duration and status
  const char* name;    ///< in the history, and of a loss in the `lost` event; empty: its own end
  const char* format;  ///< of the message; empty: none
};
[[nodiscard]] const CauseRow& RowOf(EndCause cause);

/// What is known about a cause, beside itself.
struct CauseDetails {
  std::string by{};  ///< who asked for the release or deleted our contender: of AskerText()
  std::optional<Duration> unconfirmed{};  ///< since the servers last confirmed that we hold
  std::string tried{};                    ///< the servers, and their errors: of TriedText()
  std::optional<Duration> paused{};       ///< zklock has not run for so long
  std::string server{};                   ///< the one that has granted `granted`
  Duration granted{};
  Duration limit{};  ///< that of --max-run
};
/// The cause's message, without what became of the command.
[[nodiscard]] std::string CauseText(EndCause cause, const std::string& locks,
                                    const CauseDetails& details = {});

/// What became of the command, or is about to.
enum class Fate {
  kNotBegun,     ///< it was not executed
  kHadEnded,     ///< it had ended by itself, and left nothing that had to end
  kContinues,    ///< --on-lost warn
  kSentStop,     ///< it has been sent the stop signal, and has not ended yet
  kStopped,      ///< it ended with the stop signal
  kKilled,       ///< it ended with KILL
  kKilledAfter,  ///< likewise, after the stop signal
};
/// "./backup.sh ('nightly') was ended with TERM". `had_ended`: the command had, by itself, so that
/// this is the fate of what it left behind.
[[nodiscard]] std::string FateText(Fate fate, const std::string& command, const std::string& label,
                                   int stop_signal, bool had_ended = false);

/// How a run ends.
struct RunEnd {
  EndReason reason = EndReason::kEnded;
  int status = 0;         ///< zklock's exit status
  std::string message{};  ///< why the command was not run, without "zklock: "; may be empty
};

/// The name in --events; several reasons may share one.
[[nodiscard]] const char* EventName(EndReason reason);
/// The locks were held to run the command. False where something kept it from running, even if the
/// locks were held by then.
[[nodiscard]] bool WasHeld(EndReason reason);
/// --quiet does not suppress the message.
[[nodiscard]] bool IsShownAlways(EndReason reason);

/// The message's format, for fmt; empty where a reason has none.
[[nodiscard]] fmt::string_view EndFormat(EndReason reason);
/// The exit status; where the reason does not decide it, `given`: the one that -E names, that of
/// the command, of the failed exec, or 128 plus the signal.
[[nodiscard]] int EndStatus(EndReason reason, int given);

/// The end for `reason`; `args` are those of its message.
template <typename... Args>
[[nodiscard]] RunEnd EndWithStatus(int given, EndReason reason, const Args&... args) {
  return {reason, EndStatus(reason, given),
          fmt::vformat(EndFormat(reason), fmt::make_format_args(args...))};
}
/// Likewise, for a reason that decides the exit status.
template <typename... Args>
[[nodiscard]] RunEnd EndRun(EndReason reason, const Args&... args) {
  return EndWithStatus(kExitInternal, reason, args...);
}

/// The end by a signal before the command was run. `unconfirmed`: of SessionDriver.
[[nodiscard]] RunEnd InterruptedEnd(const std::string& locks, int signal_number,
                                    std::optional<Duration> unconfirmed);
/// Likewise, while no server has granted a session yet. `tried`: of SessionDriver.
[[nodiscard]] RunEnd InterruptedLooking(const std::string& locks, int signal_number,
                                        const std::string& tried);

}  // namespace zklock::cli
