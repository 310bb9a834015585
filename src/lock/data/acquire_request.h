#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "lock/data/contender_data.h"
#include "lock/data/outcome.h"
#include "lock/data/ticket.h"
#include "protocol/contender_name.h"
#include "protocol/lock_path.h"
#include "protocol/queue.h"
#include "protocol/reservation.h"
#include "protocol/semaphore.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// For --preempt: contenders before ours are asked to leave.
struct Preempt {
  bool holders = false;  ///< not only those that wait
  ReleaseRequest request{};
  /// Whether a contender with this path and data is never asked: it holds or waits for ourselves.
  std::function<bool(const std::string& path, const std::string& data)> spares{};
};

/// Whom --preempt has asked.
struct Preempted {
  enum class Why { kReservation, kOtherProgram, kNoRight };
  struct Left {
    std::string name;
    Why why = Why::kNoRight;
  };
  std::size_t asked = 0;
  std::vector<Left> left{};  ///< those that could not be asked: they have to be waited for
};

/// A contender that the caller of Acquire has created, in one transaction with others.
struct GivenContender {
  std::string uuid;
  TimePoint sent{};            ///< when its create was sent first
  std::string path{};          ///< its znode; empty if the reply was lost: it may not exist
  zookeeper::NodeStat stat{};  ///< of the znode
  /// As it was known before, in place of the two above: it has to be proven again.
  std::optional<Ticket> known{};
};

/// What to queue for, and for how long.
struct AcquireRequest {
  LockName lock;
  protocol::Mode mode = protocol::Mode::kExclusive;
  protocol::Dialect dialect = protocol::Dialect::kCurator;
  std::string host;  ///< for the contender's name
  std::string data;  ///< the contender's data; never needed for correctness
  /// Our contender, if the caller has created it: then no other one is created.
  std::optional<GivenContender> given{};
  /// Contenders in other LOCKs that this session already holds. They are proven together with this
  /// one; if one of them is deleted, all are lost.
  std::vector<ContenderId> held{};
  /// Do not wait: leave at once when the lock is not free, and do not even join a queue that is
  /// visibly held.
  bool try_only = false;
  /// But look again for a moment if the contender in the way waits for any of several LOCKs, and
  /// may be about to withdraw.
  bool looks_again = false;
  std::optional<Duration> wait;  ///< how long to stay in the queue; none: for ever
  /// Leave at once when this many contenders wait already, by the rank after joining.
  std::optional<std::size_t> max_queue{};
  /// Leave the queue when a newer contender supersedes ours; ours supersedes the older ones.
  bool supersede = false;
  /// The child of LOCK that has the queue, for a semaphore: its turnstile, or its permits.
  std::string below{};
  /// For the permits: how many there may be.
  std::optional<std::size_t> permits{};
  /// For the permits, and for the turnstile before them: how many permits to take. All are created
  /// and deleted together.
  std::size_t take = 1;
  /// For the turnstile of a `try`: the number of permits, `take` of which must be left. Being
  /// in the turnstile is not a wait; it leaves when the contenders before it take all permits.
  std::optional<std::size_t> permit_limit{};
  /// Of a semaphore, for the permits and for the turnstile: how many permits there may be.
  std::size_t most_permits = 0;
  /// The lock is to be reserved for an ID: one that this ID has already will do, and our contender
  /// is going to be converted (MakeReservations).
  std::optional<protocol::ReservationRequest> reserve{};
  std::optional<Preempt> preempt{};
  /// Asked when the lock is not free: is it held for ourselves? Empty: do not ask.
  HoldsForUs holds_for_us{};
  /// How long to go without a server: before joining the queue, and in it for at least as long as
  /// the session can live.
  Duration connect_timeout = std::chrono::seconds(15);

  /// The znode whose children are the queue.
  [[nodiscard]] std::string QueuePath() const {
    return below.empty() ? lock.path : protocol::ChildPath(lock.path, below);
  }
  /// How many znodes our contender consists of.
  [[nodiscard]] std::size_t znodes() const { return permits ? take : 1; }
  [[nodiscard]] bool is_for_turnstile() const { return below == protocol::kTurnstileChild; }
  /// The parent of the contenders that can become reservations.
  [[nodiscard]] std::string ReservationsPath() const {
    return is_for_turnstile() ? protocol::PermitsPath(lock.path) : QueuePath();
  }
  [[nodiscard]] bool is_simple() const { return dialect == protocol::Dialect::kSimple; }
};

/// The contenders before ours in the queue.
struct Ahead {
  std::size_t contenders = 0;          ///< all of them
  std::optional<std::size_t> waiting;  ///< those that do not hold; none: not known
};

/// Learns of the progress, for messages and events. Called while the acquisition works.
class AcquireObserver {
 public:
  virtual ~AcquireObserver() = default;
  /// A server has accepted the session, a new one or the same one again.
  virtual void OnConnected() {}
  /// A contender is about to be created below `queue`.
  virtual void OnJoining(const LockName& /*lock*/, const std::string& /*queue*/) {}
  virtual void OnQueued(const Ticket& /*ticket*/) {}
  virtual void OnWaiting(const LockName& /*lock*/, const std::string& /*predecessor*/,
                         const Ahead& /*ahead*/) {}
  /// The contenders before ours were asked to leave.
  virtual void OnPreempted(const LockName& /*lock*/, const Preempted& /*preempted*/) {}
  /// It is our turn, but the lease is too short to start a command: the session is confirmed again.
  virtual void OnFirst(const LockName& /*lock*/) {}
  /// The session expired in the queue: the place is lost, and a new one at the tail is taken.
  virtual void OnPlaceLost(const LockName& /*lock*/) {}
  /// The data of a contender of ours: when the wait begins, and whenever it is written to.
  virtual void OnOwnData(const std::string& /*contender*/, const std::string& /*data*/) {}
  /// We have deleted a reservation that had ended.
  virtual void OnReservationExpired(const LockName& /*lock*/, const Reserved& /*reserved*/) {}
  /// The reservation at `path` is overdue, and we lack the right to delete it. May be called again
  /// for the same one.
  virtual void OnReservationOverdue(const LockName& /*lock*/, const std::string& /*path*/,
                                    const Reserved& /*reserved*/) {}
  /// A contender that cannot see ours arrived after ours; both may hold.
  virtual void OnIncompatible(const LockName& /*lock*/,
                              const protocol::IncompatibleContender& /*incompatible*/) {}
};

}  // namespace zklock::lock
