#include "commands/output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "process/terminal.h"

namespace zklock::commands {
namespace {

// A pipe that is ready for writing accepts this much without blocking.
constexpr std::size_t kChunk = 4096;
constexpr std::size_t kFull = 64 * 1024;

/// False if standard output was closed when zklock started. Its number may then be a descriptor of
/// zklock's own, which is close-on-exec, unlike any inherited descriptor.
bool HasStandardOutput() {
  const int flags = fcntl(STDOUT_FILENO, F_GETFD);
  return flags >= 0 && (static_cast<unsigned>(flags) & FD_CLOEXEC) == 0;
}

std::size_t SizeFromEnvironment(const char* name) {
  const char* const text = getenv(name);
  if (text == nullptr) return 0;
  const std::string_view digits = text;
  std::size_t size = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole ? size : 0;
}

}  // namespace

Output::Output(std::function<void()> on_room)
    : on_room_(std::move(on_room)), error_(HasStandardOutput() ? 0 : EBADF) {
  struct stat status {};
  if (error_ != 0 || fstat(STDOUT_FILENO, &status) != 0) return;
  // Making the inherited description non-blocking would affect every process that shares it. Not
  // for a regular file: a new description would write from its beginning.
  if (S_ISFIFO(status.st_mode) || isatty(STDOUT_FILENO) == 1) {
    own_.Reset(open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  }
}

void Output::Append(const std::string& text) {
  if (error_ != 0) return;
  waiting_.erase(0, std::exchange(written_, 0));
  waiting_ += text;
}

void Output::WriteLast(const std::string& text) {
  constexpr int kMilliseconds = 1000;
  waiting_ = text;
  written_ = 0;
  while (!IsDone()) {
    pollfd ready{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
    if (poll(&ready, 1, kMilliseconds) <= 0) break;
    OnReady(ready.revents);
  }
  waiting_.clear();
  written_ = 0;
}

bool Output::IsFull() const { return waiting_.size() - written_ >= kFull && error_ == 0; }

EventSource::Interest Output::GetInterest() {
  if (IsDone()) return {};
  return {.fd = STDOUT_FILENO, .events = POLLOUT};
}

void Output::OnReady(short /*revents*/) {
  const bool was_full = IsFull();
  const std::size_t left = waiting_.size() - written_;
  const ssize_t size =
      own_ ? write(own_.get(), waiting_.data() + written_, left)
           : write(STDOUT_FILENO, waiting_.data() + written_, std::min(left, kChunk));
  if (size < 0 && errno != EINTR && errno != EAGAIN) error_ = errno;
  if (size > 0) written_ += static_cast<std::size_t>(size);
  if (written_ == waiting_.size()) {
    waiting_.clear();
    written_ = 0;
  }
  if (was_full && !IsFull() && on_room_) on_room_();
}

bool OutputIsTerminal() { return process::CanErase(STDOUT_FILENO); }

TerminalSize OutputSize() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) size = {};
  TerminalSize terminal{size.ws_row, size.ws_col};
  if (terminal.columns == 0) terminal.columns = SizeFromEnvironment("COLUMNS");
  if (terminal.rows == 0) terminal.rows = SizeFromEnvironment("LINES");
  return terminal;
}

bool OutputHasColours() {
  const char* const refused = getenv("NO_COLOR");
  return OutputIsTerminal() && (refused == nullptr || *refused == '\0');
}

}  // namespace zklock::commands
