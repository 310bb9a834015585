#pragma once

#include <string>
#include <system_error>

#include "base/exit_status.h"
#include "cli/contender_data.h"
#include "cli/end_reason.h"
#include "cli/event.h"
#include "cli/options.h"
#include "process/message_sink.h"
#include "process/supervisor.h"

namespace zklock::cli {

/// Everything zklock says on standard error: one line each, what was tried, on which path, what to
/// do, by the formats of messages.h. None holds a foreign byte unescaped, a credential, or the
/// environment.
class Report final : public EventListener {
 public:
  Report(process::MessageSink& sink, Verbosity verbosity) : sink_(sink), verbosity_(verbosity) {}

  /// Always said: defects, lost locks, wrong words, servers that are not there.
  void Error(const std::string& line);
  /// Said unless --quiet: why the command was not run.
  void Say(const std::string& line);
  void Write(Level level, const std::string& line);

  void OnEvent(const Event& event) override;

  /// With --verbose: there is a configuration file of the user's that is not used.
  void UnusedConfig(const ServerOptions& options);

  // Before the command.
  void CannotExecute(const std::string& command, process::ExecFailed failure);
  /// Why the command was not run. After the session's close: no message may keep others waiting.
  void Explain(const RunEnd& end);
  /// --mine. `lock` is empty where none was named.
  void NothingIsMine(const std::string& lock);
  void NoLongerMine(const std::string& lock);
  /// --min-interval: the success was not written down.
  void NotRecorded(const std::string& lock);
  void Defect(const std::string& what);
  void SystemRefused(const std::system_error& error);
  void NoMemory();

  // While it runs, and after.
  void Survivor(const process::Survivor& survivor);
  void LeftBehind(const process::Survivor& process);
  void GuardFailed();
  void Revoked(const std::string& lock, const RevokeData& revocation);
  void Stopping(const std::string& lock, Duration lease_left);

 private:
  process::MessageSink& sink_;
  Verbosity verbosity_;
};

/// What the sink is to say where lines were dropped.
[[nodiscard]] std::string DroppedLine();
/// --events with a number that is no descriptor to write to; with a file that cannot be opened.
[[nodiscard]] std::string NoDescriptor(const std::string& number);
[[nodiscard]] std::string CannotOpenEvents(const std::string& file);

/// The two lines of a usage error, without "zklock: ".
[[nodiscard]] std::string UsageLines(const UsageError& error);

}  // namespace zklock::cli
