#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lock/lock_children.h"
#include "lock/server_operation.h"
#include "lock/survey_queue.h"
#include "lock/ticket.h"
#include "protocol/contender_name.h"

namespace zklock::lock {

/// One who holds a LOCK.
struct Holder {
  protocol::ContenderName name;
  std::string path{};  ///< on the servers
  zookeeper::NodeStat stat{};
  std::string data{};  ///< somebody else's bytes, cut
};

/// Reads who holds a LOCK, however long its queue: the first contender, or the readers before the
/// first that excludes; of a semaphore who has a permit, and not who waits for one. What vanishes
/// meanwhile, and what may not be read, was not there.
class Holders final : public ServerOperation {
 public:
  Holders(zookeeper::Store& store, const Clock& clock, LockName lock, Duration connect_timeout);

  /// Once it is over without a failure.
  [[nodiscard]] const std::vector<Holder>& holders() const { return holders_; }

 protected:
  void Begin() override;

 private:
  void OnChildren();
  void Read(const protocol::Children& children);
  void AskOn();

  const LockName lock_;
  std::vector<Holder> holders_;
  std::optional<LockChildren> children_;
  std::optional<SurveyQueue> queue_;  ///< of a semaphore
  std::size_t to_come_ = 0;
};

}  // namespace zklock::lock
