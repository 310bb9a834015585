#include "process/screen_terminal.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <utility>

#include "process/system_error.h"

namespace zklock::process {

SizeChanges::SizeChanges() {
  sigset_t size;
  sigemptyset(&size);
  sigaddset(&size, SIGWINCH);
  // Blocked, it stays pending for the descriptor although its default is to be ignored.
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
