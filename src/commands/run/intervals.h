#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "cli/reports/end_reason.h"
#include "commands/session/run_context.h"
#include "commands/session/session_driver.h"
#include "lock/data/ticket.h"
#include "lock/hold/hold.h"
#include "lock/hold/success_record.h"

namespace zklock::commands {

/// --min-interval and --once-per: decides, while the locks are held, whether the command may run,
/// and records what the next runs go by: with --once-per the start before it, with --min-interval
/// the success after it.
class Intervals {
 public:
  /// A signal came first.
  struct Interrupted {
    int signal_number = 0;
  };
  /// The locks were lost first.
  struct LostMeanwhile {
    bool may_have_started = false;  ///< the start may be committed: the next runs may be refused
  };
  /// The last run is too recent.
  struct TooRecent {
    const char* option = "";  ///< which one refuses
    const char* what = "";    ///< "succeeded" or "started"
    std::string lock{};
    std::string host{};
    Duration ago{};
    Duration interval{};  ///< of the option
  };
  /// Why the command must not run.
  using Refusal = std::variant<Interrupted, LostMeanwhile, TooRecent, lock::RecordFailure>;

  /// The references outlive it. `tickets`: of the session.
  Intervals(RunContext& context, SessionDriver& session_driver,
            const std::vector<lock::Ticket>& tickets);

  /// None if the command may run; with --once-per its start is then committed, and the lease
  /// suffices to start it.
  [[nodiscard]] std::optional<Refusal> Check(lock::Hold& hold);
  /// The end of the run after a refusal. To be called after the session's close, as FailureEnd.
  [[nodiscard]] cli::RunEnd End(const Refusal& refusal) const;

  /// With --min-interval: records that a run that began at `began` was a success, while the lock is
  /// still held, until its lease ends or a signal arrives. Without the record the command may run
  /// again too soon: that is reported. `history`: for each LOCK the data to write, which includes
  /// the success; may be empty.
  void RecordSuccess(lock::Hold& hold, TimePoint began,
                     std::vector<std::optional<zookeeper::DataWrite>> history = {});

 private:
  [[nodiscard]] std::optional<Refusal> CheckLastRun(lock::Hold& hold);
  [[nodiscard]] std::optional<Refusal> CommitStart(lock::Hold& hold);
  std::optional<Refusal> Serve(lock::Hold& hold, EventSource& source,
                               const std::function<bool()>& is_done);
  [[nodiscard]] std::string DisplayPath() const { return DisplayPaths(tickets_); }

  RunContext& context_;
  SessionDriver& session_driver_;
  const std::vector<lock::Ticket>& tickets_;
  lock::SuccessRecord success_record_;
};

}  // namespace zklock::commands
