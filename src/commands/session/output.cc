#include "commands/session/output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/exit_status.h"
#include "base/text.h"
#include "cli/text/queue_messages.h"
#include "commands/session/console.h"
#include "process/loop/event_loop.h"
#include "process/loop/terminal.h"

namespace zklock::commands {
namespace {

constexpr std::size_t kFull = 64 * 1024;

/// Returns false if standard output was closed when zklock started. Its number may then be a
/// descriptor of zklock's own, which is close-on-exec, unlike any inherited descriptor.
bool HasStandardOutput() {
  const int flags = fcntl(STDOUT_FILENO, F_GETFD);
  return flags >= 0 && (static_cast<unsigned>(flags) & FD_CLOEXEC) == 0;
}

std::size_t SizeFromEnvironment(const char* name) {
  const char* const text = getenv(name);
  return text == nullptr ? 0 : ParseWhole<std::size_t>(text).value_or(0);
}

}  // namespace

Output::Output(std::function<void()> on_room)
    : on_room_(std::move(on_room)),
      writer_(HasStandardOutput() ? STDOUT_FILENO : -1, process::StreamWriter::Writers::kOne),
      is_terminal_(isatty(STDOUT_FILENO) == 1) {}

void Output::WriteLast(const std::string& text) {
  writer_.Discard();
  writer_.Append(text);
  writer_.Drain(std::chrono::seconds(1));
  writer_.Discard();
}

bool Output::IsFull() const { return writer_.waiting() >= kFull && error() == 0; }

// While there is nothing to write, also notices that the reader is gone, like tail -f: in
// `zklock inspect --watch --json LOCK | head -1`, nothing may change for days.
EventSource::Interest Output::GetInterest() {
  if (!IsDone() || error() != 0 || is_terminal_) return writer_.GetInterest();
  return {.fd = STDOUT_FILENO};
}

void Output::OnReady(short revents) {
  const auto gone = static_cast<unsigned>(POLLERR) | static_cast<unsigned>(POLLHUP);
  if (IsDone() && (static_cast<unsigned>(revents) & gone) != 0) {
    // Of a terminal that was closed before zklock started, isatty(3) says no, and why.
    error_ = isatty(STDOUT_FILENO) == 0 && errno == EIO ? EIO : EPIPE;
  }
  const bool was_full = IsFull();
  writer_.OnReady(revents);
  if (was_full && !IsFull() && on_room_) on_room_();
}

int CannotPrint(int error, cli::Report& report) {
  if (error == EPIPE) return kExitSignalBase + SIGPIPE;
  // A terminal that was closed fails every request with EIO, unlike one that we may not write to.
  if (error == EIO && isatty(STDOUT_FILENO) == 0 && errno == EIO) return kExitSignalBase + SIGHUP;
  report.Error(cli::message::kCannotPrint, std::generic_category().message(error));
  return kExitSystem;
}

std::optional<int> PrintWhole(const std::string& text, process::Signals& signals,
                              cli::Report& report) {
  process::EventLoop loop;
  Output output;
  loop.Add(output);
  output.Append(text);
  const auto signal = RunUntil(loop, signals, [&] { return output.IsDone(); });
  loop.Remove(output);
  if (signal) return InterruptedBy(*signal, report);
  if (output.error() != 0) return CannotPrint(output.error(), report);
  return std::nullopt;
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
