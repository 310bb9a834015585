#pragma once

#include <sys/types.h>

#include <optional>

#include "base/unique_fd.h"

namespace zklock::process {

/// Refers to one process, never to a later one with the same pid (pidfd_open(2)).
///
/// If the kernel is too old, or a container's filter forbids the call, PidFd holds only the pid.
class PidFd {
 public:
  /// Returns none if there is no such process.
  [[nodiscard]] static std::optional<PidFd> Open(pid_t pid);

  /// Always false if the system has no pidfds.
  [[nodiscard]] bool HasEnded() const;
  /// Readable once the process has ended; -1 if the system has no pidfds.
  [[nodiscard]] int fd() const { return fd_.get(); }

  /// Returns 0 or an errno, such as EPERM, or ESRCH once the process has been reaped.
  [[nodiscard]] int Signal(int signal_number) const;

 private:
  PidFd(pid_t pid, UniqueFd fd) : pid_(pid), fd_(std::move(fd)) {}

  pid_t pid_;
  UniqueFd fd_;
};

}  // namespace zklock::process
