#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/queue_text.h"
#include "cli/queue_view.h"
#include "lock/survey.h"

namespace zklock::cli {

/// What `inspect --dot` prints: the graph of who waits for whom over all LOCKs, for dot(1). An edge
/// from a waiter to its predecessor, or for a permit to each holder, one of whom will do; and one
/// from a holder to the contenders that its own command has in other LOCKs, without which it does
/// not let go. Contenders that wait for each other in a circle, a deadlock, are marked.
class QueueDot final : public lock::SurveySink {
 public:
  explicit QueueDot(TextOutput out);

  void OnLock(const lock::LockSurvey& lock) override;
  void OnEntry(const lock::QueueEntry& entry) override;
  void OnLockEnd(const lock::LockSurvey& lock) override;
  void OnEnd() override;

 private:
  struct Node {
    std::size_t lock = 0;
    ContenderView contender;
  };

  const TextOutput out_;
  std::optional<QueueDescriber> describer_;
  std::vector<std::string> locks_;  ///< what is written on their frames
  std::vector<Node> nodes_;
};

}  // namespace zklock::cli
