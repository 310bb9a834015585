#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lock/data/acquire_request.h"
#include "lock/data/callback_scope.h"
#include "lock/data/event.h"
#include "lock/data/outcome.h"
#include "protocol/queue.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// A list of a queue, and the contenders in it, which refer to the list.
struct QueueList {
  const protocol::Children& children;
  const protocol::Contenders& contenders;
};

/// Every user of the LOCK can see our contender.
struct Compatible {};
/// A read that the check needs was refused.
struct CheckFailed {
  std::string operation;  ///< as in Refused
  std::string path;       ///< of the znode that could not be read
  zookeeper::Error error = zookeeper::Error::kNoAuth;
};
using Compatibility = std::variant<Compatible, Unusable, CheckFailed>;

/// Checks that every user of a LOCK can see our contender: by the names of the children, and by
/// reading those children whose names are not conclusive.
///
/// An incompatible contender that was there before ours makes the LOCK unusable. One that arrives
/// later can no longer be refused: it is tolerated, and the first such arrival is published.
///
/// Does not repeat the reads of an earlier check.
class CompatibilityCheck {
 public:
  /// `list`: the list that was checked, or a copy of it.
  using Done = std::function<void(const Compatibility& found, const QueueList& list)>;

  /// All three must outlive the check.
  CompatibilityCheck(zookeeper::Store& store, const AcquireRequest& request,
                     const AcquireEventSink& publish);

  /// Starts over. Call this before a contender is created: every contender already there counts.
  void Restart();

  /// Returns whether a list with our contender in it has been accepted. If so, contenders that
  /// arrive later are tolerated.
  [[nodiscard]] bool has_accepted() const { return accepted_; }

  /// If the queue is below LOCK, requests LOCK's own children for the next Check(). Call this just
  /// before requesting the list that will be checked, so that both are sent in one write.
  void ReadLock();

  /// Calls `done` once, perhaps before returning; never after a lost reply. `own_name`: empty
  /// before our contender has joined.
  void Check(const QueueList& list, std::string_view own_name, Done done);

  /// Checks LOCK's own children before a semaphore is created in it. `done` as above.
  void CheckLock(std::function<void(const Compatibility& found)> done);

 private:
  using Answer = std::function<void(const Compatibility& found)>;

  void TakeLock(const zookeeper::ListReply& reply);
  void ReadOwners(std::vector<protocol::IncompatibleContender> children, Answer answer);
  Compatibility JudgeOwner(const protocol::IncompatibleContender& child,
                           const zookeeper::GetReply& reply);
  void CheckNames(const QueueList& list, std::string_view own_name, const Done& done);
  void CheckPermits(Answer answer);
  Compatibility Judge(const protocol::IncompatibleContender& incompatible);
  /// Returns those of `children` that no check has read yet.
  [[nodiscard]] std::vector<protocol::IncompatibleContender> Unread(
      std::vector<protocol::IncompatibleContender> children) const;

  zookeeper::Store& store_;
  const AcquireRequest& request_;
  const AcquireEventSink& publish_;

  bool accepted_ = false;
  bool reported_ = false;         ///< an incompatible late arrival was reported
  bool permits_checked_ = false;  ///< the child `leases` contains no contenders
  Compatibility lock_use_;        ///< for a semaphore: the result for LOCK's own children
  /// For a semaphore: LOCK's own children that are incompatible if a session owns them.
  std::vector<protocol::IncompatibleContender> lock_unnumbered_;
  std::vector<std::string> read_;  ///< children without a number whose owner is known
  CallbackScope scope_;
};

}  // namespace zklock::lock
