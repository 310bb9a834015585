#pragma once

#include <cstdint>

#include "lock/server_operation.h"
#include "lock/ticket.h"

namespace zklock::lock {

/// Deletes one contender of somebody else. Most names are used once, so that asking again after a
/// lost reply does no harm. The one of Dialect::kSimple is used again: what has it is read first,
/// and deleted only if it is the contender that is meant. ZooKeeper cannot do both at once: the
/// next one's znode is hit if it is made between the read and the delete, and written to equally
/// often.
class DeleteContender final : public ServerOperation {
 public:
  /// `contender`: a child of `lock`.
  DeleteContender(zookeeper::Store& store, const Clock& clock, LockName lock, ContenderId contender,
                  Duration connect_timeout);

  /// Once it is over without a failure: false if the contender had gone before.
  [[nodiscard]] bool has_removed() const { return has_removed_; }

 protected:
  void Begin() override;

 private:
  void Delete(std::int32_t version);
  /// It has gone, by our delete or before.
  void SucceedAsGone();

  const LockName lock_;
  const ContenderId contender_;
  bool may_be_done_ = false;  ///< asked for over a connection that was lost
  bool has_removed_ = false;
};

}  // namespace zklock::lock
