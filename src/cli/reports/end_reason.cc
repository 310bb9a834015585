#include "cli/reports/end_reason.h"

#include <cstddef>
#include <cstring>
#include <iterator>
#include <string_view>

#include "cli/reports/report_queue.h"
#include "cli/text/duration.h"
#include "cli/text/printable.h"

namespace zklock::cli {

namespace message {
namespace {

constexpr char kTaken[] = "{} is {}; the command was not run";
constexpr char kWaitOver[] = "{} did not become free within {}{}; the command was not run";
constexpr char kRemoved[] =
    "removed from the queue of {}: our contender was deleted; the command was not run";
constexpr char kAskedToLeave[] = "asked to leave the queue of {} by {}; the command was not run";
constexpr char kLostBeforeRun[] = "{} was lost before the command could be run; try again";
constexpr char kLostStarting[] =
    "{} was lost before the command could be run, but --once-per may count the run: run the "
    "command by hand, or delete the child last-start";
constexpr char kQueueFull[] = "{} {} (--max-queue); the command was not run";
constexpr char kSuperseded[] =
    "superseded by a newer contender for {} (--supersede); the command was not run";
constexpr char kTooRecent[] =
    "{} last {} on {} {} ago, which is within {} {}; the command was not run";
constexpr char kNotResumed[] =
    "{} is not (or no longer) reserved for {}{}; the command was not run";
constexpr char kInterrupted[] = "{} while waiting for {}: left the queue; the command was not run";
constexpr char kInterruptedBeforeRun[] =
    "{} before the command could begin under {}; the command was not run";
constexpr char kStillLooking[] =
    "{} while looking for a server: {}; {} was not queued for; the command was not run";
constexpr char kMayRemain[] =
    "{} while waiting for {}: no server confirmed that it left the queue; its contender may remain "
    "until the session ends (timeout {}); the command was not run";

// Causes that end a running command. Their arguments: the LOCKs, and details of the cause.
constexpr char kGuardFailed[] =
    "the command's guard process was killed or stopped responding: the command was killed";
constexpr char kReleaseRequested[] = "asked to release {} by {}";
constexpr char kRunTooLong[] = "{}: the run has lasted {} (--max-run)";
constexpr char kLost[] = "lost {}: {}";
constexpr char kExpired[] = "lost {}: the servers ended the session{}";
constexpr char kShortGrant[] = "lost {}: {} shortened the session timeout to {}; the least is 4s";
constexpr char kOuterReleased[] =
    "lost {}: the outer zklock that held it released it, lost it or ended";

constexpr char kDeleted[] = "our contender was deleted";
constexpr char kTakenBy[] = "taken away by {}";
constexpr char kLastConfirmed[] = ", {} after they last confirmed it";
constexpr char kUnconfirmed[] = "no server confirmed it for {}: {}";
constexpr char kGrantsTooDifferent[] =
    "the session timeouts that the servers granted, {} and {}, are too different to confirm it; "
    "see zklock inspect --servers-report";
constexpr char kPaused[] = "zklock did not run for {}: it was stopped, or the host was suspended";
constexpr char kNotInTime[] = "it could not be confirmed in time";

// What happened to the command. The others use the first two texts as the command's name.
constexpr char kWithLabel[] = "{} ('{}')";
constexpr char kLeftBy[] = "what {} left behind";
constexpr char kNotBegun[] = "{} was not run";
constexpr char kHadEnded[] = "{} had already ended";
constexpr char kContinues[] = "{} continues, and others may run too (--on-lost warn)";
constexpr char kSentStop[] = "{} was sent {}";
constexpr char kStopped[] = "{} was terminated with {}";
constexpr char kKilled[] = "{} was killed";
constexpr char kKilledAfter[] = "{} was killed, since {} did not end it in time";
constexpr char kUnsignalled[] = "{} could not be signalled";

// What a message above ends with, except that of a run that has no command.
constexpr std::string_view kCommandNotRun = "; the command was not run";

constexpr const char* kNone = "";
constexpr const char* kDetails = "{}";  // see report_reasons.h

}  // namespace
}  // namespace message

namespace {

// Placeholders for an exit status: EndStatus() then returns its argument `given`.
constexpr int kConflict = -1;  // that of -E
constexpr int kGiven = -2;     // the command's, the failed exec's, 128 plus the signal

enum class Said { kUnlessQuiet, kAlways };

struct Row {
  EndReason reason;
  const char* event_name;
  bool was_held;
  int status;
  const char* format;
  Said said = Said::kUnlessQuiet;
};

using enum EndReason;

// In the order of the enumeration.
constexpr Row kRows[] = {
    {kEnded, "ended", true, kGiven, message::kNone},
    {kLost, "lost", true, kExitLost, message::kNone},
    {kRequested, "requested", true, kExitLost, message::kNone},
    {kRunTooLong, "max-run", true, kExitTooLong, message::kNone},
    {kNotExecuted, "not-executed", true, kGiven, message::kNone},
    {kTaken, "held", false, kConflict, message::kTaken},
    {kWaitOver, "wait-over", false, kConflict, message::kWaitOver},
    {kRemoved, "removed", false, kConflict, message::kRemoved},
    {kAskedToLeave, "requested", false, kConflict, message::kAskedToLeave},
    {kCancelled, "removed", false, kConflict, message::kNone},
    {kLostBeforeRun, "removed", false, kConflict, message::kLostBeforeRun},
    {kLostStarting, "lost", false, kExitLost, message::kLostStarting, Said::kAlways},
    {kQueueFull, "queue-full", false, kConflict, message::kQueueFull},
    {kSuperseded, "superseded", false, kConflict, message::kSuperseded},
    {kTooRecent, "too-recent", false, kConflict, message::kTooRecent},
    {kNotReserved, "not-reserved", false, kConflict, message::kNotResumed},
    {kInterrupted, "interrupted", false, kGiven, message::kInterrupted},
    {kUnreachable, "unreachable", false, kExitUnavailable, message::kDetails, Said::kAlways},
    {kRefused, "refused", false, kExitRefused, message::kDetails, Said::kAlways},
    {kUnusable, "unusable", false, kExitConfiguration, message::kDetails, Said::kAlways},
    {kUsage, "unusable", false, kExitUsage, message::kDetails, Said::kAlways},
    {kDefect, "defect", false, kExitInternal, message::kDetails, Said::kAlways},
};

// In the order of the enumeration.
constexpr CauseRow kCauses[] = {
    {EndCause::kItself, kEnded, true, "", message::kNone},
    {EndCause::kSignal, kEnded, true, "signal", message::kNone},
    {EndCause::kGuardFailed, kEnded, true, "guard-failed", message::kGuardFailed},
    {EndCause::kReleaseRequested, kRequested, true, "requested", message::kReleaseRequested},
    {EndCause::kRunTooLong, kRunTooLong, true, "max-run", message::kRunTooLong},
    {EndCause::kRemoved, kLost, false, "removed", message::kLost},
    {EndCause::kExpired, kLost, false, "expired", message::kExpired},
    {EndCause::kUnproven, kLost, false, "unproven", message::kLost},
    {EndCause::kShortSession, kLost, false, "short-session", message::kShortGrant},
    {EndCause::kLeaseRanOut, kLost, true, "unproven", message::kLost},
    {EndCause::kOuter, kLost, true, "outer", message::kOuterReleased},
    {EndCause::kAbandoned, kLost, false, "abandoned", message::kNone},
};

constexpr bool AreInOrder() {
  for (std::size_t i = 0; i < std::size(kRows); ++i) {
    if (static_cast<std::size_t>(kRows[i].reason) != i) return false;
  }
  for (std::size_t i = 0; i < std::size(kCauses); ++i) {
    if (static_cast<std::size_t>(kCauses[i].cause) != i) return false;
  }
  return std::size(kRows) == static_cast<std::size_t>(kDefect) + 1 &&
         std::size(kCauses) == static_cast<std::size_t>(EndCause::kAbandoned) + 1;
}
static_assert(AreInOrder());

const Row& RowOfReason(EndReason reason) { return kRows[static_cast<std::size_t>(reason)]; }

/// Formats `span`, rounded to whole seconds unless that yields 0.
std::string SpanText(Duration span) {
  const auto rounded = std::chrono::round<std::chrono::seconds>(span);
  return FormatDuration(rounded.count() > 0 ? Duration(rounded) : span);
}

std::string WhyUnproven(const CauseDetails& details) {
  if (!details.unconfirmed) return message::kNotInTime;
  if (details.grants) {
    return fmt::format(message::kGrantsTooDifferent, FormatDuration(details.grants->first),
                       FormatDuration(details.grants->second));
  }
  // Unless zklock was paused for more than half of the time, the servers are to blame.
  if (details.paused && *details.paused > *details.unconfirmed / 2) {
    return fmt::format(message::kPaused, SpanText(*details.paused));
  }
  return fmt::format(message::kUnconfirmed, SpanText(*details.unconfirmed),
                     Printable(details.tried));
}

const char* FormatOf(Fate fate) {
  switch (fate) {
    case Fate::kNotBegun:
      return message::kNotBegun;
    case Fate::kHadEnded:
      return message::kHadEnded;
    case Fate::kContinues:
      return message::kContinues;
    case Fate::kSentStop:
      return message::kSentStop;
    case Fate::kStopped:
      return message::kStopped;
    case Fate::kKilled:
      return message::kKilled;
    case Fate::kKilledAfter:
      return message::kKilledAfter;
    case Fate::kUnsignalled:
      break;
  }
  return message::kUnsignalled;
}

/// Returns "TERM" for SIGTERM.
std::string ShortSignalName(int number) {
  const char* name = sigabbrev_np(number);
  return name != nullptr ? name : SignalName(number);
}

}  // namespace

const CauseRow& RowOf(EndCause cause) { return kCauses[static_cast<std::size_t>(cause)]; }

std::string CauseText(EndCause cause, const std::string& locks, const CauseDetails& details) {
  if (cause == EndCause::kShortSession) {
    return fmt::format(message::kShortGrant, locks, Printable(details.server),
                       FormatDuration(details.granted));
  }
  std::string detail = details.by;
  if (cause == EndCause::kRemoved) {
    detail = details.by.empty() ? message::kDeleted : fmt::format(message::kTakenBy, details.by);
  } else if (cause == EndCause::kExpired && details.unconfirmed) {
    detail = fmt::format(message::kLastConfirmed, SpanText(*details.unconfirmed));
  } else if (cause == EndCause::kRunTooLong) {
    detail = FormatDuration(details.limit);
  } else if (cause == EndCause::kUnproven || cause == EndCause::kLeaseRanOut) {
    detail = WhyUnproven(details);
  }
  return fmt::format(fmt::runtime(RowOf(cause).format), locks, detail);
}

std::string FateText(Fate fate, const std::string& command, const std::string& label,
                     int stop_signal, bool had_ended) {
  std::string who = Printable(command, kWidestForeign);
  if (!label.empty()) {
    who = fmt::format(message::kWithLabel, who, PrintableEnd(label, kWidestForeign));
  }
  if (had_ended && fate != Fate::kHadEnded) who = fmt::format(message::kLeftBy, who);
  return fmt::format(fmt::runtime(FormatOf(fate)), who, ShortSignalName(stop_signal));
}

const char* EventName(EndReason reason) { return RowOfReason(reason).event_name; }

bool WasHeld(EndReason reason) { return RowOfReason(reason).was_held; }

bool IsShownAlways(EndReason reason) { return RowOfReason(reason).said == Said::kAlways; }

fmt::string_view EndFormat(EndReason reason) { return RowOfReason(reason).format; }

int EndStatus(EndReason reason, int given) {
  const int status = RowOfReason(reason).status;
  return status == kConflict || status == kGiven ? given : status;
}

RunEnd WithoutCommand(RunEnd end) {
  if (end.message.ends_with(message::kCommandNotRun)) {
    end.message.resize(end.message.size() - message::kCommandNotRun.size());
  }
  return end;
}

RunEnd InterruptedEnd(const std::string& locks, int signal_number,
                      std::optional<Duration> unconfirmed) {
  RunEnd end = EndWithStatus(kExitSignalBase + signal_number, kInterrupted,
                             SignalName(signal_number), locks);
  if (unconfirmed) {
    end.message = fmt::format(message::kMayRemain, SignalName(signal_number), locks,
                              FormatDuration(*unconfirmed));
  }
  return end;
}

RunEnd InterruptedBeforeRun(const std::string& locks, int signal_number) {
  return {kInterrupted, kExitSignalBase + signal_number,
          fmt::format(message::kInterruptedBeforeRun, SignalName(signal_number), locks)};
}

RunEnd InterruptedLooking(const std::string& locks, int signal_number, const std::string& tried) {
  RunEnd end = InterruptedEnd(locks, signal_number, std::nullopt);
  end.message =
      fmt::format(message::kStillLooking, SignalName(signal_number), Printable(tried), locks);
  return end;
}

}  // namespace zklock::cli
