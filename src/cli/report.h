#pragma once

#include <string>
#include <system_error>

#include "base/exit_status.h"
#include "cli/end_reason.h"
#include "cli/event.h"
#include "cli/parsed_command_line.h"
#include "lock/contender_data.h"
#include "process/ended.h"
#include "process/executable.h"
#include "process/message_sink.h"

namespace zklock::cli {

/// Prints zklock's messages on standard error, one line each. No message contains unescaped foreign
/// bytes, a credential, or the environment.
class Report final : public EventListener {
 public:
  Report(process::MessageSink& sink, Verbosity verbosity) : sink_(sink), verbosity_(verbosity) {}

  void Write(Level level, const std::string& line);
  /// Level::kAlways.
  void Error(const std::string& line);
  /// Level::kUnlessQuiet.
  void Say(const std::string& line);

  void OnEvent(const Event& event) override;

  /// There is a configuration file that is not used (--verbose only).
  void UnusedConfig(const ServerOptions& options);

  // Before the command.
  void CannotExecute(const std::string& command, process::ExecFailed failure);
  /// Why the command was not run. Call it after the session's close: printing may take time, and
  /// others wait for the lock.
  void Explain(const RunEnd& end);
  /// --mine. `lock` is empty if none was named.
  void NothingIsMine(const std::string& lock);
  void NoLongerMine(const std::string& lock);
  /// --min-interval: the success could not be recorded.
  void NotRecorded(const std::string& lock);
  void Defect(const std::string& what);
  void SystemRefused(const std::system_error& error);
  void NoMemory();

  // While it runs, and after.
  void Survivor(const process::Survivor& survivor);
  void LeftBehind(const process::Survivor& process);
  void GuardFailed();
  void ReleaseRequested(const std::string& lock, const lock::ReleaseRequest& request);
  void Suspending(const std::string& lock, Duration lease_left);

 private:
  process::MessageSink& sink_;
  Verbosity verbosity_;
};

/// The line that the sink prints after it has dropped lines.
[[nodiscard]] std::string DroppedLine();
/// For --events: a number that is not a writable descriptor, and a file that cannot be opened.
[[nodiscard]] std::string NoDescriptor(const std::string& number);
[[nodiscard]] std::string CannotOpenEvents(const std::string& file);

/// The two lines of a usage error, without "zklock: ".
[[nodiscard]] std::string UsageLines(const UsageError& error);

}  // namespace zklock::cli
