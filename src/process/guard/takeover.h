#pragma once

#include <sys/types.h>

#include <set>
#include <vector>

#include "base/clock.h"
#include "process/tree/cgroup.h"
#include "process/tree/process_tree.h"

namespace zklock::process {

/// Processes that are not part of the tree: the children that this process had before it forked the
/// guard (`exec zklock` inherits such), and everything else that is older than the guard.
struct Outsiders {
  std::set<ProcessId> children;
  unsigned long long tree_begins = 0;  ///< start time of the guard

  [[nodiscard]] bool Include(const ProcessId& id) const;
};

/// The children of this process.
[[nodiscard]] std::set<ProcessId> OwnChildren();

/// zklock ends the tree in place of the guard, which died or hangs.
///
/// This process is a subreaper: what the guard kept is among its descendants, or will be. Only the
/// guard and the command are reaped: somebody may be waiting for other children.
class TakeOver {
 public:
  /// Kills the guard. `cgroup`: the command's; may be null.
  TakeOver(pid_t guard, pid_t command, Outsiders outsiders, Cgroup* cgroup);
  TakeOver(const TakeOver&) = delete;
  TakeOver& operator=(const TakeOver&) = delete;

  /// Sends KILL to every process of the tree, to guards of nested runs last. True once nothing is
  /// alive but survivors(). To be called again at next_round() until then.
  bool Round(TimePoint lease_end);

  [[nodiscard]] TimePoint next_round() const { return next_round_; }
  /// As from waitpid; that of a KILL if the guard had reaped the command and died with its status.
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
