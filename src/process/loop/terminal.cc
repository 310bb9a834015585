#include "process/loop/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <utility>

#include "process/loop/system_error.h"

namespace zklock::process {

bool IsTerminal(int fd) { return isatty(fd) == 1; }

bool CanErase(int fd) {
  const char* const term = getenv("TERM");
  const std::string_view kind = term != nullptr ? term : "";
  return IsTerminal(fd) && !kind.empty() && kind != "dumb";
}

std::size_t TerminalWidth(int fd) {
  winsize size{};
  // A terminal of unknown size also reports 0.
  if (ioctl(fd, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

bool IsInForeground(int fd) {
  const pid_t foreground = tcgetpgrp(fd);
  return foreground < 0 || foreground == getpgrp();  // below 0: not the controlling terminal
}

SizeChanges::SizeChanges() {
  sigset_t size;
  sigemptyset(&size);
  sigaddset(&size, SIGWINCH);
  // While blocked, WINCH stays pending for the descriptor, although it is ignored by default.
  Check(sigprocmask(SIG_BLOCK, &size, &saved_mask_), "sigprocmask");
  fd_.Reset(signalfd(-1, &size, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) {
    sigprocmask(SIG_SETMASK, &saved_mask_, nullptr);
    ThrowErrno("signalfd");
  }
}

SizeChanges::~SizeChanges() { sigprocmask(SIG_SETMASK, &saved_mask_, nullptr); }

bool SizeChanges::Take() { return std::exchange(changed_, false); }

EventSource::Interest SizeChanges::GetInterest() { return {.fd = fd_.get(), .events = POLLIN}; }

void SizeChanges::OnReady(short /*revents*/) {
  signalfd_siginfo info{};
  while (read(fd_.get(), &info, sizeof info) > 0) changed_ = true;
}

EchoOff::EchoOff(int fd) : fd_(fd) {
  termios settings{};
  if (tcgetattr(fd_, &settings) != 0 || tcgetpgrp(fd_) != getpgrp()) return;
  saved_ = settings;
  settings.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  tcsetattr(fd_, TCSANOW, &settings);
}

EchoOff::~EchoOff() {
  if (saved_ && tcgetpgrp(fd_) == getpgrp()) tcsetattr(fd_, TCSAFLUSH, &*saved_);
}

}  // namespace zklock::process
