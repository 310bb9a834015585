#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/end_cause.h"
#include "cli/options/options.h"
#include "cli/reports/end_reason.h"
#include "lock/data/event.h"
#include "lock/data/ticket.h"

namespace zklock::cli {

// The events of a run: those that lock/ publishes and users see, and those of zklock itself. Each
// is published once, for messages, --events and the progress display. A new event is added to the
// variant `Event`; TextOf() in event.cc then needs an overload for it.
//
// Paths are as the user knows them. A predecessor's name may contain arbitrary bytes.

/// A server accepted the session: a new one, or the same session after a reconnect.
struct ConnectedEvent {
  std::string server;              ///< as the user wrote it
  Duration granted{};              ///< the session timeout that it grants
  Duration effective{};            ///< the timeout in effect: the shortest granted to this session
  std::optional<Duration> before;  ///< the timeout in effect until now; none for a new session
};

/// The session timeout is so short that an ordinary change of leader may end the command, or it is
/// shorter than the user asked for.
struct ShortSessionEvent {
  Duration timeout{};
  std::optional<Duration> asked{};  ///< set if `timeout` is merely shorter than this
};

struct AcquiredEvent {
  lock::Ticket ticket;
};

/// The lock is reserved, and stays reserved after this run.
struct ReservedEvent {
  lock::Ticket ticket;  ///< of the reservation, which no session owns
  std::string id;
  // By the servers' clock, in ms since 1970:
  std::optional<std::int64_t> since_ms{};  ///< when an earlier run made it; none: it is new
  std::optional<std::int64_t> until_ms{};  ///< none: until it is released
};

/// This run has credentials, but anyone can take its lock away or hold the lock concurrently.
struct OpenLockEvent {
  std::string lock;
  std::string rights;  ///< what everyone may do with the LOCK: "WRITE, DELETE"
};

/// The chroot of --servers did not exist, and was created with the LOCK.
struct ChrootCreatedEvent {
  std::string chroot;
};

/// An outer zklock already holds the lock for this run.
struct AcquiredByOuterEvent {
  std::string lock;
};

struct StartedEvent {
  std::string command;
  pid_t pid = 0;
};

/// The connection is lost, or the server does not answer.
struct SuspectEvent {
  std::string locks;  ///< all that are held
};

/// After a SuspectEvent: the lock has been proven to be still held.
struct ConfirmedEvent {
  std::string locks;
};

/// The lock is lost, or its lease is about to end. The message follows when the fate of the command
/// is known.
struct LostEvent {
  EndCause cause = EndCause::kUnproven;
  CauseDetails details{};
};

/// The command ended and was reaped.
struct ExitedEvent {
  int wait_status = 0;        ///< as from waitpid
  bool is_contained = false;  ///< it ran in a cgroup of its own
  int sent = 0;               ///< the last signal that was sent to end it; 0: none
};

/// The command has ended, but nested runs below it have not: the lock is held until they end.
struct NestedRunsLeftEvent {
  std::string locks;
  std::size_t runs = 0;
  pid_t pid = 0;  ///< of one of them
};

/// The session is closed: nothing is queued or held any longer.
struct ReleasedEvent {
  std::string locks;
  EndReason reason = EndReason::kEnded;
  int status = 0;  ///< zklock's exit status
  /// The session's timeout, if no server confirmed the release, which then takes effect when the
  /// session expires.
  std::optional<Duration> unconfirmed{};
};

using Event =
    std::variant<lock::QueuedEvent, lock::WaitingEvent, lock::PreemptedEvent, lock::FirstEvent,
                 lock::PlaceLostEvent, lock::QueueLeftEvent, lock::ReservationEndedEvent,
                 lock::ReservationOverdueEvent, lock::IncompatibleArrivedEvent, ConnectedEvent,
                 ShortSessionEvent, AcquiredEvent, ReservedEvent, OpenLockEvent, ChrootCreatedEvent,
                 AcquiredByOuterEvent, StartedEvent, SuspectEvent, ConfirmedEvent, LostEvent,
                 ExitedEvent, NestedRunsLeftEvent, ReleasedEvent>;

/// When a message is shown.
enum class Level {
  kAlways,
  kUnlessQuiet,  ///< not with --quiet
  kVerbose,      ///< only with --verbose
};

/// A member of an event's JSON object.
struct EventField {
  const char* name;
  std::variant<std::nullptr_t, bool, std::int64_t, double, std::string> value;
};

/// What users see of an event.
struct EventText {
  const char* name = nullptr;         ///< in --events; null: it is not written there
  std::optional<std::string> lock{};  ///< the LOCK that it is about; none: all of them
  Level level = Level::kVerbose;      ///< of its message
  std::string text{};                 ///< the message, without "zklock: "; empty: it has none
  std::vector<EventField> fields{};   ///< its own JSON members, besides those of every event
};
[[nodiscard]] EventText Describe(const Event& event);

/// Receives each event of a run, in order.
class EventListener {
 public:
  EventListener() = default;
  EventListener(const EventListener&) = delete;
  EventListener& operator=(const EventListener&) = delete;
  virtual ~EventListener() = default;
  virtual void OnEvent(const Event& event) = 0;
};

}  // namespace zklock::cli
