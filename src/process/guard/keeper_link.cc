#include "process/guard/keeper_link.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "process/guard/guard_link.h"
#include "process/loop/descriptors.h"
#include "process/loop/system_error.h"

namespace zklock::process {
namespace {

void SendByte(int link) { (void)send(link, "h", 1, MSG_DONTWAIT | MSG_NOSIGNAL); }

}  // namespace

KeeperFork ForkKeeper() {
  GuardSocket ends = MakeGuardSocket();
  const pid_t pid = Check(fork(), "fork");
  if (pid != 0) return {pid, std::move(ends.zklock)};
  ends.zklock.Reset();
  CloseInherited();
  Silence({STDIN_FILENO, STDOUT_FILENO});
  Check(chdir("/"), "chdir to /");
  return {0, std::move(ends.guard)};
}

void ReportHeld(int link) {
  setsid();
  Silence({STDERR_FILENO});
  SendByte(link);
}

void AcknowledgeHeld(int link) { SendByte(link); }

LinkState ReadLink(int link) {
  char word = 0;
  const ssize_t size = recv(link, &word, 1, MSG_DONTWAIT);
  if (size == 1) return LinkState::kMessage;
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return LinkState::kNothing;
  return LinkState::kClosed;
}

}  // namespace zklock::process
