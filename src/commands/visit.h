#pragma once

#include <functional>
#include <optional>

#include "base/clock.h"
#include "cli/options.h"
#include "cli/report.h"
#include "commands/connector.h"
#include "commands/console.h"
#include "lock/errand.h"
#include "process/event_loop.h"
#include "process/signals.h"

namespace zklock::commands {

/// A short stay on the servers that holds nothing: one session, errands one after the other.
class Visit {
 public:
  Visit(const cli::ServerOptions& options, process::Signals& signals, cli::Report& report);

  /// For the errands to be made with.
  [[nodiscard]] zookeeper::Store& store() { return connector_.session(); }
  [[nodiscard]] const Clock& clock() const { return clock_; }

  /// For what is to be served together with an errand.
  [[nodiscard]] process::EventLoop& loop() { return loop_; }

  /// Runs an errand to its end. None: it has its result. Else the exit status; why has been said.
  [[nodiscard]] std::optional<int> Run(lock::Errand& errand);
  /// For one that somebody looks at: runs it to its end, or until `left`, or until a signal ends
  /// it: then its number. Nothing has been said; Failure() does.
  [[nodiscard]] std::optional<int> RunUntilLeft(lock::Errand& errand,
                                                const std::function<bool()>& left,
                                                const AroundStop& around_stop = {});
  /// None: the errand has its result, or was left. Else the exit status; why has been said.
  [[nodiscard]] std::optional<int> Failure(const lock::Errand& errand);

  /// Ends the session, for good.
  void Leave();

 private:
  [[nodiscard]] int Explain(const lock::ErrandFailure& failure);

  const cli::ServerOptions& options_;
  process::Signals& signals_;
  cli::Report& report_;
  SystemClock clock_;
  process::EventLoop loop_;
  Connector connector_;
};

}  // namespace zklock::commands
