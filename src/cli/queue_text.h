#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/queue_view.h"
#include "cli/table.h"
#include "lock/survey.h"

namespace zklock::cli {

/// How much room there is, and how much is shown.
struct ViewStyle {
  std::size_t width = 0;       ///< of the terminal; 0: no limit
  bool colours = false;        ///< the terminal shows them
  bool with_names = false;     ///< each contender's whole name too, for `release --contender`
  std::size_t most_waits = 8;  ///< lines of who waits for whom
  std::size_t most_locks = 0;  ///< of a tree; 0: no limit
};

/// Where text goes as it is made.
using TextOutput = std::function<void(std::string)>;

/// What `inspect` prints for people: one LOCK's queue as a table, and under it who waits for whom
/// and the last run; or the LOCKs below a path, a line each. A page at a time, as it is told, so
/// that a long queue takes no more memory than a short one.
class QueueText final : public lock::SurveySink {
 public:
  /// `path`: what was asked for.
  QueueText(std::string path, ViewStyle style, TextOutput out);
  ~QueueText() override;

  /// From the next LOCK or tree on.
  void SetStyle(const ViewStyle& style) { next_style_ = style; }

  void OnLock(const lock::LockSurvey& lock) override;
  void OnEntry(const lock::QueueEntry& entry) override;
  void OnLockEnd(const lock::LockSurvey& lock) override;
  void OnEnd() override;

 private:
  class Waits;
  void AddContender(const ContenderView& contender);
  void AddToTree(const lock::LockSurvey& lock);
  void PrintPage(const lock::LockSurvey& lock);
  void PrintEnd(const lock::LockSurvey& lock);
  [[nodiscard]] std::string Headline(const std::string& path, const std::string& what) const;
  [[nodiscard]] std::string Since(const ContenderView& contender) const;

  const std::string path_;
  ViewStyle style_;
  ViewStyle next_style_;
  const TextOutput out_;

  bool found_ = false;  ///< any LOCK
  // The LOCK that is being told.
  lock::LockSurvey lock_;
  std::optional<QueueDescriber> describer_;
  std::optional<ContenderView> first_;
  std::size_t shown_ = 0;  ///< contenders of a LOCK; LOCKs of a tree
  std::size_t locks_ = 0;  ///< of a tree
  bool begun_ = false;     ///< its first page is out
  std::unique_ptr<Waits> waits_;
  std::size_t holders_ = 0;  ///< that were told
  // Its queue, or in a tree the LOCKs.
  std::optional<Table> table_;
};

}  // namespace zklock::cli
