#pragma once

#include <string>

#include "lock/server_operation.h"
#include "lock/ticket.h"

namespace zklock::lock {

/// Waits until a contender is gone, however long that takes. Does not wait for a later contender
/// with the same name.
class WaitUntilGone final : public ServerOperation {
 public:
  /// `contender`: a child of `lock`.
  WaitUntilGone(zookeeper::Store& store, const Clock& clock, LockName lock, ContenderId contender,
                Duration connect_timeout);

  void OnWatch(const std::string& path) override;

 protected:
  void Begin() override;

 private:
  const LockName lock_;
  const ContenderId contender_;
};

}  // namespace zklock::lock
