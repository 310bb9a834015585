#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/text/queue_view.h"
#include "cli/views/queue_text.h"
#include "lock/survey/survey.h"

namespace zklock::cli {

/// The output of `inspect --dot`: the wait-for graph over all LOCKs, for dot(1). An edge leads from
/// a waiter to its predecessor or, if it waits for permits, to each holder of permits, not all of
/// which have to end. A run that waits for any of several LOCKs has a node of its own, with edges
/// to its contenders. Further edges lead from a holder to those contenders for other LOCKs that
/// belong to its own run or command, because the holder keeps its lock until these are done.
/// Cycles, which are deadlocks, are marked.
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
  std::vector<std::string> locks_;  ///< the titles of the LOCKs
  std::vector<Node> nodes_;
};

}  // namespace zklock::cli
