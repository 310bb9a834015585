#pragma once

#include <functional>
#include <optional>

#include "base/clock.h"
#include "cli/options.h"
#include "cli/report.h"
#include "commands/console.h"
#include "commands/session_driver.h"
#include "lock/server_operation.h"
#include "process/event_loop.h"
#include "process/signals.h"

namespace zklock::commands {

/// A short stay on the servers that holds nothing: one session, operations one after the other.
class ShortSession {
 public:
  ShortSession(const cli::ServerOptions& options, process::Signals& signals, cli::Report& report);

  /// For the operations to be made with.
  [[nodiscard]] zookeeper::Store& store() { return session_driver_.session(); }
  [[nodiscard]] const Clock& clock() const { return clock_; }

  /// For what is to be served together with an operation.
  [[nodiscard]] process::EventLoop& loop() { return loop_; }

  /// Runs an operation to its end. None: it has its result. Else the exit status; why has been
  /// said.
  [[nodiscard]] std::optional<int> Run(lock::ServerOperation& operation);
  /// For one that somebody looks at: runs it to its end, or until `left`, or until a signal ends
  /// it: then its number. Nothing has been said; Failure() does.
  [[nodiscard]] std::optional<int> RunUntilLeft(lock::ServerOperation& operation,
                                                const std::function<bool()>& left,
                                                const AroundStop& around_stop = {});
  /// None: the operation has its result, or was left. Else the exit status; why has been said.
  [[nodiscard]] std::optional<int> Failure(const lock::ServerOperation& operation);

  /// Ends the session, for good.
  void Leave();

 private:
  [[nodiscard]] int Explain(const lock::OperationFailure& failure);

  const cli::ServerOptions& options_;
  process::Signals& signals_;
  cli::Report& report_;
  SystemClock clock_;
  process::EventLoop loop_;
  SessionDriver session_driver_;
};

}  // namespace zklock::commands
