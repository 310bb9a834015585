#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "lock/data/contender_data.h"
#include "lock/data/last_runs.h"
#include "lock/data/outcome.h"
#include "lock/data/ticket.h"
#include "protocol/contender_name.h"
#include "protocol/lock_path.h"
#include "protocol/queue.h"
#include "protocol/reservation.h"
#include "protocol/semaphore.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// For --preempt: how contenders ahead of us are asked to leave.
struct Preempt {
  bool holders = false;              ///< ask holders too, not only waiters
  RunIntervals intervals{};          ///< nobody is asked if they keep our run from beginning
  std::vector<std::string> locks{};  ///< the paths of all LOCKs of our run
  ReleaseRequest request{};
  /// Returns whether the contender with this path and data must not be asked, because it holds the
  /// lock, or waits for it, on our behalf.
  std::function<bool(const std::string& path, const std::string& data)> spares{};
};

/// A contender that the caller of Acquire has created in the same transaction as others.
struct GivenContender {
  std::string uuid;
  TimePoint sent{};            ///< when its create was first sent
  std::string path{};          ///< its znode; empty if the reply was lost: it may not exist
  zookeeper::NodeStat stat{};  ///< of the znode
  /// Replaces `path` and `stat` for a contender that was known before and must be proven again.
  std::optional<Ticket> known{};
};

/// A run's first contender in a LOCK, which determines for --supersede how old the run is. Kept
/// when the contender is lost and the run queues again, in the same session or in another one.
struct FirstPlace {
  std::int64_t token = 0;            ///< 0: the run has not yet seen its contender in a list
  std::vector<std::string> older{};  ///< protocol::SupersedingUpTo() for this contender
};

/// A request to acquire one LOCK.
struct AcquireRequest {
  LockName lock;
  protocol::Mode mode = protocol::Mode::kExclusive;
  protocol::Dialect dialect = protocol::Dialect::kCurator;
  std::string host;  ///< for the contender's name
  std::string data;  ///< the contender's data; never needed for correctness
  /// Our contender, if the caller has already created it; Acquire then creates none.
  std::optional<GivenContender> given{};
  /// Our contenders in the other LOCKs that this session already holds. They are proven together
  /// with this one; if one of them is deleted, all are lost.
  std::vector<ContenderId> held{};
  /// Do not wait: leave at once if the lock is not free, and do not even join the queue of a lock
  /// that is visibly held.
  bool try_only = false;
  /// With `try_only`: keep looking, for `connect_timeout` at most, while the contender in the way
  /// waits for any of several LOCKs and may be about to withdraw.
  bool looks_again = false;
  /// Our contender may have to leave while the session continues.
  bool may_leave = false;
  std::optional<Duration> wait;  ///< how long to stay in the queue; none: forever
  TimePoint wait_end = kNever;   ///< when the wait for an earlier LOCK of the same run ends
  /// Leave at once if, after joining, at least this many contenders wait ahead of us. If ours
  /// supersedes older ones, this is decided before joining; see QueueWaitPart::LookIfFree().
  std::optional<std::size_t> max_queue{};
  /// Supersede older contenders, and leave the queue when a newer one supersedes ours.
  bool supersede = false;
  /// Shared by all copies of a request, and by the requests of one run for this LOCK.
  std::shared_ptr<FirstPlace> first_place = std::make_shared<FirstPlace>();
  /// For a semaphore: the child of LOCK whose children are the queue, either the turnstile or the
  /// parent of the permits. Otherwise empty.
  std::string below{};
  /// For the permit request: the maximum number of permits.
  std::optional<std::size_t> permits{};
  /// For both requests of a semaphore, turnstile and permits: how many permits to take. They are
  /// created and deleted together.
  std::size_t take = 1;
  /// For the turnstile request of a `try`: do not wait there; leave if the contenders ahead of us
  /// take so many permits that too few remain.
  bool passes = false;
  /// For both requests of a semaphore: the maximum number of permits.
  std::size_t most_permits = 0;
  /// Reserve the lock for an ID. An existing reservation for this ID suffices; otherwise our
  /// contender will be converted (MakeReservations).
  std::optional<protocol::ReservationRequest> reserve{};
  std::optional<Preempt> preempt{};
  /// Called when the lock is not free, to learn whether it is held on our behalf. May be empty.
  HoldsForUs holds_for_us{};
  /// How long to continue without a server. Once we have been in the queue, we continue at least as
  /// long as the session and the wait can last.
  Duration connect_timeout = std::chrono::seconds(15);

  /// Returns the znode whose children are the queue.
  [[nodiscard]] std::string QueuePath() const {
    return below.empty() ? lock.path : protocol::ChildPath(lock.path, below);
  }
  /// Returns how many znodes our contender consists of.
  [[nodiscard]] std::size_t znodes() const { return permits ? take : 1; }
  [[nodiscard]] bool is_for_turnstile() const { return below == protocol::kTurnstileChild; }
  /// Returns whether our contender supersedes older ones. A run that queues again is as old as its
  /// first contender: it supersedes nobody.
  [[nodiscard]] bool supersedes() const { return supersede && first_place->token == 0; }
  /// Returns whether our contender is created only if we may delete it.
  [[nodiscard]] bool must_be_deletable() const { return may_leave || is_for_turnstile(); }
  /// Returns the parent of the contenders that can become reservations.
  [[nodiscard]] std::string ReservationsPath() const {
    return is_for_turnstile() ? protocol::PermitsPath(lock.path) : QueuePath();
  }
  [[nodiscard]] bool is_simple() const { return dialect == protocol::Dialect::kSimple; }
};

}  // namespace zklock::lock
