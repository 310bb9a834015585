#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "lock/lock_children.h"
#include "lock/server_operation.h"
#include "lock/ticket.h"

namespace zklock::lock {

/// Finds possible LOCKs below a znode, by names alone, for completion: every znode that has
/// contenders, a record of its runs or no children, and every semaphore. Contenders, records, the
/// children of a semaphore and the servers' own znodes are not offered. Lists the nearest znodes
/// first, and at most 1,000.
///
/// The paths found so far can be used at any time.
class LockNames final : public ServerOperation {
 public:
  /// `above`: the znode below which to look.
  LockNames(zookeeper::Store& store, const Clock& clock, LockName above, Duration connect_timeout);

  /// As shown to users, in no order.
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
