#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "process/tree/process_tree.h"
#include "support/wait.h"

namespace zklock::test {

inline pid_t ParentOf(pid_t pid) { return process::ReadProcessStat(pid).value().parent; }

/// Returns whether the process exists and is not a zombie, as an unreaped orphan is.
inline bool IsAlive(pid_t pid) {
  const auto stat = process::ReadProcessStat(pid);
  return stat && !stat->is_dead;
}

inline void WaitUntilGone(pid_t pid) {
  WaitUntil([pid] { return !IsAlive(pid); }, "the end of process " + std::to_string(pid));
}

/// Waits for a child of `parent`, and returns the first one.
inline pid_t WaitForChild(pid_t parent) {
  std::vector<pid_t> children;
  WaitUntil([&] { return !(children = process::ChildrenOf(parent)).empty(); },
            "a child of process " + std::to_string(parent));
  return children.front();
}

}  // namespace zklock::test
