#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/end_cause.h"
#include "base/exit_status.h"

namespace zklock::cli {

/// Why a run ends. Each reason has a row in end_reason.cc: its name in --events, whether the locks
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
  kAskedToLeave,   ///< our contender was asked to leave the queue
  kCancelled,      ///< the lock is no longer wanted
  kLostBeforeRun,  ///< the lock was lost before the command was run
  kLostStarting,   ///< likewise, but the start may have been committed (--once-per)
  kQueueFull,      ///< --max-queue
  kSuperseded,     ///< --supersede
  kTooRecent,      ///< --min-interval, --once-per
  kNotReserved,    ///< --resume
  kInterrupted,    ///< a signal
  kUnreachable,    ///< no server gave us a session in time
  kRefused,        ///< credentials or an ACL
  kUnusable,       ///< the LOCK cannot be used this way
  kUsage,          ///< the wait would never end
  kDefect,         ///< the servers gave an answer that a correct server never gives
};

/// What the cause of a run's end implies.
struct CauseRow {
  EndCause cause;
  EndReason reason;    ///< decides the exit status and the reason in the `released` event
  bool is_recorded;    ///< the release record and the history get the duration and status
  const char* name;    ///< in the history, and in `lost` events; empty: the command ended by itself
  const char* format;  ///< for the message; empty: none
};
[[nodiscard]] const CauseRow& RowOf(EndCause cause);

/// What else is known about a cause.
struct CauseDetails {
  std::string by{};  ///< who asked for the release or deleted our contender: see AskerText()
  std::optional<Duration> unconfirmed{};  ///< since the servers last confirmed that we hold it
  std::string tried{};                    ///< the servers and their errors: see TriedText()
  std::optional<Duration> paused{};       ///< how long zklock was not running
  std::string server{};                   ///< the server that granted `granted`
  Duration granted{};
  /// The shortest and the longest session timeout that was granted, if they are so different that
  /// nothing could confirm the lock in time.
  std::optional<std::pair<Duration, Duration>> grants{};
  Duration limit{};  ///< of --max-run
};
/// Returns the message about a cause, without the fate of the command.
[[nodiscard]] std::string CauseText(EndCause cause, const std::string& locks,
                                    const CauseDetails& details = {});

/// What happened to the command, or is about to happen.
enum class Fate {
  kNotBegun,     ///< it was not executed
  kHadEnded,     ///< it had ended by itself, and left no process that had to be ended
  kContinues,    ///< --on-lost warn
  kSentStop,     ///< it has been sent the stop signal, and has not ended yet
  kStopped,      ///< it ended with the stop signal
  kKilled,       ///< it ended with KILL
  kKilledAfter,  ///< likewise, after the stop signal
  kUnsignalled,  ///< it had to end, but could not be signalled
};
/// Returns "./backup.sh ('nightly') was terminated with TERM". `had_ended`: the command had ended
/// by itself, so this is the fate of the processes that it left behind.
[[nodiscard]] std::string FateText(Fate fate, const std::string& command, const std::string& label,
                                   int stop_signal, bool had_ended = false);

/// How a run ends.
struct RunEnd {
  EndReason reason = EndReason::kEnded;
  int status = 0;         ///< zklock's exit status
  std::string message{};  ///< why the command was not run, without "zklock: "; may be empty
};

/// Returns the reason's name in --events. Several reasons may share a name.
[[nodiscard]] const char* EventName(EndReason reason);
/// Returns whether the locks were held to run the command. False if the run gave up before trying
/// to execute it, even if the locks were already held.
[[nodiscard]] bool WasHeld(EndReason reason);
/// Returns whether the message is shown even with --quiet.
[[nodiscard]] bool IsShownAlways(EndReason reason);

/// Returns the message's format, for fmt; empty if the reason has none.
[[nodiscard]] fmt::string_view EndFormat(EndReason reason);
/// Returns the exit status of the reason or, if it has none of its own, `given`: the status of -E,
/// of the command or of the failed exec, or 128 plus the signal.
[[nodiscard]] int EndStatus(EndReason reason, int given);

/// Returns the RunEnd for `reason`. `args`: the arguments of its message.
template <typename... Args>
[[nodiscard]] RunEnd EndWithStatus(int given, EndReason reason, const Args&... args) {
  return {reason, EndStatus(reason, given),
          fmt::vformat(EndFormat(reason), fmt::make_format_args(args...))};
}
/// Likewise, for a reason that determines the exit status.
template <typename... Args>
[[nodiscard]] RunEnd EndRun(EndReason reason, const Args&... args) {
  return EndWithStatus(kExitInternal, reason, args...);
}

/// Returns `end` for a run that has no command, such as one with --hold: its message does not say
/// that the command was not run.
[[nodiscard]] RunEnd WithoutCommand(RunEnd end);

/// Returns the RunEnd for a signal that arrived before the command was run, while the run held
/// `locks` or queued for them. `unconfirmed`: see SessionDriver.
[[nodiscard]] RunEnd InterruptedEnd(const std::string& locks, int signal_number,
                                    std::optional<Duration> unconfirmed);
/// Likewise, if only ancestors hold the locks, so that nothing was queued.
[[nodiscard]] RunEnd InterruptedBeforeRun(const std::string& locks, int signal_number);
/// Likewise, before any server granted a session. `tried`: see SessionDriver.
[[nodiscard]] RunEnd InterruptedLooking(const std::string& locks, int signal_number,
                                        const std::string& tried);

}  // namespace zklock::cli
