#include "process/ancestry.h"

#include <unistd.h>

#include <algorithm>

namespace zklock::process {

bool IsLivingAncestor(std::int64_t pid, std::uint64_t start_time) {
  const std::vector<ProcessId> lineage = Lineage(getppid());
  return std::any_of(lineage.begin(), lineage.end(), [&](const ProcessId& ancestor) {
    return ancestor.pid == pid && ancestor.start_time == start_time;
  });
}

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

}  // namespace zklock::process
