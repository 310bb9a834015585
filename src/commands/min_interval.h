#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "cli/end_reason.h"
#include "commands/run_context.h"
#include "commands/session_driver.h"
#include "lock/hold.h"
#include "lock/last_run.h"
#include "lock/ticket.h"

namespace zklock::commands {

/// --min-interval: reads, while the locks are held, when the command last ran with success, and
/// records a success.
class MinInterval {
 public:
  /// A signal came first.
  struct Interrupted {
    int signal_number = 0;
  };
  /// The locks were lost first.
  struct LostMeanwhile {};
  /// The last success is too recent.
  struct TooRecent {
    lock::LastRun::Success last;
    Duration ago{};
  };
  /// Why the command must not run.
  using Refusal = std::variant<Interrupted, LostMeanwhile, TooRecent, lock::LastRun::Unknown>;

  /// The references outlive it. `tickets`: of the session.
  MinInterval(RunContext& context, SessionDriver& session_driver,
              const std::vector<lock::Ticket>& tickets);

  /// None if the command may run.
  [[nodiscard]] std::optional<Refusal> Check(lock::Hold& hold);
  /// The end of the run after a refusal. To be called after the session's close, as FailureEnd.
  [[nodiscard]] cli::RunEnd End(const Refusal& refusal) const;

  /// Records that a run that began at `began` was a success, while the lock is still held, until
  /// its lease ends or a signal arrives. Without the record the command may run again too soon:
  /// that is reported. `history`: for each LOCK the data to write, which includes the success; may
  /// be empty.
  void Record(lock::Hold& hold, TimePoint began,
              std::vector<std::optional<zookeeper::DataWrite>> history = {});

 private:
  std::optional<Refusal> Serve(lock::Hold& hold);
  [[nodiscard]] std::string DisplayPath() const { return DisplayPaths(tickets_); }

  RunContext& context_;
  SessionDriver& session_driver_;
  const std::vector<lock::Ticket>& tickets_;
  lock::LastRun last_run_;
};

}  // namespace zklock::commands
