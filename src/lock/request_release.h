#pragma once

#include <functional>
#include <string>

#include "lock/server_operation.h"
#include "lock/ticket.h"

namespace zklock::lock {

/// Asks a contender to release its lock or to leave the queue, by writing to its znode. The data is
/// read, edited and written back only if it has not changed, and asking again after a lost reply
/// does no harm. A later contender with the same name is not asked, unless it takes the name
/// between the read and the write.
class RequestRelease final : public ServerOperation {
 public:
  /// `contender`: a child of `lock`. `edit`: returns the new data for the old.
  RequestRelease(zookeeper::Store& store, const Clock& clock, LockName lock, ContenderId contender,
                 std::function<std::string(const std::string&)> edit, Duration connect_timeout);

  /// After success: false if the contender was already gone.
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
