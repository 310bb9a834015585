#pragma once

#include <functional>
#include <set>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "process/tree/cgroup.h"
#include "process/tree/ended.h"
#include "process/tree/process_tree.h"

namespace zklock::process {

/// The tree of a guard: all descendants of this process. Signals and ends them.
///
/// Forks are not announced, so the tree is stopped and killed in rounds, each of which walks it
/// anew. When the system has no descriptors left, /proc cannot be walked; then a round reaches this
/// process's children only, by a file that was opened beforehand.
///
/// What is in the command's cgroup is killed as a whole, including processes that a walk cannot
/// find or this process may not signal. What has moved to another cgroup is found by the walk.
class GuardedTree {
 public:
  /// `cgroup`: the command's; may be null.
  GuardedTree(int stop_signal, Cgroup* cgroup);
  GuardedTree(const GuardedTree&) = delete;
  GuardedTree& operator=(const GuardedTree&) = delete;

  /// Opens the list of children. Throws std::system_error.
  void Open();
  /// All that this object needs.
  [[nodiscard]] std::vector<int> descriptors() const;

  /// Sends a signal to every process, once.
  void Forward(int signal_number) const;
  /// Those that are alive, without guards of nested runs.
  [[nodiscard]] std::vector<Survivor> Living() const;

  /// Sends the stop signal to those that have not had it yet, and continues those that are stopped.
  void StopSignalRound();
  /// Sends KILL to all; to guards of nested runs only once NestedGuardsUntil() has passed. True
  /// once the walk finds nothing alive but survivors(). To be called again after kill_pause() until
  /// then, and while HasContained(). `reap`, which reaps children that have ended, is called once
  /// the cgroup is killed, before the walk.
  bool KillRound(TimePoint lease_end, const std::function<void()>& reap);
  [[nodiscard]] Duration kill_pause() const;
  /// Those that could not be signalled in the last round.
  [[nodiscard]] const std::vector<Survivor>& survivors() const { return killer_.survivors(); }

  /// Whether a process is alive in the cgroup.
  [[nodiscard]] bool HasContained() const { return cgroup_ != nullptr && cgroup_->IsPopulated(); }
  /// What is in the cgroup may stay alive, even if zklock and this process are killed.
  void MarkAsLeft() const;
  /// If it is empty.
  void RemoveCgroup() const;

 private:
  [[nodiscard]] std::vector<pid_t> Children() const;
  [[nodiscard]] TreeKiller::Treatment TreatmentOf(const Descendant& process) const;

  const int stop_signal_;
  Cgroup* const cgroup_;
  UniqueFd children_;
  std::set<ProcessId> signalled_;  // have had the stop signal
  int kill_rounds_ = 0;
  TimePoint killed_since_ = kNever;
  TimePoint nested_guards_until_ = kNever;
  TreeKiller killer_;
};

}  // namespace zklock::process
