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
#include "protocol/lock_path.h"

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
constexpr char kLeftAsked[] = "asked to leave {} by {}; still waiting for {}";
constexpr char kLeftDeleted[] = "our contender in {} was deleted; still waiting for {}";
constexpr char kLeftTaken[] = "our contender in {} was deleted by {}; still waiting for {}";
constexpr char kLeftFull[] = "the queue of {} is full (--max-queue); still waiting for {}";
constexpr char kLeftRival[] =
    "left the queue of {}, since an earlier run with the same ID waits in another; still waiting "
    "for {}";
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
constexpr char kAskedNobody[] = "asked nobody ahead of this run in {} to leave: {}";
constexpr char kTooSoonNow[] =
    "--once-per or --min-interval would keep the command from running now";
constexpr char kRecordUnusable[] =
    "a record that --once-per or --min-interval needs cannot be used";
constexpr char kMayNotReserve[] = "we lack permission to reserve the lock";
constexpr char kLeft[] = "; waiting for {}";
constexpr char kMoreLeft[] = " and {} more";
constexpr char kLeftReservation[] = "a reservation";
constexpr char kLeftProgram[] = "of another program";
constexpr char kLeftQuota[] = "a hard quota leaves no room for the request";
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
    case lock::Preempted::Why::kQuota:
      return message::kLeftQuota;
    case lock::Preempted::Why::kNoRight:
    case lock::Preempted::Why::kNobody:
      break;
  }
  return message::kLeftRight;
}

const char* WhyNobody(lock::Preempted::Nobody why) {
  switch (why) {
    case lock::Preempted::Nobody::kTooSoon:
      return message::kTooSoonNow;
    case lock::Preempted::Nobody::kRecord:
      return message::kRecordUnusable;
    case lock::Preempted::Nobody::kNoDelete:
      break;
  }
  return message::kMayNotReserve;
}

double Seconds(Duration span) { return std::chrono::duration<double>(span).count(); }

/// Says how a reservation that blocks this run ended.
std::string HowEnded(const lock::Reserved& reserved) {
  if (reserved.is_incomplete || !reserved.until) return message::kHadLostPermit;
  return fmt::format(message::kEndedAt, FormatTime(reserved.until->count()));
}

// ---- of lock/ -------------------------------------------------------------------------------

EventText TextOf(const lock::QueuedEvent& event) {
  EventText shown = {.name = "queued",
                     .lock = event.ticket.lock.display_path(),
                     .text = fmt::format(message::kQueued, Printable(event.ticket.display_path()))};
  if (event.is_requeued) shown.fields = {{"reason", "expired"}};
  return shown;
}

EventText TextOf(const lock::WaitingEvent& event) {
  const auto position = static_cast<std::int64_t>(event.ahead.contenders + 1);
  return {.name = "waiting",
          .lock = event.lock,
          .text = fmt::format(message::kWaiting, event.lock, PlaceInLine(event.ahead.waiting),
                              Printable(event.predecessor)),
          .fields = {{"position", position}, {"waitsFor", event.predecessor}}};
}

EventText TextOf(const lock::PreemptedEvent& event) {
  const std::vector<lock::Preempted::Left>& all_left = event.preempted.left;
  const std::size_t asked = event.preempted.asked;
  const std::size_t shown = std::min(all_left.size(), kMostLeftShown);
  std::string names;
  for (std::size_t i = 0; i < shown; ++i) {
    const lock::Preempted::Left& one = all_left[i];
    names += fmt::format("{}{} ({})", i == 0 ? "" : ", ", Printable(one.name), WhyLeft(one.why));
  }
  if (shown < all_left.size()) names += fmt::format(message::kMoreLeft, all_left.size() - shown);
  const std::string left = names.empty() ? "" : fmt::format(message::kLeft, names);
  std::string text = asked == 0 ? fmt::format(message::kNobodyAsked, event.lock, left)
                                : fmt::format(message::kPreempted, asked, event.lock, left);
  if (const auto& nobody = event.preempted.nobody) {
    text = fmt::format(message::kAskedNobody, event.lock, WhyNobody(*nobody));
  }
  return {.name = "preempted",
          .lock = event.lock,
          .level = Level::kUnlessQuiet,
          .text = text,
          .fields = {{"asked", static_cast<std::int64_t>(asked)},
                     {"left", static_cast<std::int64_t>(all_left.size())}}};
}

EventText TextOf(const lock::FirstEvent& event) {
  return {.name = "first",
          .lock = event.lock,
          .level = Level::kUnlessQuiet,
          .text = fmt::format(message::kFirst, event.lock)};
}

