#include "process/tree/pidfd.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace zklock::process {

namespace {

// EPERM may be from a container's filter; kill(2) then gives the real answer.
bool IsMissing(int error) { return error == ENOSYS || error == EPERM; }

}  // namespace

std::optional<PidFd> PidFd::Open(pid_t pid) {
  UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!fd && errno == ESRCH) return std::nullopt;
  return PidFd(pid, std::move(fd));
}

bool PidFd::HasEnded() const {
  pollfd polled{fd_.get(), POLLIN, 0};
  return poll(&polled, 1, 0) > 0;
}

int PidFd::Signal(int signal_number) const {
  if (fd_ && syscall(SYS_pidfd_send_signal, fd_.get(), signal_number, nullptr, 0) == 0) return 0;
  if (fd_ && !IsMissing(errno)) return errno;
  return kill(pid_, signal_number) == 0 ? 0 : errno;
}

}  // namespace zklock::process
