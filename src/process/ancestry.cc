#include "process/ancestry.h"

#include <unistd.h>

namespace zklock::process {

std::vector<ProcessId> Lineage(pid_t pid) {
  std::vector<ProcessId> lineage;
  while (pid > 0) {
    const auto stat = ReadProcessStat(pid);
    if (!stat || stat->is_dead) break;
    lineage.push_back(stat->id);
    pid = stat->parent;
  }
  return lineage;
}

bool HasJobControl() {
  const pid_t own_group = getpgrp();
  const pid_t own_session = getsid(0);
  pid_t childs_group = 0;
  for (const ProcessId& process : Lineage(getpid())) {
    const pid_t group = getpgid(process.pid);
    // The guard of an ancestor zklock is an ancestor too, but in a session of its own.
    if (childs_group == own_group && group != own_group && getsid(process.pid) == own_session) {
      return true;
    }
    childs_group = group;
  }
  return false;
}

}  // namespace zklock::process
