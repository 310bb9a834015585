#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "lock/data/contender_data.h"
#include "lock/data/outcome.h"
#include "lock/data/reserved.h"
#include "lock/data/ticket.h"
#include "protocol/queue.h"

// Events while a lock is acquired and while it is held. cli/reports/event turns those that users
// see into text. `lock` is the LOCK as the user knows it.

namespace zklock::lock {

/// A server has accepted the session, whether new or resumed.
struct SessionAcceptedEvent {};

/// A contender is about to be created below `queue`.
struct JoiningEvent {
  LockName lock;
  std::string queue;
};

/// Our contender is in the queue.
struct QueuedEvent {
  Ticket ticket;
  bool is_requeued = false;  ///< after a PlaceLostEvent; set by the publisher of all events
};

/// The contenders ahead of us in the queue.
struct Ahead {
  std::size_t contenders = 0;            ///< all of them, when the queue was last listed
  std::optional<std::size_t> waiting{};  ///< those that do not hold the lock; none if unknown
};

/// Our contender waits for `predecessor`, whose name may contain arbitrary bytes.
struct WaitingEvent {
  std::string lock;
  std::string predecessor;
  Ahead ahead{};
};

/// The result of --preempt.
struct Preempted {
  enum class Why { kReservation, kOtherProgram, kNoRight, kQuota, kNobody };
  struct Left {
    std::string name;
    Why why = Why::kNoRight;
  };
  /// Why nobody is asked: our run could not begin, even if it got the lock now.
  enum class Nobody {
    kTooSoon,   ///< the last run is too recent
    kRecord,    ///< it is unknown, or our start cannot be recorded
    kNoDelete,  ///< our contender cannot become a reservation
  };
  std::optional<Nobody> nobody{};  ///< set: `left` has all contenders, with Why::kNobody
  std::size_t asked = 0;
  std::vector<Left> left{};  ///< contenders that could not be asked: we have to wait for them
};

/// The contenders ahead of us were asked to leave.
struct PreemptedEvent {
  std::string lock;
  Preempted preempted{};
};

/// It is our turn, but the lease is too short to start a command: the session is confirmed again.
struct FirstEvent {
  std::string lock;
};

/// Our place in the queue is lost, and we queue again at the tail: the session has expired, or was
/// given up.
struct PlaceLostEvent {
  std::string lock;
  std::optional<TooSlow> too_short{};  ///< set if the session was given up for a longer one
  /// Another such event follows, for another LOCK in which our place was lost at the same time.
  bool is_followed = false;
};

/// With --any: we have left one queue for good, and wait in others.
struct QueueLeftEvent {
  enum class Why {
    kRequested,  ///< our contender was asked to leave
    kRemoved,    ///< our contender was deleted
    kQueueFull,  ///< the maximum number of contenders already wait
    kRival,      ///< an earlier run with our ID waits in another of the queues
  };
  std::string lock;
  std::string contender;  ///< its path; may be empty
  Why why = Why::kRequested;
  std::vector<std::string> open;  ///< the LOCKs that we still wait for
  /// The release or deletion request, if known; set by the publisher of all events.
  std::optional<ReleaseRequest> request{};
};

/// Returns why a queue is left after this outcome; none if it ends the waits in all queues.
[[nodiscard]] inline std::optional<QueueLeftEvent::Why> WhyLeft(Busy::Why why) {
  if (why == Busy::Why::kQueueFull) return QueueLeftEvent::Why::kQueueFull;
  if (why == Busy::Why::kRemoved) return QueueLeftEvent::Why::kRemoved;
  return std::nullopt;
}

/// We have deleted a reservation that was in the way and had ended.
struct ReservationEndedEvent {
  std::string lock;
  Reserved reserved{};
};

/// The reservation at `path` is in the way and overdue, but we lack the permission to delete it.
/// May be published again for the same reservation.
struct ReservationOverdueEvent {
  LockName lock;
  std::string path;
  Reserved reserved{};
};

/// A contender that cannot see ours has arrived after it; both may hold the lock.
struct IncompatibleArrivedEvent {
  std::string lock;
  protocol::IncompatibleContender incompatible{};
};

/// The data of our own `contender`: published once at the start, and whenever it is written to.
struct OwnDataEvent {
  std::string contender;
  std::string data;
};

/// The lease now ends at `end`: later than before, or earlier if a server has granted a shorter
/// session timeout.
struct LeaseEvent {
  TimePoint end{};
  Duration grace{};  ///< the time that this leaves between the stop signal and KILL
};

/// The server is gone or does not answer: the lease is no longer extended.
struct AnswerOverdueEvent {};

/// The lease is extended again after an AnswerOverdueEvent.
struct ProvenAgainEvent {};

using AcquireEvent =
    std::variant<SessionAcceptedEvent, JoiningEvent, QueuedEvent, WaitingEvent, PreemptedEvent,
                 FirstEvent, PlaceLostEvent, QueueLeftEvent, ReservationEndedEvent,
                 ReservationOverdueEvent, IncompatibleArrivedEvent, OwnDataEvent>;
using HoldEvent = std::variant<SessionAcceptedEvent, LeaseEvent, AnswerOverdueEvent,
                               ProvenAgainEvent, OwnDataEvent>;

/// Functions that receive the events, called from within the code that publishes them.
using AcquireEventSink = std::function<void(const AcquireEvent&)>;
using HoldEventSink = std::function<void(const HoldEvent&)>;

}  // namespace zklock::lock
