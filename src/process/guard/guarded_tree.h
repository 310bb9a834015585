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

/// Signals and kills the tree of a guard: all descendants of this process.
///
/// Nothing announces forks, so the tree is stopped and killed in rounds, each of which walks it
/// again. If a walk is not possible, a round reaches only this process's children (TreeKiller).
///
/// The command's cgroup is killed as a whole, including processes that a walk cannot find or that
/// this process lacks permission to signal. The walk finds processes that have moved to another
/// cgroup.
class GuardedTree {
 public:
  /// `cgroup`: the command's; may be null.
  GuardedTree(int stop_signal, Cgroup* cgroup);
  GuardedTree(const GuardedTree&) = delete;
  GuardedTree& operator=(const GuardedTree&) = delete;

  /// Opens the list of children. Throws std::system_error.
  void Open();
  /// Returns the descriptors that this object needs.
  [[nodiscard]] std::vector<int> descriptors() const;

  /// Sends a signal to every process, once.
  void Forward(int signal_number, pid_t except_group) const;
  /// Returns the living processes, except guards of nested runs.
  [[nodiscard]] std::vector<Survivor> Living() const;

  /// Sends the stop signal to the processes that have not received it yet, and continues stopped
  /// ones. Returns whether any of them could be signalled.
  bool StopSignalRound();
  /// Sends KILL to all processes, except that guards of nested runs are spared until
  /// NestedGuardsUntil(). Returns true once the walk finds nothing alive but survivors(). Until
  /// then, and while HasContained(), call it again after kill_pause(). `reap` must reap children
  /// that have ended; it is called between killing the cgroup and the walk.
  bool KillRound(TimePoint lease_end, const std::function<void()>& reap);
  [[nodiscard]] Duration kill_pause() const { return killer_.pause(); }
  /// Whether KILL was sent to any process that could be signalled.
  [[nodiscard]] bool has_sent_kill() const { return has_sent_kill_ || killer_.has_sent(); }
  /// Whether a process could not be signalled.
  [[nodiscard]] bool was_refused() const { return was_refused_; }
  /// The processes that could not be signalled in the last round.
  [[nodiscard]] const std::vector<Survivor>& survivors() const { return killer_.survivors(); }

  /// Returns whether a process is alive in the cgroup.
  [[nodiscard]] bool HasContained() const { return cgroup_ != nullptr && cgroup_->IsPopulated(); }
  /// Records that the processes in the cgroup may stay alive, even if zklock and this process are
  /// killed.
  void MarkAsLeft() const;
  /// Removes the cgroup if it is empty.
  void RemoveCgroup() const;

 private:
  [[nodiscard]] TreeKiller::Treatment TreatmentOf(const Descendant& process) const;

  const int stop_signal_;
  Cgroup* const cgroup_;
  UniqueFd children_;
  std::set<ProcessId> signalled_;  // these were sent the stop signal
  bool has_sent_kill_ = false;     // other than by killer_
  TimePoint killed_since_ = kNever;
  bool was_refused_ = false;
  TimePoint nested_guards_until_ = kNever;
  TreeKiller killer_;
};

}  // namespace zklock::process
