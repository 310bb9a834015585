#pragma once

#include <cstdint>
#include <string>

#include "lock/server_operation.h"
#include "lock/ticket.h"

namespace zklock::lock {

/// Releases a reservation: deletes its znode and, where zklock keeps a record of the last release
/// in LOCK's data, writes it in the same transaction. The znode is read first, and left alone if it
/// is no longer a reservation for this ID. A second delete after a lost reply does no harm, since
/// each name is used once.
class ReleaseReservation final : public ServerOperation {
 public:
  /// `path`: its znode, chroot included.
  ReleaseReservation(zookeeper::Store& store, const Clock& clock, LockName lock, std::string path,
                     std::string id, Duration connect_timeout);

  /// After success: false if it was already gone.
  [[nodiscard]] bool has_released() const { return has_released_; }

 protected:
  void Begin() override;

 private:
  void OnReservation(const zookeeper::GetReply& reply);
  void OnLock(const std::string& record, const zookeeper::GetReply& reply);
  void DeleteWith(const std::string& record, std::int32_t lock_version);
  void DeleteAlone();
  void OnDeleted(const zookeeper::Reply& reply, bool may_have_been_done);

  const LockName lock_;
  const std::string path_;
  const std::string id_;
  std::int32_t version_ = 0;  ///< of the reservation, as read
  bool may_be_done_ = false;  ///< a delete was sent over a connection that was lost
  bool has_released_ = false;
};

}  // namespace zklock::lock
