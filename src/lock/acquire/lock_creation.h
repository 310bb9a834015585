#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lock/data/acquire_request.h"
#include "lock/data/callback_scope.h"
#include "lock/data/outcome.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// Why no contender can be created where a create was answered with `error`; none: for another
/// reason.
[[nodiscard]] std::optional<Unusable::Why> CannotOwnContenders(zookeeper::Error error);

/// Creates a LOCK's znode, and the znodes above it, where they are missing.
class LockCreation {
 public:
  /// Both outlive the creation.
  LockCreation(zookeeper::Store& store, const AcquireRequest& request);

  /// Why Send() would be of no use, by the answers to the last one; none: it may succeed.
  [[nodiscard]] std::optional<AcquireOutcome> failure() const;

  /// Asks for all znodes from the root down to the queue. To be followed, in the same write, by the
  /// create of a contender, which fails if this did not succeed.
  void Send();
  /// LOCK has a child: if it vanishes later, that is not the same as vanishing at once.
  void OnUsed() { attempts_ = 0; }

 private:
  void OnCreated(const std::string& path, const zookeeper::CreateReply& reply);

  zookeeper::Store& store_;
  const AcquireRequest& request_;
  bool containers_ = true;                            ///< the servers know container znodes
  int attempts_ = 0;                                  ///< since LOCK was last seen to be used
  zookeeper::Error error_ = zookeeper::Error::kNone;  ///< of the last attempt
  std::string refused_path_;                          ///< the znode that we may not create in
  CallbackScope scope_;
};

/// Calls `done` with the znode at or above the queue that has a hard quota; with LOCK if none can
/// be found. Not after a lost reply.
void FindQuota(zookeeper::Store& store, const AcquireRequest& request,
               const std::function<void(const std::string& path)>& done);

}  // namespace zklock::lock
