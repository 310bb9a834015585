#pragma once

#include <string>

#include "lock/errand.h"
#include "lock/ticket.h"

namespace zklock::lock {

/// Asks by a committed check whether a contender is still there: whether what an outer zklock holds
/// is still held.
class HeldCheck final : public Errand {
 public:
  /// `node`: the contender's path, chroot included.
  HeldCheck(zookeeper::Store& store, const Clock& clock, LockName lock, std::string node,
            Duration connect_timeout);

  /// Once it is over without a failure.
  [[nodiscard]] bool is_held() const { return is_held_; }

 protected:
  void Begin() override;

 private:
  const LockName lock_;
  const std::string node_;
  bool is_held_ = false;
};

}  // namespace zklock::lock
