#include "cli/reports/event.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "cli/reports/report_progress.h"
#include "cli/reports/report_queue.h"
#include "cli/reports/report_reasons.h"
#include "cli/text/duration.h"
#include "cli/text/printable.h"
#include "cli/text/queue_view.h"
#include "process/tree/ended.h"

namespace zklock::cli {

namespace message {
namespace {

constexpr char kConnected[] = "connected to {}, session timeout {}";
constexpr char kTimeoutShortened[] =
    "connected to {}, session timeout {}: this server shortened it from {}";
constexpr char kShorterTimeoutCounts[] =
    "connected to {}, session timeout {}; the shorter one granted by another server, {}, still "
    "applies";
constexpr char kShortSession[] =
    "the servers grant a session timeout of only {}: an ordinary change of leader may end the "
    "command; see --session-timeout";
constexpr char kGrantedLess[] =
    "the servers grant a session timeout of {}, not of {} as requested: without a server the "
    "command is terminated sooner; see zklock inspect --servers-report";
constexpr char kQueued[] = "queued as {}";
constexpr char kWaiting[] = "waiting for {}: {}predecessor {}";
constexpr char kFirst[] =
    "{}: first in line, but too little is left of the lease to start the command: confirming the "
    "session again";
constexpr char kPlaceLost[] = "the session expired while waiting for {}: queued again, at the tail";
constexpr char kSessionTooShort[] =
    "{}: a session of {} cannot be confirmed while the servers ping each other every {}: queuing "
    "again, at the tail, with a session of {}";
constexpr char kIncompatibleArrived[] =
    "{}: this run and '{}', which joined later and is {}, may both hold the lock";
constexpr char kAcquired[] = "acquired {} ({}, token {})";
constexpr char kReserved[] = "reserved {} for {} ({}, token {}){}";
constexpr char kAlreadyReserved[] = "{} is already reserved for {} ({}, token {}), since {}{}";
constexpr char kReservationEnded[] = "deleted the reservation of {} for {}, which {}";
constexpr char kOpenLock[] =
    "{} is not protected by the credentials: its ACL gives everyone {}; see zklock-protocol(7), "
    "Access";
constexpr char kChrootCreated[] =
    "created the chroot {}, which did not exist; if it is misspelt, correct --servers";
constexpr char kReservationOverdue[] =
    "cannot delete the reservation of {} for {}, which {}: not authorised: DELETE on {} is "
    "missing; see its ACL";
constexpr char kEndedAt[] = "ended at {}";
constexpr char kHadLostPermit[] = "had lost a permit";
constexpr char kPreempted[] = "asked {} ahead of this run in {} to leave{}";
constexpr char kNobodyAsked[] = "asked nobody ahead of this run in {} to leave{}";
constexpr char kLeft[] = "; waiting for {}";
constexpr char kMoreLeft[] = " and {} more";
constexpr char kLeftReservation[] = "a reservation";
constexpr char kLeftProgram[] = "of another program";
constexpr char kLeftRight[] = "we lack permission to write to it";
constexpr char kUntil[] = " until {}";
constexpr char kNested[] = "{} is already held by an outer zklock: running under it";
constexpr char kRunning[] = "running {} (pid {})";
constexpr char kSuspect[] = "{}: the server does not answer; trying another";
constexpr char kConfirmed[] = "{}: confirmed, still held";
constexpr char kExited[] = "the command ended with status {}";
constexpr char kKeptForNested[] =
    "the command has ended; {} is held until its nested runs have ended: {} left, the first "
    "with pid {}";
constexpr char kReleased[] = "released {}";
constexpr char kNoContenderLeft[] = "{}: no contender of ours is left";
constexpr char kMayBeLeft[] =
    "no server confirmed that our contender in {} is gone: it may remain until the session ends";
constexpr char kNotConfirmed[] =
    "no server confirmed the release of {}: it may stay held until the session ends, for about {}";

}  // namespace
}  // namespace message

namespace {

constexpr std::size_t kMostLeftShown = 3;

const char* WhyLeft(lock::Preempted::Why why) {
  switch (why) {
    case lock::Preempted::Why::kReservation:
      return message::kLeftReservation;
    case lock::Preempted::Why::kOtherProgram:
      return message::kLeftProgram;
    case lock::Preempted::Why::kNoRight:
      break;
  }
  return message::kLeftRight;
}

double Seconds(Duration span) { return std::chrono::duration<double>(span).count(); }

}  // namespace

EventFields ConnectedEvent::Fields() const {
  return {{"server", server},
          {"sessionTimeout", Seconds(granted)},
          {"effectiveTimeout", Seconds(effective)}};
}

std::string ConnectedEvent::Text() const {
  const std::string name = Printable(server);
  const std::string timeout = FormatDuration(granted);
  if (before && effective < *before) {
    return fmt::format(message::kTimeoutShortened, name, timeout, FormatDuration(*before));
  }
  if (effective < granted) {
    return fmt::format(message::kShorterTimeoutCounts, name, timeout, FormatDuration(effective));
  }
  return fmt::format(message::kConnected, name, timeout);
}

std::string ShortSessionEvent::Text() const {
  if (!asked) return fmt::format(message::kShortSession, FormatDuration(timeout));
  return fmt::format(message::kGrantedLess, FormatDuration(timeout), FormatDuration(*asked));
}

EventFields QueuedEvent::Fields() const {
  if (!is_requeued) return {};
  return {{"reason", "expired"}};
}

std::string QueuedEvent::Text() const {
  return fmt::format(message::kQueued, Printable(ticket.display_path()));
}

EventFields WaitingEvent::Fields() const {
  return {{"position", static_cast<std::int64_t>(ahead + 1)}, {"waitsFor", predecessor}};
}

std::string WaitingEvent::Text() const {
  return fmt::format(message::kWaiting, lock, PlaceInLine(waiting), Printable(predecessor));
}

std::string FirstEvent::Text() const { return fmt::format(message::kFirst, lock); }

std::string PlaceLostEvent::Text() const {
  if (!too_short) return fmt::format(message::kPlaceLost, lock);
  return fmt::format(message::kSessionTooShort, lock, FormatDuration(too_short->timeout),
                     FormatDuration(too_short->ping_span),
                     FormatDuration(too_short->longer.value_or(Duration::zero())));
}

std::string IncompatibleArrivedEvent::Text() const {
  return fmt::format(message::kIncompatibleArrived, lock, Printable(incompatible.child),
                     IncompatibleText(incompatible.kind));
}

EventFields AcquiredEvent::Fields() const {
  return {{"mode", std::string(protocol::ModeName(ticket.mode))}};
}

std::string AcquiredEvent::Text() const {
  return fmt::format(message::kAcquired, ticket.lock.display_path(),
                     protocol::ModeName(ticket.mode), ticket.token);
}

EventFields ReservedEvent::Fields() const {
  EventFields fields = {{"mode", std::string(protocol::ModeName(ticket.mode))},
                        {"id", id},
                        {"until", nullptr},
                        {"new", !since_ms}};
  if (until_ms) fields[2].value = FormatUtc(*until_ms).value_or("");
  return fields;
}

std::string ReservedEvent::Text() const {
  const std::string until = until_ms ? fmt::format(message::kUntil, FormatTime(*until_ms)) : "";
  const std::string lock = Lock();
  const std::string_view mode = protocol::ModeName(ticket.mode);
  return since_ms ? fmt::format(message::kAlreadyReserved, lock, id, mode, ticket.token,
                                FormatTime(*since_ms), until)
                  : fmt::format(message::kReserved, lock, id, mode, ticket.token, until);
}

namespace {

std::string HowEnded(const std::optional<std::int64_t>& until_ms) {
  return until_ms ? fmt::format(message::kEndedAt, FormatTime(*until_ms)) : message::kHadLostPermit;
}

}  // namespace

std::string ReservationEndedEvent::Text() const {
  return fmt::format(message::kReservationEnded, lock, id, HowEnded(until_ms));
}

std::string OpenLockEvent::Text() const { return fmt::format(message::kOpenLock, lock, rights); }

std::string ChrootCreatedEvent::Text() const {
  return fmt::format(message::kChrootCreated, Printable(chroot));
}

std::string ReservationOverdueEvent::Text() const {
  return fmt::format(message::kReservationOverdue, lock, id, HowEnded(until_ms), right_path);
}

EventFields PreemptedEvent::Fields() const {
  return {{"asked", static_cast<std::int64_t>(preempted.asked)},
          {"left", static_cast<std::int64_t>(preempted.left.size())}};
}

std::string PreemptedEvent::Text() const {
  const std::size_t shown = std::min(preempted.left.size(), kMostLeftShown);
  std::string names;
  for (std::size_t i = 0; i < shown; ++i) {
    const lock::Preempted::Left& one = preempted.left[i];
    names += fmt::format("{}{} ({})", i == 0 ? "" : ", ", Printable(one.name), WhyLeft(one.why));
  }
  if (shown < preempted.left.size()) {
    names += fmt::format(message::kMoreLeft, preempted.left.size() - shown);
  }
  const std::string left = names.empty() ? "" : fmt::format(message::kLeft, names);
  if (preempted.asked == 0) return fmt::format(message::kNobodyAsked, lock, left);
  return fmt::format(message::kPreempted, preempted.asked, lock, left);
}

EventFields AcquiredByOuterEvent::Fields() const { return {{"nested", true}}; }

std::string AcquiredByOuterEvent::Text() const { return fmt::format(message::kNested, lock); }

std::string StartedEvent::Text() const {
  return fmt::format(message::kRunning, Printable(command), pid);
}

std::string SuspectEvent::Text() const { return fmt::format(message::kSuspect, locks); }

std::string ConfirmedEvent::Text() const { return fmt::format(message::kConfirmed, locks); }

EventFields LostEvent::Fields() const {
  EventFields fields = {{"reason", RowOf(cause).name}, {"unconfirmed", nullptr}, {"by", nullptr}};
  if (details.unconfirmed) {
    fields[1].value = std::chrono::duration<double>(*details.unconfirmed).count();
  }
  if (!details.by.empty()) fields[2].value = details.by;
  return fields;
}

EventFields ExitedEvent::Fields() const {
  EventFields fields = {{"status", process::ShellStatus(wait_status)},
                        {"signal", nullptr},
                        {"contained", is_contained},
                        {"sent", nullptr}};
  if (WIFSIGNALED(wait_status)) fields[1].value = SignalName(WTERMSIG(wait_status));
  if (sent != 0) fields[3].value = SignalName(sent);
  return fields;
}

std::string ExitedEvent::Text() const {
  return fmt::format(message::kExited, process::ShellStatus(wait_status));
}

EventFields NestedRunsLeftEvent::Fields() const {
  return {{"nestedRuns", static_cast<std::int64_t>(runs)}, {"pid", pid}};
}

std::string NestedRunsLeftEvent::Text() const {
  return fmt::format(message::kKeptForNested, locks, runs, pid);
}

EventFields ReleasedEvent::Fields() const {
  return {{"reason", EventName(reason)}, {"status", status}, {"confirmed", !unconfirmed}};
}

std::string ReleasedEvent::Text() const {
  if (unconfirmed && WasHeld(reason)) {
    return fmt::format(message::kNotConfirmed, locks, FormatDuration(*unconfirmed));
  }
  if (unconfirmed) return fmt::format(message::kMayBeLeft, locks);
  return fmt::format(fmt::runtime(WasHeld(reason) ? message::kReleased : message::kNoContenderLeft),
                     locks);
}

Level LevelOf(const ReleasedEvent& released) {
  // After a loss, the message about the loss says more.
  const bool is_news =
      released.unconfirmed && WasHeld(released.reason) && released.reason != EndReason::kLost;
  return is_news ? Level::kUnlessQuiet : Level::kVerbose;
}

}  // namespace zklock::cli
