#include "process/tree/owner.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "process/loop/system_error.h"

namespace zklock::process {

std::optional<Owner> Owner::Open(pid_t pid) {
  std::optional<PidFd> process = PidFd::Open(pid);
  if (!process) return std::nullopt;
  if (process->fd() < 0) {
    // For a thread that is not its process's first: EINVAL, or ENOENT since Linux 6.15.
    if (errno == EINVAL || errno == ENOENT) return std::nullopt;
    ThrowErrno("watching another process (pidfd_open)");
  }
  auto stat = ReadProcessStat(pid);
  // `stat` belongs to this process only if the process is still alive now.
  if (!stat || stat->is_dead || process->HasEnded()) return std::nullopt;
  return Owner(std::move(*process), std::move(*stat));
}

std::optional<Owner> Owner::Parent() {
  const pid_t parent = getppid();
  std::optional<Owner> owner = Open(parent);
  // If that is still the parent, the pid was not reused in the meantime.
  return getppid() == parent ? std::move(owner) : std::nullopt;
}

}  // namespace zklock::process
