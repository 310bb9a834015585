#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "lock/lock_children.h"
#include "lock/server_operation.h"
#include "lock/survey_queue.h"
#include "lock/ticket.h"
#include "protocol/contender_name.h"

namespace zklock::lock {

/// One holder of a LOCK.
struct Holder {
  protocol::ContenderName name;
  std::string path{};  ///< on the servers
  zookeeper::NodeStat stat{};
  std::string data{};  ///< cut; of another program, any bytes
};

/// Of readers that hold together, at most this many are read unless all are needed.
inline constexpr std::size_t kMostHolders = 256;
inline constexpr std::size_t kAllHolders = std::numeric_limits<std::size_t>::max();

/// Reads the holders of a LOCK, however long its queue is: the first contender, or the readers at
/// the head of the queue; of a semaphore, the contenders that have a permit. Contenders that vanish
/// meanwhile or may not be read are left out.
class Holders final : public ServerOperation {
 public:
  /// `most`: how many to read.
  Holders(zookeeper::Store& store, const Clock& clock, LockName lock, Duration connect_timeout,
          std::size_t most = kMostHolders);

  /// After success.
  [[nodiscard]] const std::vector<Holder>& holders() const { return holders_; }

 protected:
  void Begin() override;

 private:
  void OnChildren();
  void AskOn();

  const LockName lock_;
  const std::size_t most_;
  std::vector<Holder> holders_;
  std::optional<LockChildren> children_;
  std::optional<SurveyQueue> queue_;
  std::size_t to_come_ = 0;
};

}  // namespace zklock::lock
