#include "process/ancestry.h"

#include <unistd.h>

#include "process/process_tree.h"

namespace zklock::process {

bool IsLivingAncestor(std::int64_t pid, std::uint64_t start_time) {
  pid_t ancestor = getppid();
  while (ancestor > 0) {
    const auto stat = ReadProcessStat(ancestor);
    if (!stat) return false;
    if (ancestor == pid) return stat->id.start_time == start_time && !stat->is_dead;
    ancestor = stat->parent;
  }
  return false;
}

}  // namespace zklock::process
