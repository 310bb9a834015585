#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lock/server_operation.h"
#include "lock/ticket.h"

namespace zklock::lock {

// Short operations on contenders of other processes.

/// What the operations on one contender have in common.
class ContenderOperation : public ServerOperation {
 protected:
  /// `contender`: a child of `lock`. The derived constructor calls Start().
  ContenderOperation(zookeeper::Store& store, const Clock& clock, LockName lock,
                     ContenderId contender, Duration connect_timeout);

  [[nodiscard]] const ContenderId& contender() const { return contender_; }
  void FailToRead(zookeeper::Error why);
  void FailToWrite(zookeeper::Error why);
  void FailToDelete(zookeeper::Error why);

 private:
  const LockName lock_;
  const ContenderId contender_;
};

/// Deletes a contender. Most names are used once, so a second delete after a lost reply does no
/// harm. The name of Dialect::kSimple is used again: its znode is read first, and deleted only if
/// it is the right contender. ZooKeeper cannot do both at once. A later contender is hit if it is
/// created between the read and the delete and was written to equally often.
class DeleteContender final : public ContenderOperation {
 public:
  DeleteContender(zookeeper::Store& store, const Clock& clock, LockName lock, ContenderId contender,
                  Duration connect_timeout);

  /// After success: false if the contender was already gone.
  [[nodiscard]] bool has_removed() const { return has_removed_; }

 protected:
  void Begin() override;

 private:
  void Delete(std::int32_t version);
  /// The contender is gone, by our delete or before it.
  void SucceedAsGone();

  bool may_be_done_ = false;  ///< a delete was sent over a connection that was lost
  bool has_removed_ = false;
};

/// Asks a contender to release its lock or to leave the queue, by writing to its znode. The data is
/// read, edited and written back only if it has not changed, and asking again after a lost reply
/// does no harm. A later contender with the same name is not asked, unless it takes the name
/// between the read and the write.
class RequestRelease final : public ContenderOperation {
 public:
  /// `edit`: returns the new data for the old.
  RequestRelease(zookeeper::Store& store, const Clock& clock, LockName lock, ContenderId contender,
                 std::function<std::string(const std::string&)> edit, Duration connect_timeout);

  /// After success: false if the contender was already gone.
  [[nodiscard]] bool has_asked() const { return has_asked_; }

 protected:
  void Begin() override;

 private:
  void Write(const zookeeper::GetReply& read);

  const std::function<std::string(const std::string&)> edit_;
  bool has_asked_ = false;
};

/// Waits until a contender is gone, however long that takes. Does not wait for a later contender
/// with the same name.
class WaitUntilGone final : public ContenderOperation {
 public:
  WaitUntilGone(zookeeper::Store& store, const Clock& clock, LockName lock, ContenderId contender,
                Duration connect_timeout);

  void OnWatch(const std::string& path, zookeeper::Change change) override;

 protected:
  void Begin() override;
};

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
