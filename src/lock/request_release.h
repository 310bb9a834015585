#pragma once

#include <functional>
#include <string>

#include "lock/server_operation.h"
#include "lock/ticket.h"

namespace zklock::lock {

/// Asks one contender to let go, by writing into its znode, over what was read there: nothing newer
/// is overwritten, and asking again after a lost reply does no harm. A later contender of the same
/// name is not asked, unless it takes the name between the read and the write.
class RequestRelease final : public ServerOperation {
 public:
  /// `contender`: a child of `lock`. `edit` makes the new data from the old.
  RequestRelease(zookeeper::Store& store, const Clock& clock, LockName lock, ContenderId contender,
                 std::function<std::string(const std::string&)> edit, Duration connect_timeout);

  /// Once it is over without a failure: false if the contender had gone.
  [[nodiscard]] bool has_asked() const { return has_asked_; }

 protected:
  void Begin() override;

 private:
  void Write(const zookeeper::GetReply& read);
  void Settle(const std::string& operation, zookeeper::Error error);

  const LockName lock_;
  const ContenderId contender_;
  const std::function<std::string(const std::string&)> edit_;
  bool has_asked_ = false;
};

}  // namespace zklock::lock
