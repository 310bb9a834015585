#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "lock/lock_children.h"
#include "lock/server_operation.h"
#include "lock/ticket.h"

namespace zklock::lock {

/// Finds what may be LOCKs below a znode, by names alone, for completion: every znode that has
/// contenders or no children, and every semaphore. The nearest first, 1,000 lists at most;
/// contenders, what a semaphore keeps them in, and what the servers keep for themselves, are none.
///
/// What is known so far can be taken at any moment.
class LockNames final : public ServerOperation {
 public:
  /// `above`: the znode to look below.
  LockNames(zookeeper::Store& store, const Clock& clock, LockName above, Duration connect_timeout);

  /// As the user knows them; in no order.
  [[nodiscard]] const std::vector<std::string>& paths() const { return paths_; }

 private:
  void Begin() override;
  void Pump();
  void OnListed(const std::string& path, const zookeeper::ListReply& reply);
  void OnChildren(const LockChildren& children);
  void Take(const std::string& path, const protocol::Children& children);
  void Offer(const std::string& path);

  const LockName above_;
  std::deque<std::string> to_list_;
  std::size_t lists_ = 0;
  std::size_t under_way_ = 0;
  std::vector<std::string> paths_;
};

}  // namespace zklock::lock
