#pragma once

#include <fmt/core.h>

#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/exit_status.h"
#include "cli/options/options.h"
#include "cli/reports/end_reason.h"
#include "cli/reports/event.h"
#include "lock/hold/run_recorder.h"
#include "process/loop/message_sink.h"
#include "process/tree/cgroup.h"
#include "process/tree/ended.h"
#include "process/tree/executable.h"
#include "process/tree/process_tree.h"

namespace zklock::cli {

/// Prints zklock's messages on standard error, one line each. No message contains unescaped
/// untrusted bytes, a credential, or the environment.
class Report final : public EventListener {
 public:
  Report(process::MessageSink& sink, Verbosity verbosity) : sink_(sink), verbosity_(verbosity) {}
  ~Report() override { WriteKept(""); }

  void Write(Level level, const std::string& line);
  /// Reports `line` at Level::kAlways.
  void Error(const std::string& line);
  /// Reports `line` at Level::kUnlessQuiet.
  void Say(const std::string& line);
  /// Likewise, for a message (cli/text/messages.h) and its arguments, which must be printable.
  template <typename... Args>
  requires(sizeof...(Args) > 0) void Error(fmt::format_string<Args...> format, Args&&... args) {
    Error(fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  requires(sizeof...(Args) > 0) void Say(fmt::format_string<Args...> format, Args&&... args) {
    Say(fmt::format(format, std::forward<Args>(args)...));
  }

  /// From now on, lines are kept back until WriteKept() writes all of them except those equal to
  /// `except`. The destructor writes all of them.
  void KeepBack() { keeps_back_ = true; }
  void WriteKept(const std::string& except);

  /// Returns the last line that did not require --verbose, whether it was shown or not.
  [[nodiscard]] const std::string& last_line() const { return last_line_; }

  void OnEvent(const Event& event) override;

  /// Reports a setting or a configuration file that is not used, if there is one.
  void UnusedConfig(const ServerOptions& options);

  // Before the command.
  /// `long_variable`: one that zklock would have set, but that is longer than Linux allows.
  void CannotExecute(const std::vector<std::string>& command, process::ExecFailed failure,
                     const std::string& long_variable);
  /// Says why the command was not run. Call it after closing the session: printing may take time,
  /// and others may be waiting for the lock.
  void Explain(const RunEnd& end);
  void Defect(const std::string& what);
  void SystemRefused(const process::CgroupUnavailable& error);
  void SystemRefused(const process::NoProcessTree& error);
  void SystemRefused(const std::system_error& error);
  void NoMemory();

  /// Says whether the command runs in a cgroup of its own (--verbose only).
  void Contained(const std::string& cgroup);
  void NotContained(const process::NoCgroup& reason);
  /// Says that --contain require uses a cgroup that systemd has not delegated (--verbose only).
  void Undelegated(const std::string& cgroup);
  void OrphanEnded(const process::EndedOrphan& orphan);

  // While the command runs, and after it has ended.
  void Survivor(const process::Survivor& survivor);
  void LeftBehind(const process::Survivor& process);
  /// Says that the command has ended, but the lock is held until this process and `more` others
  /// end.
  void Awaited(const process::Survivor& process, int more);
  void AwaitedSurvivor(const std::string& locks, const process::Survivor& process, int more);
  /// What runs under the lock when zklock is suspended.
  enum class Suspended { kCommand, kCommandUnderWarn, kNestedRuns };
  /// `run_left`: the time that --max-run leaves the command.
  void Suspending(const std::string& lock, Duration lease_left, Duration run_left, Suspended what);
  /// Likewise, under a reservation.
  void SuspendingReserved(Duration run_left);

  /// Says why the history is not kept (--verbose only).
  void NoHistory(const lock::RunRecorder::Unkept& unkept);

 private:
  /// `text`: for errors that have no text of their own.
  void ReportSystemError(const std::system_error& error, const std::string& text);

  process::MessageSink& sink_;
  Verbosity verbosity_;
  std::string last_line_;
  bool keeps_back_ = false;
  std::vector<std::string> kept_;
};

/// Returns the line that the sink prints in place of those that it dropped.
[[nodiscard]] std::string DroppedLine();

/// Returns the two lines of a usage error, without "zklock: ".
[[nodiscard]] std::string UsageLines(const UsageError& error);

}  // namespace zklock::cli
