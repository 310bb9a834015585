#pragma once

#include <sys/types.h>

#include <set>
#include <vector>

#include "base/clock.h"
#include "process/tree/cgroup.h"
#include "process/tree/process_tree.h"

namespace zklock::process {

/// Processes that are not part of the tree: the children that this process had before it forked the
/// guard (`exec zklock` inherits such children), and everything else that is older than the guard.
struct Outsiders {
  std::set<ProcessId> children;
  unsigned long long tree_begins = 0;  ///< start time of the guard

  /// If the start time is unknown, any process with the same pid counts as the same process.
  [[nodiscard]] bool Include(const ProcessId& id) const;
};

/// Returns the children of this process.
[[nodiscard]] std::set<ProcessId> OwnChildren();

/// Ends the tree in place of the guard, which has died or hangs.
///
/// This process is a subreaper, so the guard's descendants are, or will become, its own. Reaps only
/// the guard and the command, since other code may be waiting for other children.
class TakeOver {
 public:
  /// Kills the guard. `command`: 0 if the guard has reaped it. `children`: from OpenChildren().
  /// `cgroup`: the command's; may be null.
  TakeOver(pid_t guard, pid_t command, const UniqueFd& children, Outsiders outsiders,
           Cgroup* cgroup);
  TakeOver(const TakeOver&) = delete;
  TakeOver& operator=(const TakeOver&) = delete;

  /// Sends KILL to every process in the tree, to the guards of nested runs last. Returns true once
  /// only survivors() are alive. Until then, call it again at next_round().
  bool Round(TimePoint lease_end);

  [[nodiscard]] TimePoint next_round() const { return next_round_; }
  /// The command's wait status; that of a KILL if the guard reaped the command but died before it
  /// reported the status.
  [[nodiscard]] int command_status() const { return command_status_; }
  [[nodiscard]] const std::vector<Survivor>& survivors() const { return killer_.survivors(); }

 private:
  [[nodiscard]] TreeKiller::Treatment TreatmentOf(const Descendant& process) const;

  pid_t guard_;    // 0: reaped
  pid_t command_;  // 0: reaped
  int command_status_;
  Outsiders outsiders_;
  Cgroup* const cgroup_;
  TimePoint began_;
  TimePoint nested_guards_until_ = kNever;
  TreeKiller killer_;
  TimePoint next_round_;
};

}  // namespace zklock::process
