#pragma once

#include <sys/types.h>

#include <optional>

#include "base/unique_fd.h"

namespace zklock::process {

/// A process that stays the same one though its pid may be used again (pidfd_open(2)).
///
/// Where the kernel is too old, or a container's filter forbids it, it is the bare pid.
class PidFd {
 public:
  /// None when there is no such process.
  [[nodiscard]] static std::optional<PidFd> Open(pid_t pid);

  /// Readable once the process has ended; -1 where the system has no such descriptors.
  [[nodiscard]] int fd() const { return fd_.get(); }

  /// 0 or errno: ESRCH when it has been reaped, EPERM.
  [[nodiscard]] int Signal(int signal_number) const;

 private:
  PidFd(pid_t pid, UniqueFd fd) : pid_(pid), fd_(std::move(fd)) {}

  pid_t pid_;
  UniqueFd fd_;
};

}  // namespace zklock::process
