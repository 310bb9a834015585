#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/views/queue_times.h"
#include "cli/views/wait_graph.h"
#include "lock/survey/lock_survey.h"

namespace zklock::cli {

/// The LOCKs of a survey as metrics, in the text format of Prometheus. The format groups samples by
/// metric, so nothing can be printed before the survey ends.
class QueueMetrics final : public lock::SurveySink {
 public:
  /// `now_ms`: since 1970.
  explicit QueueMetrics(std::int64_t now_ms) : now_ms_(now_ms) {}

  void OnLock(const lock::LockSurvey& lock) override;
  void OnEntry(const lock::QueueEntry& entry) override;
  void OnLockEnd(const lock::LockSurvey& lock) override;
  void OnEnd() override;

  /// Returns all metrics, at the end of the survey. `unlistable`: the number of znodes that we lack
  /// permission to list.
  [[nodiscard]] std::string Text(std::size_t unlistable) const;

 private:
  enum Metric : std::size_t {
    kHeld,
    kHolders,
    kWaiting,
    kPermits,
    kPermitsUsed,
    kHeldSeconds,
    kOldestWait,
    kLastRunEnd,
    kLastRunDuration,
    kLastRunStatus,
    kLastRunLost,
    kLostRuns,
    kLastSuccess,
    kReserved,
    kReservationStart,
    kReservationEnd,
    kDeadlocked,
    kCount,
  };

  /// Adds a sample for the current LOCK.
  void Add(Metric metric, std::string_view value, std::string_view reservation = "");

  const std::int64_t now_ms_;
  std::optional<QueueTimes> times_;
  DeadlockSearch deadlocks_;
  std::vector<std::string> locks_;      ///< their paths
  std::string label_;                   ///< the LOCK's path, escaped
  std::set<std::string> reservations_;  ///< IDs: a sample must not occur twice
  std::array<std::string, kCount> samples_;
};

/// Returns a label's value as it appears between quotes: the format allows any UTF-8, with three
/// escapes. Bytes that are not UTF-8 are replaced.
[[nodiscard]] std::string EscapedLabel(std::string_view text);

}  // namespace zklock::cli
