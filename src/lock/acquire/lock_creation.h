#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lock/data/acquire_request.h"
#include "lock/data/callback_scope.h"
#include "lock/data/outcome.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// Returns the reason if `error`, the answer to a create, means that no contender can be created
/// there; otherwise none.
[[nodiscard]] std::optional<Unusable::Why> CannotOwnContenders(zookeeper::Error error);

/// Creates the znode of a LOCK and those above it, if they are missing.
class LockCreation {
 public:
  /// Both must outlive the creation.
  LockCreation(zookeeper::Store& store, const AcquireRequest& request);

  /// Returns why another Send() would fail, judging by the answers to the previous one; none if it
  /// may succeed.
  [[nodiscard]] std::optional<AcquireOutcome> failure() const;

  /// Sends creates for all znodes from the root down to the queue. The create of a contender must
  /// follow in the same write; it fails if these did not succeed.
  void Send();
  /// Notes that LOCK has a child. If LOCK vanishes later, the attempts are counted anew.
  void OnUsed() { attempts_ = 0; }

 private:
  void OnCreated(const std::string& path, const zookeeper::CreateReply& reply);

  zookeeper::Store& store_;
  const AcquireRequest& request_;
  bool containers_ = true;                            ///< the servers support container znodes
  int attempts_ = 0;                                  ///< since LOCK was last seen in use
  zookeeper::Error error_ = zookeeper::Error::kNone;  ///< of the last attempt
  std::string refused_path_;  ///< the znode in which nothing could be created
  CallbackScope scope_;
};

/// Searches for the znode at or above the queue that has a hard quota, and calls `done`, unless a
/// reply is lost.
void FindQuota(zookeeper::Store& store, const AcquireRequest& request,
               const std::function<void(const QuotaExceeded&)>& done);

}  // namespace zklock::lock
