#include "process/tree/ancestry.h"

#include <unistd.h>

namespace zklock::process {

std::vector<ProcessId> Lineage(pid_t pid, const ReadStat& read) {
  std::vector<ProcessId> lineage;
  auto process = read(pid);
  while (process && !process->is_dead) {
    lineage.push_back(process->id);
    auto parent = read(process->parent);
    // If a parent has ended since its child was read, an ancestor has adopted the child.
    while (!parent || parent->is_dead) {
      const auto now = read(process->id.pid);
      if (!now || now->id != process->id || now->parent == process->parent) return lineage;
      process = now;
      parent = read(process->parent);
    }
    process = parent;
  }
  return lineage;
}

bool HasJobControl() {
  const pid_t own_group = getpgrp();
  const pid_t own_session = getsid(0);
  pid_t childs_group = 0;
  for (const ProcessId& process : Lineage(getpid())) {
    const pid_t group = getpgid(process.pid);
    // The guard of an ancestor zklock is also an ancestor, but in its own session.
    if (childs_group == own_group && group != own_group && getsid(process.pid) == own_session) {
      return true;
    }
    childs_group = group;
  }
  return false;
}

}  // namespace zklock::process