EventText TextOf(const lock::PlaceLostEvent& event) {
  if (event.is_followed) return {.lock = event.lock};
  const auto& slow = event.too_short;
  return {.lock = event.lock,
          .level = Level::kUnlessQuiet,
          .text = slow ? fmt::format(message::kSessionTooShort, event.lock,
                                     FormatDuration(slow->timeout), FormatDuration(slow->ping_span),
                                     FormatDuration(slow->longer.value_or(Duration::zero())))
                       : fmt::format(message::kPlaceLost, event.lock)};
}

EventText TextOf(const lock::QueueLeftEvent& event) {
  using Why = lock::QueueLeftEvent::Why;
  std::string open;
  for (const std::string& lock : event.open) open += (open.empty() ? "" : ", ") + lock;
  const std::string by = event.request ? AskerText(*event.request) : "";
  EventText shown = {.name = "left", .lock = event.lock, .fields = {{"by", nullptr}}};
  if (event.request) shown.fields[0].value = by;
  const auto set = [&](const char* reason, Level level, std::string text) {
    shown.fields.push_back({"reason", reason});
    shown.level = level;
    shown.text = std::move(text);
  };
  switch (event.why) {
    case Why::kRequested:
      set("requested", Level::kUnlessQuiet, fmt::format(message::kLeftAsked, event.lock, by, open));
      break;
    case Why::kRemoved:
      set("removed", Level::kUnlessQuiet,
          event.request ? fmt::format(message::kLeftTaken, event.lock, by, open)
                        : fmt::format(message::kLeftDeleted, event.lock, open));
      break;
    case Why::kQueueFull:
      set("queue-full", Level::kVerbose, fmt::format(message::kLeftFull, event.lock, open));
      break;
    case Why::kRival:
      set("reserving", Level::kVerbose, fmt::format(message::kLeftRival, event.lock, open));
      break;
  }
  return shown;
}

EventText TextOf(const lock::ReservationEndedEvent& event) {
  return {.lock = event.lock,
          .text = fmt::format(message::kReservationEnded, event.lock, event.reserved.reservation.id,
                              HowEnded(event.reserved))};
}

EventText TextOf(const lock::ReservationOverdueEvent& event) {
  const std::string lock = event.lock.display_path();
  const std::string queue = event.lock.DisplayPath(std::string(protocol::ParentOf(event.path)));
  return {.lock = lock,
          .level = Level::kUnlessQuiet,
          .text = fmt::format(message::kReservationOverdue, lock, event.reserved.reservation.id,
                              HowEnded(event.reserved), queue)};
}

EventText TextOf(const lock::IncompatibleArrivedEvent& event) {
  return {.lock = event.lock,
          .level = Level::kAlways,
          .text = fmt::format(message::kIncompatibleArrived, event.lock,
                              Printable(event.incompatible.child),
                              IncompatibleText(event.incompatible.kind))};
}

// ---- of zklock itself -----------------------------------------------------------------------

EventText TextOf(const ConnectedEvent& event) {
  const std::string server = Printable(event.server);
  const std::string granted = FormatDuration(event.granted);
  const std::string effective = FormatDuration(event.effective);
  EventText shown = {.name = "connected",
                     .fields = {{"server", event.server},
                                {"sessionTimeout", Seconds(event.granted)},
                                {"effectiveTimeout", Seconds(event.effective)}}};
  if (event.before && event.effective < *event.before) {
    shown.text =
        fmt::format(message::kTimeoutShortened, server, granted, FormatDuration(*event.before));
  } else if (event.effective < event.granted) {
    shown.text = fmt::format(message::kShorterTimeoutCounts, server, granted, effective);
  } else {
    shown.text = fmt::format(message::kConnected, server, granted);
  }
  return shown;
}

EventText TextOf(const ShortSessionEvent& event) {
  const std::string timeout = FormatDuration(event.timeout);
  return {.level = Level::kUnlessQuiet,
          .text = event.asked
                      ? fmt::format(message::kGrantedLess, timeout, FormatDuration(*event.asked))
                      : fmt::format(message::kShortSession, timeout)};
}

EventText TextOf(const AcquiredEvent& event) {
  const std::string lock = event.ticket.lock.display_path();
  const std::string mode(protocol::ModeName(event.ticket.mode));
  return {.name = "acquired",
          .lock = lock,
          .text = fmt::format(message::kAcquired, lock, mode, event.ticket.token),
          .fields = {{"mode", mode}}};
}

