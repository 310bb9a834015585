#pragma once

#include <cstdint>
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
  /// Of the first of them, where they are held.
  [[nodiscard]] std::int64_t token() const { return token_; }

 protected:
  void Begin() override;

 private:
  void ReadToken();

  const LockName lock_;
  const std::vector<std::string> nodes_;
  bool is_held_ = false;
  std::int64_t token_ = 0;
};

}  // namespace zklock::lock
