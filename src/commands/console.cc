#include "commands/console.h"

#include <fcntl.h>
#include <poll.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>

#include "base/exit_status.h"
#include "cli/report_queue.h"

namespace zklock::commands {
namespace {

/// Writes to standard output as it becomes ready.
class Writer final : public EventSource {
 public:
  explicit Writer(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool IsDone() const { return rest_.empty() || error_ != 0; }
  [[nodiscard]] int error() const { return error_; }

  Interest GetInterest() override { return {.fd = STDOUT_FILENO, .events = POLLOUT}; }
  void OnReady(short /*revents*/) override {
    // A ready pipe takes this much without blocking. (Not made non-blocking: that would hold for
    // everybody who has this description open.)
    constexpr std::size_t kChunk = 4096;
    const std::string_view chunk = rest_.substr(0, kChunk);
    const ssize_t size = write(STDOUT_FILENO, chunk.data(), chunk.size());
    if (size >= 0) {
      rest_.remove_prefix(static_cast<std::size_t>(size));
    } else if (errno != EINTR && errno != EAGAIN) {
      error_ = errno;
    }
  }

 private:
  std::string_view rest_;
  int error_ = 0;
};

/// False when it was closed at the start. Its number may be a descriptor of ours then, which shows:
/// nothing that exec has passed on is close-on-exec.
bool HasStandardOutput() {
  const int flags = fcntl(STDOUT_FILENO, F_GETFD);
  return flags >= 0 && (static_cast<unsigned>(flags) & FD_CLOEXEC) == 0;
}

/// Reads one line from standard input.
class LineReader final : public EventSource {
 public:
  [[nodiscard]] bool IsDone() const { return done_; }
  [[nodiscard]] const std::string& line() const { return line_; }

  Interest GetInterest() override { return {.fd = STDIN_FILENO, .events = POLLIN}; }
  void OnReady(short /*revents*/) override {
    std::array<char, 256> buffer{};
    const ssize_t size = read(STDIN_FILENO, buffer.data(), buffer.size());
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (size > 0) line_.append(buffer.data(), static_cast<std::size_t>(size));
    const std::size_t end = line_.find('\n');
    done_ = size <= 0 || end != std::string::npos;
    line_.resize(std::min(end, line_.size()));
  }

 private:
  std::string line_;
  bool done_ = false;
};

}  // namespace

std::optional<int> RunUntil(process::EventLoop& loop, process::Signals& signals,
                            const std::function<bool()>& done) {
  loop.Add(signals);
  std::optional<int> ended_by;
  while (!ended_by && !done()) {
    loop.RunOnce();
    while (const auto signal = signals.Next()) {
      if (signal->number == SIGTSTP) {
        signals.StopSelf();
      } else if (signal->number != SIGCONT) {
        ended_by = signal->number;
      }
    }
  }
  loop.Remove(signals);
  return ended_by;
}

int StoppedBy(int signal_number, cli::Report& report) {
  report.Say(cli::StoppedBy(signal_number));
  return kExitSignalBase + signal_number;
}

PrintResult Print(const std::string& text, process::Signals& signals) {
  if (!HasStandardOutput()) return {std::nullopt, EBADF};
  process::EventLoop loop;
  Writer writer(text);
  loop.Add(writer);
  const auto signal = RunUntil(loop, signals, [&] { return writer.IsDone(); });
  return {signal, writer.error()};
}

std::size_t OutputWidth() {
  winsize size{};
  // No terminal, or one that does not say (0): the same answer.
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

bool CanAsk() { return isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1; }

Answer AskYesNo(const std::string& question, process::Signals& signals) {
  // To a terminal, so that it is there at once; where it is not, there is no answer either.
  if (write(STDERR_FILENO, question.data(), question.size()) < 0) return {};
  process::EventLoop loop;
  LineReader reader;
  loop.Add(reader);
  const auto signal = RunUntil(loop, signals, [&] { return reader.IsDone(); });
  // The cursor stands behind the question.
  if (signal) (void)!write(STDERR_FILENO, "\n", 1);
  const bool yes =
      strcasecmp(reader.line().c_str(), "y") == 0 || strcasecmp(reader.line().c_str(), "yes") == 0;
  return {signal, yes && !signal};
}

}  // namespace zklock::commands
