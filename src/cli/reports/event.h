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
#include "lock/data/acquire_request.h"
#include "lock/data/outcome.h"
#include "lock/data/ticket.h"
#include "protocol/queue.h"

namespace zklock::cli {

// The events of a run. Each is published once, for messages, --events and the progress display. The
// text and the JSON are derived from the type:
//
//   kName     the event's name in --events; without it the event is not written there
//   Lock()    the one LOCK that it is about, if there is one
//   Fields()  its own JSON members, besides those of every event
//   kLevel    when its message is shown
//   Text()    the message, without "zklock: "
//
// A new event is also added to the variant `Event`. Several types may share a name.
//
// Paths are as the user knows them. A predecessor's name may contain arbitrary bytes.

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
using EventFields = std::vector<EventField>;

/// A server accepted the session: a new one, or the same session after a reconnect.
struct ConnectedEvent {
  static constexpr const char* kName = "connected";
  static constexpr Level kLevel = Level::kVerbose;
  std::string server;              ///< as the user wrote it
  Duration granted{};              ///< the session timeout that it grants
  Duration effective{};            ///< the timeout in effect: the shortest granted to this session
  std::optional<Duration> before;  ///< the timeout in effect until now; none for a new session
  [[nodiscard]] EventFields Fields() const;
  [[nodiscard]] std::string Text() const;
};

/// The session timeout is so short that an ordinary change of leader may end the command, or it is
/// shorter than the user asked for.
struct ShortSessionEvent {
  static constexpr Level kLevel = Level::kUnlessQuiet;
  Duration timeout{};
  std::optional<Duration> asked{};  ///< set if `timeout` is merely shorter than this
  [[nodiscard]] std::string Text() const;
};

/// Our contender is in the queue.
struct QueuedEvent {
  static constexpr const char* kName = "queued";
  static constexpr Level kLevel = Level::kVerbose;
  lock::Ticket ticket;
  bool is_requeued = false;  ///< after a PlaceLostEvent
  [[nodiscard]] std::string Lock() const { return ticket.lock.display_path(); }
  [[nodiscard]] EventFields Fields() const;
  [[nodiscard]] std::string Text() const;
};

struct WaitingEvent {
  static constexpr const char* kName = "waiting";
  static constexpr Level kLevel = Level::kVerbose;
  std::string lock;
  std::string predecessor;
  std::size_t ahead = 0;  ///< contenders ahead of ours when the queue was last listed
  /// How many of these do not hold the lock; none: not known.
  std::optional<std::size_t> waiting{};
  [[nodiscard]] std::string Lock() const { return lock; }
  [[nodiscard]] EventFields Fields() const;
  [[nodiscard]] std::string Text() const;
};

/// It is our turn, but the lease is too short to start the command: the session is confirmed again.
struct FirstEvent {
  static constexpr const char* kName = "first";
  static constexpr Level kLevel = Level::kUnlessQuiet;
  std::string lock;
  [[nodiscard]] std::string Lock() const { return lock; }
  [[nodiscard]] std::string Text() const;
};

/// The session expired in the queue, or its timeout is too short for the servers; a new contender
/// will queue at the tail.
struct PlaceLostEvent {
  static constexpr Level kLevel = Level::kUnlessQuiet;
  std::string lock;
  std::optional<lock::TooSlow> too_short{};  ///< then the next session gets `longer`
  [[nodiscard]] std::string Lock() const { return lock; }
  [[nodiscard]] std::string Text() const;
};

/// A contender that ignores ours has joined the queue after it; both may hold the lock at the same
/// time.
struct IncompatibleArrivedEvent {
  static constexpr Level kLevel = Level::kAlways;
  std::string lock;
  protocol::IncompatibleContender incompatible;
  [[nodiscard]] std::string Lock() const { return lock; }
  [[nodiscard]] std::string Text() const;
};

struct AcquiredEvent {
  static constexpr const char* kName = "acquired";
  static constexpr Level kLevel = Level::kVerbose;
  lock::Ticket ticket;
  [[nodiscard]] std::string Lock() const { return ticket.lock.display_path(); }
  [[nodiscard]] EventFields Fields() const;
  [[nodiscard]] std::string Text() const;
};

/// The lock is reserved, and stays reserved after this run.
struct ReservedEvent {
  static constexpr const char* kName = "reserved";
  static constexpr Level kLevel = Level::kVerbose;
  lock::Ticket ticket;  ///< of the reservation, which no session owns
  std::string id;
  // By the servers' clock, in ms since 1970:
  std::optional<std::int64_t> since_ms{};  ///< when an earlier run made it; none: it is new
  std::optional<std::int64_t> until_ms{};  ///< none: until it is released
  [[nodiscard]] std::string Lock() const { return ticket.lock.display_path(); }
  [[nodiscard]] EventFields Fields() const;
  [[nodiscard]] std::string Text() const;
};

/// A reservation that was in the way had ended, and was deleted.
struct ReservationEndedEvent {
  static constexpr Level kLevel = Level::kVerbose;
  std::string lock;
  std::string id;
  std::optional<std::int64_t> until_ms{};  ///< by the servers' clock, since 1970; none: incomplete
  [[nodiscard]] std::string Lock() const { return lock; }
  [[nodiscard]] std::string Text() const;
};

/// A reservation that is in the way has ended, but this run lacks permission to delete it.
struct ReservationOverdueEvent {
  static constexpr Level kLevel = Level::kUnlessQuiet;
  std::string lock;
  std::string id;
  std::optional<std::int64_t> until_ms{};  ///< by the servers' clock, since 1970; none: incomplete
  std::string right_path;                  ///< the znode on which this run lacks the right DELETE
  [[nodiscard]] std::string Lock() const { return lock; }
  [[nodiscard]] std::string Text() const;
};

/// This run has credentials, but anyone can take the lock away or hold it at the same time.
struct OpenLockEvent {
  static constexpr Level kLevel = Level::kUnlessQuiet;
  std::string lock;
  std::string rights;  ///< those that everyone has on it: "WRITE, DELETE"
  [[nodiscard]] std::string Lock() const { return lock; }
  [[nodiscard]] std::string Text() const;
};

/// The chroot of --servers did not exist, and was created with the LOCK.
struct ChrootCreatedEvent {
  static constexpr Level kLevel = Level::kUnlessQuiet;
  std::string chroot;
  [[nodiscard]] std::string Text() const;
};

/// With --preempt: contenders ahead of this run were asked to leave.
struct PreemptedEvent {
  static constexpr const char* kName = "preempted";
  static constexpr Level kLevel = Level::kUnlessQuiet;
  std::string lock;
  lock::Preempted preempted;
  [[nodiscard]] std::string Lock() const { return lock; }
  [[nodiscard]] EventFields Fields() const;
  [[nodiscard]] std::string Text() const;
};

/// An outer zklock already holds the lock for this run.
struct AcquiredByOuterEvent {
  static constexpr const char* kName = "acquired";
  static constexpr Level kLevel = Level::kVerbose;
  std::string lock;
  [[nodiscard]] std::string Lock() const { return lock; }
  [[nodiscard]] EventFields Fields() const;
  [[nodiscard]] std::string Text() const;
};

struct StartedEvent {
  static constexpr Level kLevel = Level::kVerbose;
  std::string command;
  pid_t pid = 0;
  [[nodiscard]] std::string Text() const;
};

/// The connection is lost, or the server does not answer.
struct SuspectEvent {
  static constexpr const char* kName = "suspect";
  static constexpr Level kLevel = Level::kVerbose;
  std::string locks;  ///< all that are held
  [[nodiscard]] std::string Text() const;
};

/// After a SuspectEvent, the lock was proven to be held.
struct ConfirmedEvent {
  static constexpr const char* kName = "confirmed";
  static constexpr Level kLevel = Level::kVerbose;
  std::string locks;
  [[nodiscard]] std::string Text() const;
};

/// The lock is lost, or its lease is about to end. The message follows when the fate of the command
/// is known.
struct LostEvent {
  static constexpr const char* kName = "lost";
  static constexpr Level kLevel = Level::kAlways;
  std::string locks;
  EndCause cause = EndCause::kUnproven;
  CauseDetails details{};
  [[nodiscard]] EventFields Fields() const;
  [[nodiscard]] static std::string Text() { return ""; }
};

/// The command ended and was reaped.
struct ExitedEvent {
  static constexpr const char* kName = "exited";
  static constexpr Level kLevel = Level::kVerbose;
  int wait_status = 0;        ///< as from waitpid
  bool is_contained = false;  ///< it ran in a cgroup of its own
  int sent = 0;               ///< the last signal that was sent to end it; 0: none
  [[nodiscard]] EventFields Fields() const;
  [[nodiscard]] std::string Text() const;
};

/// The command has ended, but nested runs below it have not: the lock is held until they end.
struct NestedRunsLeftEvent {
  static constexpr const char* kName = "nested";
  static constexpr Level kLevel = Level::kUnlessQuiet;
  std::string locks;
  std::size_t runs = 0;
  pid_t pid = 0;  ///< of one of them
  [[nodiscard]] EventFields Fields() const;
  [[nodiscard]] std::string Text() const;
};

/// The session is closed: nothing is queued or held any longer.
struct ReleasedEvent {
  static constexpr const char* kName = "released";
  std::string locks;
  EndReason reason = EndReason::kEnded;
  int status = 0;  ///< zklock's exit status
  /// No server confirmed the release: it takes effect when the session, which has this timeout,
  /// expires.
  std::optional<Duration> unconfirmed{};
  [[nodiscard]] EventFields Fields() const;
  [[nodiscard]] std::string Text() const;
};

/// When to show the text of an event.
template <typename E>
[[nodiscard]] Level LevelOf(const E& /*event*/) {
  return E::kLevel;
}
[[nodiscard]] Level LevelOf(const ReleasedEvent& released);

using Event =
    std::variant<ConnectedEvent, ShortSessionEvent, QueuedEvent, WaitingEvent, FirstEvent,
                 PlaceLostEvent, IncompatibleArrivedEvent, AcquiredEvent, ReservedEvent,
                 ReservationEndedEvent, ReservationOverdueEvent, OpenLockEvent, ChrootCreatedEvent,
                 PreemptedEvent, AcquiredByOuterEvent, StartedEvent, SuspectEvent, ConfirmedEvent,
                 LostEvent, ExitedEvent, NestedRunsLeftEvent, ReleasedEvent>;

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
