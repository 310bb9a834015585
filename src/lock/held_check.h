#pragma once

#include <string>
#include <vector>

#include "lock/errand.h"
#include "lock/ticket.h"

namespace zklock::lock {

/// Asks by a committed check whether contenders are still there, all of them: whether what outer
/// zklocks hold is still held.
class HeldCheck final : public Errand {
 public:
  /// `nodes`: the contenders' paths, chroot included; at least one.
  HeldCheck(zookeeper::Store& store, const Clock& clock, LockName lock,
            std::vector<std::string> nodes, Duration connect_timeout);

  /// Once it is over without a failure.
  [[nodiscard]] bool is_held() const { return is_held_; }

 protected:
  void Begin() override;

 private:
  const LockName lock_;
  const std::vector<std::string> nodes_;
  bool is_held_ = false;
};

}  // namespace zklock::lock
