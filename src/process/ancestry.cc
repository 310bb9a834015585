#include "process/ancestry.h"

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

}  // namespace zklock::process
