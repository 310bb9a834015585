#pragma once

#include <string>

#include "base/exit_status.h"
#include "cli/options.h"
#include "lock/acquire.h"
#include "lock/hold.h"
#include "process/message_sink.h"
#include "process/supervisor.h"

namespace zklock::cli {

/// Everything zklock says on standard error: one line each, what was tried, on which path, what to
/// do. The only place with sentences; none holds a foreign byte unescaped, a credential, or the
/// environment.
class Report {
 public:
  Report(process::MessageSink& sink, Verbosity verbosity) : sink_(sink), verbosity_(verbosity) {}

  /// Always said: defects, lost locks, wrong words, servers that are not there.
  void Error(const std::string& line);
  /// Said unless --quiet: why the command was not run.
  void Say(const std::string& line);
  /// Said with --verbose: each step.
  void Step(const std::string& line);

  // Before the command.
  void CannotExecute(const std::string& command, process::ExecFailed failure);
  void Unreachable(const std::string& tried, Duration time_out, bool hopeless);
  void NotTaken(const std::string& lock, const lock::Busy& busy, const RunOptions& options);
  void Refused(const lock::Refused& refused);
  void Unusable(const std::string& lock, const lock::Unusable& unusable);
  void Defect(const std::string& what);
  void StoppedWhileWaiting(const std::string& lock, int signal_number);
  void ShortSession(Duration granted);
  void Stranger(const std::string& lock, const protocol::Stranger& stranger);
  void PlaceLost(const std::string& lock);
  void Queued(const std::string& contender);
  void Waiting(const std::string& lock, const std::string& predecessor, std::size_t ahead);
  void Acquired(const lock::Ticket& ticket);
  void Nested(const std::string& lock);

  // While it runs, and after.
  void Started(const std::string& command, pid_t pid);
  void Suspect(const std::string& lock);
  void Confirmed(const std::string& lock);
  void Lost(const std::string& lock, lock::Loss loss, OnLost on_lost);
  void LeaseRanOut(const std::string& lock);
  void Survivor(const process::Survivor& survivor);
  void LeftBehind(const process::Survivor& process);
  void GuardFailed();
  void Stopping(const std::string& lock, Duration lease_left);
  void CommandEnded(int status);
  void Released(const std::string& lock);
  void NotConfirmed(const std::string& lock);

 private:
  process::MessageSink& sink_;
  Verbosity verbosity_;
};

/// The two lines of a usage error, without "zklock: ".
[[nodiscard]] std::string UsageLines(const UsageError& error);

}  // namespace zklock::cli
