#pragma once

#include <string>

#include "lock/errand.h"
#include "lock/ticket.h"

namespace zklock::lock {

/// Deletes one contender of somebody else, by its exact name, which is never used a second time:
/// whatever replies are lost, asking again does no harm.
class Removal final : public Errand {
 public:
  /// `contender`: a child of `lock`.
  Removal(zookeeper::Store& store, const Clock& clock, LockName lock, std::string contender,
          Duration connect_timeout);

  /// Once it is over without a failure: false if the contender had gone before.
  [[nodiscard]] bool has_removed() const { return has_removed_; }

 protected:
  void Begin() override;

 private:
  const LockName lock_;
  const std::string contender_;
  bool may_be_done_ = false;  ///< asked for over a connection that was lost
  bool has_removed_ = false;
};

}  // namespace zklock::lock
