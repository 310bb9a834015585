#pragma once

#include <vector>

#include "lock/server_operation.h"
#include "lock/ticket.h"

namespace zklock::lock {

/// Finds out by a committed check whether contenders of ancestors still hold: whether all of them
/// exist, and are not others with the same names.
class OwnershipCheck final : public ServerOperation {
 public:
  /// `contenders`: at least one.
  OwnershipCheck(zookeeper::Store& store, const Clock& clock, LockName lock,
                 std::vector<ContenderId> contenders, Duration connect_timeout);

  /// After success.
  [[nodiscard]] bool is_held() const { return is_held_; }

 protected:
  void Begin() override;

 private:
  const LockName lock_;
  const std::vector<ContenderId> contenders_;
  bool is_held_ = false;
};

}  // namespace zklock::lock
