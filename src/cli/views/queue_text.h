#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/text/queue_view.h"
#include "cli/text/table.h"
#include "cli/views/wait_graph.h"
#include "lock/survey/survey.h"

namespace zklock::cli {

/// How much space there is, and how much to show.
struct ViewStyle {
  std::size_t width = 0;  ///< of the terminal; 0: no limit
  bool colours = false;   ///< whether the terminal shows them
  bool with_names =
      false;  ///< show each contender's name, for `release --contender`, and its containment
  /// The path is --root, since the user named none: the output says how to see other locks.
  bool is_root = false;
  std::size_t most_waits = 8;  ///< the most lines about who waits for whom
  /// The height of the screen: rows of the table are left out so that all of the output fits. 0: no
  /// limit, and the table is printed page by page.
  std::size_t rows = 0;
  /// The time at which spans end, in ms since 1970; none: the time when a LOCK is reported.
  std::optional<std::int64_t> now_ms{};
};

/// Lists who holds what in each deadlock, after an empty line. Empty if there is no deadlock.
[[nodiscard]] std::string DeadlocksText(const std::vector<Deadlock>& deadlocks,
                                        const ViewStyle& style);

/// Receives the output piece by piece.
using TextOutput = std::function<void(std::string)>;

/// The output of `inspect` for people: the queue of one LOCK as a table, followed by who waits for
/// whom and the last runs; or the LOCKs below a path, one line each. Prints page by page while the
/// survey runs, so that a long queue takes no more memory than a short one.
class QueueText final : public lock::SurveySink {
 public:
  /// `path`: as given on the command line.
  QueueText(std::string path, ViewStyle style, TextOutput out);
  ~QueueText() override;

  /// Sets the style from the next LOCK or tree on.
  void SetStyle(const ViewStyle& style) { next_style_ = style; }

  /// Returns whether the last output becomes outdated as time passes, because it shows how long
  /// contenders have held or waited.
  [[nodiscard]] bool ShowsSpans() const { return !lock_.in_tree && shown_ > 0; }

  void OnLock(const lock::LockSurvey& lock) override;
  void OnEntry(const lock::QueueEntry& entry) override;
  void OnLockEnd(const lock::LockSurvey& lock) override;
  void OnEnd() override;

 private:
  class Waits;
  void AddContender(const ContenderView& contender);
  void AddAsked(std::size_t position, const std::string& by);
  void AddToTree(const lock::LockSurvey& lock);
  void PrintPage(const lock::LockSurvey& lock);
  [[nodiscard]] std::string QueueEnd(const lock::LockSurvey& lock) const;
  [[nodiscard]] std::string TreeEnd(const std::vector<Deadlock>& deadlocks) const;
  /// `is_lock`: the path is a LOCK in use, and was not searched for others.
  [[nodiscard]] std::string Searched(bool is_lock) const;
  /// Leaves out rows of the table until it fits on the screen, with `above` lines above its rows
  /// and the text `below` after them.
  void FitRows(std::size_t above, const std::function<std::string()>& below);
  [[nodiscard]] std::string Headline(const std::string& path, const std::string& what) const;
  [[nodiscard]] std::string Since(const ContenderView& contender) const;
  [[nodiscard]] std::string For(const ContenderView& contender) const;
  [[nodiscard]] bool WithYear() const;

  const std::string path_;
  ViewStyle style_;
  ViewStyle next_style_;
  const TextOutput out_;

  bool found_ = false;  ///< whether the survey has reported a LOCK
  // The current LOCK.
  lock::LockSurvey lock_;
  std::optional<QueueDescriber> describer_;
  std::optional<ContenderView> first_;
  std::size_t shown_ = 0;         ///< contenders of a LOCK; LOCKs of a tree
  std::size_t locks_ = 0;         ///< how many the tree has
  std::size_t reservations_ = 0;  ///< LOCKs of a tree that are reserved
  std::optional<std::int64_t> oldest_ms_;
  std::string oldest_;  ///< the path of the LOCK that has been reserved longest
  bool begun_ = false;  ///< the first page of the queue was printed
  std::int64_t now_ms_ = 0;
  std::unique_ptr<Waits> waits_;
  /// Neighbours in the queue that the same requester has asked to leave.
  struct LeaveRequests {
    std::string by;
    std::size_t first = 0;  ///< position
    std::size_t last = 0;
  };
  std::vector<LeaveRequests> asked_;
  std::string blocking_;      ///< the child that blocks the current LOCK
  std::size_t holders_ = 0;   ///< reported so far
  std::size_t reserved_ = 0;  ///< how many of these are reservations
  bool are_permits_ = false;  ///< the LOCK is a semaphore's znode `leases`, shown alone
  DeadlockSearch deadlocks_;  ///< of a tree
  // The queue of the LOCK, or the LOCKs of a tree.
  std::optional<Table> table_;
};

}  // namespace zklock::cli
