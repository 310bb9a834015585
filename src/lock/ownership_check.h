#pragma once

#include <vector>

#include "lock/server_operation.h"
#include "lock/ticket.h"

namespace zklock::lock {

/// Asks by a committed check whether contenders are still there, all of them and not others of
/// their names: whether what outer zklocks hold is still held.
class OwnershipCheck final : public ServerOperation {
 public:
  /// `contenders`: at least one.
  OwnershipCheck(zookeeper::Store& store, const Clock& clock, LockName lock,
                 std::vector<ContenderId> contenders, Duration connect_timeout);

  /// Once it is over without a failure.
  [[nodiscard]] bool is_held() const { return is_held_; }

 protected:
  void Begin() override;

 private:
  const LockName lock_;
  const std::vector<ContenderId> contenders_;
  bool is_held_ = false;
};

}  // namespace zklock::lock
