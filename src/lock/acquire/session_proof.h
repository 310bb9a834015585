#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/clock.h"
#include "lock/acquire/attempt.h"
#include "lock/data/callback_scope.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// Proves, while we wait, that our contenders and the session still exist, and that the server
/// still answers.
class SessionProof {
 public:
  explicit SessionProof(Attempt& attempt) : attempt_(attempt) {}

  /// Reads and watches our contenders, each of which may have been written to or deleted.
  void WatchOwn();
  /// Reads our contender at `path`, whose watch has fired, and watches it again.
  void OnOwnChanged(const std::string& path);
  [[nodiscard]] bool HasBegunToWatch() const { return unwatched_.has_value(); }
  /// Returns whether our contenders are known to exist even without a commit to prove it. The
  /// servers cannot have ended the session; and if one of our contenders had been deleted by force
  /// before the state that the server last showed us, its watch would have fired first. Permits
  /// need a commit to prove their number.
  [[nodiscard]] bool HasLeaseInHand() const;

  /// Schedules the next proof, unless one is under way or already scheduled.
  void Schedule();
  /// Starts a proof now. The next in line sends a heartbeat, so that it has a lease in hand when
  /// its turn comes. For all others, the answer to a small read is enough: the next commit turns it
  /// into a lease. They read LOCK's data, and so learn when they are next.
  void Prove();
  /// Returns when Prove() is due.
  [[nodiscard]] TimePoint due() const { return due_; }

  /// Called when the connection is lost, and with it all watches.
  void Forget();

 private:
  void WatchOne(const ContenderId& one);
  [[nodiscard]] bool HasPlace() const;
  void SendHeartbeat();
  void ReadLock();
  void OnProof(zookeeper::Error error);

  Attempt& attempt_;
  /// The number of our contenders without a watch that is known to be set; none before WatchOwn().
  std::optional<std::size_t> unwatched_;
  CallbackScope watches_;
  TimePoint due_ = kNever;
  unsigned answers_ = 0;  // to proofs while we wait
  CallbackScope scope_;
};

}  // namespace zklock::lock
