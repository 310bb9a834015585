#pragma once

#include <cstdint>

#include "lock/server_operation.h"
#include "lock/ticket.h"

namespace zklock::lock {

/// Deletes a contender of another process. Most names are used once, so a second delete after a
/// lost reply does no harm. The name of Dialect::kSimple is used again: its znode is read first,
/// and deleted only if it is the right contender. ZooKeeper cannot do both at once. A later
/// contender is hit if it is created between the read and the delete and was written to equally
/// often.
class DeleteContender final : public ServerOperation {
 public:
  /// `contender`: a child of `lock`.
  DeleteContender(zookeeper::Store& store, const Clock& clock, LockName lock, ContenderId contender,
                  Duration connect_timeout);

  /// After success: false if the contender was already gone.
  [[nodiscard]] bool has_removed() const { return has_removed_; }

 protected:
  void Begin() override;

 private:
  void Delete(std::int32_t version);
  /// The contender is gone, by our delete or before it.
  void SucceedAsGone();

  const LockName lock_;
  const ContenderId contender_;
  bool may_be_done_ = false;  ///< a delete was sent over a connection that was lost
  bool has_removed_ = false;
};

}  // namespace zklock::lock
