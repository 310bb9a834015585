#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lock/reserved.h"
#include "lock/run_history.h"
#include "lock/server_operation.h"
#include "lock/ticket.h"

namespace zklock::lock {

/// Releases a reservation: deletes its znode and, in the same transaction, writes the record of the
/// release, where zklock keeps one in LOCK's data, and the end of the reservation in LOCK's
/// history, where its beginning was entered. A reservation is released without what cannot be
/// written.
///
/// The znode is read first, and left alone if it is no longer a reservation for this ID. A second
/// delete after a lost reply does no harm, since each name is used once.
class ReleaseReservation final : public ServerOperation {
 public:
  /// `path`: its znode, chroot included.
  ReleaseReservation(zookeeper::Store& store, const Clock& clock, LockName lock, std::string path,
                     std::string id, Duration connect_timeout);

  /// After success: false if it was already gone.
  [[nodiscard]] bool has_released() const { return has_released_; }
  /// Why its end is missing in the history.
  [[nodiscard]] const std::optional<zookeeper::Error>& unkept() const { return unkept_; }

 protected:
  void Begin() override;

 private:
  void OnReservation(const zookeeper::GetReply& reply);
  void OnLock(const zookeeper::GetReply& reply);
  void OnLastRun(const zookeeper::GetReply& reply);
  void AskForTime(RunHistory history, std::int32_t version);
  void Delete();
  void OnDeleted(const zookeeper::Reply& reply, bool may_have_been_done);
  void DoWithoutHistory(zookeeper::Error why);
  [[nodiscard]] std::string LastRunPath() const;

  const LockName lock_;
  const std::string path_;
  const std::string id_;
  Reserved reserved_;         ///< as read
  bool may_be_done_ = false;  ///< a delete was sent over a connection that was lost
  bool has_released_ = false;

  bool keeps_record_ = true;
  bool was_first_ = false;  ///< in the queue
  bool keeps_history_ = true;
  std::optional<zookeeper::DataWrite> record_;
  std::optional<zookeeper::DataWrite> history_;
  bool is_entering_ = false;  ///< an answer about the end in the history is awaited
  int losses_ = 0;            ///< of the connection meanwhile
  int conflicts_ = 0;
  std::optional<zookeeper::Error> unkept_;
};

}  // namespace zklock::lock
