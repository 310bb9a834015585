#include "process/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace zklock::process {

bool IsTerminal(int fd) { return isatty(fd) == 1; }

bool CanErase(int fd) {
  const char* const term = getenv("TERM");
  const std::string_view kind = term != nullptr ? term : "";
  return IsTerminal(fd) && !kind.empty() && kind != "dumb";
}

std::size_t TerminalWidth(int fd) {
  winsize size{};
  // A terminal of unknown size reports 0 too.
  if (ioctl(fd, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

bool IsInForeground(int fd) {
  const pid_t foreground = tcgetpgrp(fd);
  return foreground < 0 || foreground == getpgrp();  // below 0: not the controlling terminal
}

}  // namespace zklock::process
