#pragma once

#include <sys/types.h>

#include <optional>

#include "base/unique_fd.h"

namespace zklock::process {

/// A reference to a process that stays valid when its pid is reused (pidfd_open(2)).
///
/// If the kernel is too old, or a container's filter forbids the call, it is the pid alone.
class PidFd {
 public:
  /// None if there is no such process.
  [[nodiscard]] static std::optional<PidFd> Open(pid_t pid);

  /// False as well if the system has no such descriptors.
  [[nodiscard]] bool HasEnded() const;
  /// Readable once the process has ended; -1 if the system has no such descriptors.
  [[nodiscard]] int fd() const { return fd_.get(); }

  /// Returns 0 or errno: ESRCH once the process has been reaped, EPERM.
  [[nodiscard]] int Signal(int signal_number) const;

 private:
  PidFd(pid_t pid, UniqueFd fd) : pid_(pid), fd_(std::move(fd)) {}

  pid_t pid_;
  UniqueFd fd_;
};

}  // namespace zklock::process
