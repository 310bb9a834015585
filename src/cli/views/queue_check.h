#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/option_table.h"
#include "cli/views/queue_times.h"
#include "cli/views/wait_graph.h"
#include "lock/survey/lock_survey.h"

namespace zklock::cli {

/// The states of a monitoring plugin, which are its exit statuses.
enum class CheckState { kOk = 0, kWarning = 1, kCritical = 2, kUnknown = 3 };

/// What `inspect --check` prints and returns.
struct CheckResult {
  CheckState state = CheckState::kOk;
  std::string line;  ///< with a newline
};

/// Returns the result of a check that could not be done.
[[nodiscard]] CheckResult UnknownCheck(std::string_view why);

/// Judges LOCKs by limits, and reports in the form that the guidelines for monitoring plugins
/// require. Takes the surveys of several paths, one at a time.
class QueueCheck final : public lock::SurveySink {
 public:
  /// `now_ms`: since 1970.
  QueueCheck(CheckLimits limits, std::int64_t now_ms) : limits_(limits), now_ms_(now_ms) {}

  void OnLock(const lock::LockSurvey& lock) override;
  void OnEntry(const lock::QueueEntry& entry) override;
  void OnLockEnd(const lock::LockSurvey& lock) override;

  /// Call when the survey of `path` has ended. If it has reported no LOCK, `path` counts as a free
  /// LOCK. `unlistable`: znodes below which LOCKs may have been missed.
  void EndPath(const std::string& path, const std::vector<std::string>& unlistable);
  /// Reports that something could not be checked. `why`: any text.
  void AddUnknown(std::string_view why);

  /// Returns the worst state, and the problems, the worst first.
  [[nodiscard]] CheckResult Result() const;

 private:
  struct Problem {
    CheckState state;
    std::string text;
  };
  /// The largest value of all LOCKs.
  struct Largest {
    std::optional<std::int64_t> value;
    bool is_unknown = false;
    void Take(std::int64_t more);
  };

  void Add(CheckState state, std::string text) { problems_.push_back({state, std::move(text)}); }
  /// Describes what `oldest` has been doing for `span`.
  using TimeText = std::string (*)(const QueueTimes::Oldest& oldest, const std::string& span);
  void JudgeTime(TimeText text, const std::optional<CheckLimit>& limit,
                 const QueueTimes::Oldest& oldest, Largest& largest);
  void JudgeAge(const lock::LockSurvey& lock);
  void JudgeLastRun(const lock::LockSurvey& lock);
  [[nodiscard]] std::string Summary() const;
  [[nodiscard]] std::string Missing() const;
  [[nodiscard]] std::string PerformanceData() const;

  const CheckLimits limits_;
  const std::int64_t now_ms_;
  std::optional<QueueTimes> times_;
  DeadlockSearch deadlocks_;
  std::string path_;      ///< of the current LOCK, printable
  std::string blocking_;  ///< the child that blocks the current LOCK; may contain arbitrary bytes
  /// Whether the current LOCK has a contender that we lack permission to read and that no problem
  /// reports yet.
  bool has_unread_ = false;
  std::vector<Problem> problems_;
  std::vector<std::string> missing_;  ///< LOCKs that do not exist (not a problem); printable
  Largest held_, wait_, waiting_, age_;
  std::size_t locks_ = 0;
  std::size_t locks_held_ = 0;  ///< not counting those that are only reserved
  std::size_t locks_reserved_ = 0;
  std::size_t all_waiting_ = 0;
  std::size_t locks_before_ = 0;  ///< `locks_` when the current path began
  std::string single_;            ///< the summary of the first LOCK
};

}  // namespace zklock::cli
