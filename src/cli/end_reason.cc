#include "cli/end_reason.h"

#include <cstddef>
#include <iterator>

#include "cli/report_queue.h"

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
constexpr char kNotResumed[] = "{} is not reserved for {} (any more); the command was not run";
constexpr char kInterrupted[] = "{} while waiting for {}: left the queue; the command was not run";

// While the command runs: the LOCKs, and what becomes of the command or who asked.
constexpr char kGuardFailed[] =
    "the command's guard process was killed or hung: the command was ended";
constexpr char kReleaseRequested[] = "asked to release {} by {}: ending the command";
constexpr char kContenderDeleted[] = "{} is lost (our contender was deleted): {}";
constexpr char kExpired[] = "{} is lost (the servers ended the session): {}";
constexpr char kUnproven[] = "{} is lost (no server confirmed it in time): {}";
constexpr char kShortGrant[] =
    "{} is lost (a server shortened the session time-out to less than 4 seconds): {}";
constexpr char kLeaseRanOut[] =
    "{} could not be confirmed in time: ending the command before the lease runs out";
constexpr char kOuterReleased[] =
    "{} is lost (the outer zklock that held it released it, lost it or ended): {}";

constexpr const char* kNone = "";
constexpr const char* kDetails = "{}";  // worded by report_reasons.h

}  // namespace
}  // namespace message

namespace {

// In place of an exit status: EndStatus's `given`.
constexpr int kConflict = -1;  // that of -E
constexpr int kGiven = -2;     // the command's, the failed exec's, 128 plus the signal

enum class Said { kUnlessQuiet, kAlways };

struct Row {
  EndReason reason;
  const char* event_name;
  int status;
  const char* format;
  Said said = Said::kUnlessQuiet;
};

using enum EndReason;

// In the order of the enumeration.
constexpr Row kRows[] = {
    {kEnded, "ended", kGiven, message::kNone},
    {kLost, "lost", kExitLost, message::kNone},
    {kRequested, "requested", kExitLost, message::kNone},
    {kNotExecuted, "not-executed", kGiven, message::kNone},
    {kTaken, "held", kConflict, message::kTaken},
    {kWaitOver, "wait-over", kConflict, message::kWaitOver},
    {kRemoved, "removed", kConflict, message::kRemoved},
    {kAskedToLeave, "removed", kConflict, message::kAskedToLeave},
    {kCancelled, "removed", kConflict, message::kNone},
    {kLostBeforeRun, "removed", kConflict, message::kLostBeforeRun},
    {kLostStarting, "lost", kExitLost, message::kLostStarting, Said::kAlways},
    {kQueueFull, "queue-full", kConflict, message::kQueueFull},
    {kSuperseded, "superseded", kConflict, message::kSuperseded},
    {kTooRecent, "too-recent", kConflict, message::kTooRecent},
    {kNotReserved, "not-reserved", kConflict, message::kNotResumed},
    {kInterrupted, "interrupted", kGiven, message::kInterrupted},
    {kUnreachable, "unreachable", kExitUnavailable, message::kDetails, Said::kAlways},
    {kRefused, "refused", kExitRefused, message::kDetails, Said::kAlways},
    {kUnusable, "unusable", kExitConfiguration, message::kDetails, Said::kAlways},
    {kUsage, "unusable", kExitUsage, message::kDetails, Said::kAlways},
    {kDefect, "defect", kExitInternal, message::kDetails, Said::kAlways},
};

// In the order of the enumeration.
constexpr CauseRow kCauses[] = {
    {EndCause::kItself, kEnded, true, nullptr, message::kNone},
    {EndCause::kSignal, kEnded, true, nullptr, message::kNone},
    {EndCause::kGuardFailed, kEnded, true, nullptr, message::kGuardFailed},
    {EndCause::kReleaseRequested, kRequested, true, nullptr, message::kReleaseRequested},
    {EndCause::kRemoved, kLost, false, "removed", message::kContenderDeleted},
    {EndCause::kExpired, kLost, false, "expired", message::kExpired},
    {EndCause::kUnproven, kLost, false, "unproven", message::kUnproven},
    {EndCause::kShortSession, kLost, false, "short-session", message::kShortGrant},
    {EndCause::kLeaseRanOut, kLost, true, "unproven", message::kLeaseRanOut},
    {EndCause::kOuter, kLost, true, "outer", message::kOuterReleased},
    {EndCause::kAbandoned, kLost, false, nullptr, message::kNone},
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

const Row& RowOf(EndReason reason) { return kRows[static_cast<std::size_t>(reason)]; }

}  // namespace

const CauseRow& RowOf(EndCause cause) { return kCauses[static_cast<std::size_t>(cause)]; }

std::string CauseText(EndCause cause, const std::string& locks, const std::string& detail) {
  return fmt::format(fmt::runtime(RowOf(cause).format), locks, detail);
}

const char* EventName(EndReason reason) { return RowOf(reason).event_name; }

bool WasHeld(EndReason reason) {
  return reason == kEnded || reason == kLost || reason == kRequested || reason == kNotExecuted;
}

bool IsShownAlways(EndReason reason) { return RowOf(reason).said == Said::kAlways; }

fmt::string_view EndFormat(EndReason reason) { return RowOf(reason).format; }

int EndStatus(EndReason reason, int given) {
  const int status = RowOf(reason).status;
  return status == kConflict || status == kGiven ? given : status;
}

RunEnd InterruptedEnd(const std::string& locks, int signal_number) {
  return EndWithStatus(kExitSignalBase + signal_number, kInterrupted, SignalName(signal_number),
                       locks);
}

}  // namespace zklock::cli
