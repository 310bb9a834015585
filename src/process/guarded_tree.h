#pragma once

#include <set>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "process/ended.h"
#include "process/process_tree.h"

namespace zklock::process {

/// The tree of a guard: all descendants of this process. Signals and ends them.
///
/// Forks are not announced, so the tree is stopped and killed in rounds, each of which walks it
/// anew. When the system has no descriptors left, /proc cannot be walked; then a round reaches this
/// process's children only, by a file that was opened beforehand.
class GuardedTree {
 public:
  explicit GuardedTree(int stop_signal);
  GuardedTree(const GuardedTree&) = delete;
  GuardedTree& operator=(const GuardedTree&) = delete;

  /// Opens the list of children. Throws std::system_error.
  void Open();
  /// The descriptor of that list.
  [[nodiscard]] int fd() const { return children_.get(); }

  /// Sends a signal to every process, once.
  void Forward(int signal_number) const;
  /// Those that are alive.
  [[nodiscard]] std::vector<Survivor> Living() const;

  /// Sends the stop signal to those that have not had it yet, and continues those that are stopped.
  void StopSignalRound();
  /// Sends KILL to all; to guards of nested runs only once NestedGuardsUntil() has passed. True
  /// once nothing is alive but survivors(). To be called again after kill_pause() until then.
  bool KillRound(TimePoint lease_end);
  [[nodiscard]] Duration kill_pause() const;
  /// Those that could not be signalled in the last round.
  [[nodiscard]] const std::vector<Survivor>& survivors() const { return killer_.survivors(); }

 private:
  [[nodiscard]] std::vector<pid_t> Children() const;
  [[nodiscard]] TreeKiller::Treatment TreatmentOf(const Descendant& process) const;

  const int stop_signal_;
  UniqueFd children_;
  std::set<ProcessId> signalled_;  // have had the stop signal
  int kill_rounds_ = 0;
  TimePoint killed_since_ = kNever;
  TimePoint nested_guards_until_ = kNever;
  TreeKiller killer_;
};

}  // namespace zklock::process
