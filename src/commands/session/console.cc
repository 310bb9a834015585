#include "commands/session/console.h"

#include <poll.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/exit_status.h"
#include "cli/reports/report_queue.h"
#include "process/loop/alarm.h"

namespace zklock::commands {
namespace {

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

std::optional<int> TakeEndingSignal(process::Signals& signals,
                                    const AroundSuspension& around_suspension) {
  while (const auto signal = signals.Next()) {
    if (process::StopsByDefault(signal->number)) {
      const auto suspend = [&] { signals.SuspendSelf(signal->number); };
      around_suspension ? around_suspension(suspend) : suspend();
    } else if (process::EndsByDefault(signal->number)) {
      return signal->number;
    }
  }
  return std::nullopt;
}

std::optional<int> RunUntil(process::EventLoop& loop, process::Signals& signals,
                            const std::function<bool()>& is_done, TimePoint deadline,
                            const AroundSuspension& around_suspension) {
  process::Alarm alarm(deadline);
  loop.Add(signals);
  loop.Add(alarm);
  std::optional<int> ended_by;
  while (!ended_by && !is_done() && BootClock::now() < deadline) {
    loop.RunOnce();
    ended_by = TakeEndingSignal(signals, around_suspension);
  }
  loop.Remove(alarm);
  loop.Remove(signals);
  return ended_by;
}

int InterruptedBy(int signal_number, cli::Report& report) {
  report.Say(cli::InterruptedBy(signal_number));
  return kExitSignalBase + signal_number;
}

bool CanAsk() { return isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1; }

Answer AskYesNo(const std::string& question, process::Signals& signals) {
  // On a terminal, the question appears at once. If it cannot be written, there can be no answer.
  if (write(STDERR_FILENO, question.data(), question.size()) < 0) return {};
  process::EventLoop loop;
  LineReader reader;
  loop.Add(reader);
  const auto signal = RunUntil(loop, signals, [&] { return reader.IsDone(); });
  // The cursor is still on the question's line.
  if (signal) (void)!write(STDERR_FILENO, "\n", 1);
  const bool yes =
      strcasecmp(reader.line().c_str(), "y") == 0 || strcasecmp(reader.line().c_str(), "yes") == 0;
  return {signal, yes && !signal};
}

}  // namespace zklock::commands