EventText TextOf(const ReservedEvent& event) {
  const lock::Ticket& ticket = event.ticket;
  const std::string lock = ticket.lock.display_path();
  const std::string mode(protocol::ModeName(ticket.mode));
  const std::string until =
      event.until_ms ? fmt::format(message::kUntil, FormatTime(*event.until_ms)) : "";
  EventText shown = {
      .name = "reserved",
      .lock = lock,
      .text = event.since_ms
                  ? fmt::format(message::kAlreadyReserved, lock, event.id, mode, ticket.token,
                                FormatTime(*event.since_ms), until)
                  : fmt::format(message::kReserved, lock, event.id, mode, ticket.token, until),
      .fields = {{"mode", mode}, {"id", event.id}, {"until", nullptr}, {"new", !event.since_ms}}};
  if (event.until_ms) shown.fields[2].value = FormatUtc(*event.until_ms).value_or("");
  return shown;
}

EventText TextOf(const OpenLockEvent& event) {
  return {.lock = event.lock,
          .level = Level::kUnlessQuiet,
          .text = fmt::format(message::kOpenLock, event.lock, event.rights)};
}

EventText TextOf(const ChrootCreatedEvent& event) {
  return {.level = Level::kUnlessQuiet,
          .text = fmt::format(message::kChrootCreated, Printable(event.chroot))};
}

EventText TextOf(const AcquiredByOuterEvent& event) {
  return {.name = "acquired",
          .lock = event.lock,
          .text = fmt::format(message::kNested, event.lock),
          .fields = {{"nested", true}}};
}

EventText TextOf(const StartedEvent& event) {
  return {.text = fmt::format(message::kRunning, Printable(event.command), event.pid)};
}

EventText TextOf(const SuspectEvent& event) {
  return {.name = "suspect", .text = fmt::format(message::kSuspect, event.locks)};
}

EventText TextOf(const ConfirmedEvent& event) {
  return {.name = "confirmed", .text = fmt::format(message::kConfirmed, event.locks)};
}

EventText TextOf(const LostEvent& event) {
  EventText shown = {
      .name = "lost",
      .fields = {{"reason", RowOf(event.cause).name}, {"unconfirmed", nullptr}, {"by", nullptr}}};
  const CauseDetails& details = event.details;
  if (details.unconfirmed) shown.fields[1].value = Seconds(*details.unconfirmed);
  if (!details.by.empty()) shown.fields[2].value = details.by;
  return shown;
}

EventText TextOf(const ExitedEvent& event) {
  const int status = process::ShellStatus(event.wait_status);
  EventText shown = {.name = "exited",
                     .text = fmt::format(message::kExited, status),
                     .fields = {{"status", status},
                                {"signal", nullptr},
                                {"contained", event.is_contained},
                                {"sent", nullptr}}};
  if (WIFSIGNALED(event.wait_status)) {
    shown.fields[1].value = SignalName(WTERMSIG(event.wait_status));
  }
  if (event.sent != 0) shown.fields[3].value = SignalName(event.sent);
  return shown;
}

EventText TextOf(const NestedRunsLeftEvent& event) {
  return {.name = "nested",
          .level = Level::kUnlessQuiet,
          .text = fmt::format(message::kKeptForNested, event.locks, event.runs, event.pid),
          .fields = {{"nestedRuns", static_cast<std::int64_t>(event.runs)}, {"pid", event.pid}}};
}

EventText TextOf(const ReleasedEvent& event) {
  const bool was_held = WasHeld(event.reason);
  EventText shown = {.name = "released",
                     .fields = {{"reason", EventName(event.reason)},
                                {"status", event.status},
                                {"confirmed", !event.unconfirmed}}};
  if (event.unconfirmed && was_held) {
    // After a loss, the message about the loss says more.
    if (event.reason != EndReason::kLost) shown.level = Level::kUnlessQuiet;
    shown.text =
        fmt::format(message::kNotConfirmed, event.locks, FormatDuration(*event.unconfirmed));
  } else if (event.unconfirmed) {
    shown.text = fmt::format(message::kMayBeLeft, event.locks);
  } else if (was_held) {
    shown.text = fmt::format(message::kReleased, event.locks);
  } else {
    shown.text = fmt::format(message::kNoContenderLeft, event.locks);
  }
  return shown;
}

}  // namespace

EventText Describe(const Event& event) {
  return std::visit([](const auto& one) { return TextOf(one); }, event);
}

}  // namespace zklock::cli
