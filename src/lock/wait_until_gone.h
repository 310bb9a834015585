#pragma once

#include <string>

#include "lock/server_operation.h"
#include "lock/ticket.h"

namespace zklock::lock {

/// Waits until one contender has gone, however long that takes. Another one that has taken its name
/// is not waited for.
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
