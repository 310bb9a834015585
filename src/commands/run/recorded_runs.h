#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "cli/reports/end_reason.h"
#include "commands/session/run_context.h"
#include "commands/session/session_driver.h"
#include "lock/data/ticket.h"
#include "lock/hold/hold.h"
#include "lock/hold/run_recorder.h"

namespace zklock::commands {

/// How long a release, or a reservation's maker, waits for the answers of slow servers to what is
/// written in the history. Without them the run would be shown as lost.
inline constexpr Duration kLongestHistoryWait = std::chrono::seconds(5);

/// The runs that are recorded under LOCKs, while these are held. With --min-interval and
/// --once-per, decides by the earlier ones whether the command may run; records its success or its
/// start for the next ones; with --history, records the run.
class RecordedRuns {
 public:
  /// Why the command must not run: makes the end of the run, after the session's close, as
  /// FailureEnd. Empty if it may run.
  using Refusal = std::function<cli::RunEnd()>;

  /// The references outlive it. `tickets`: of the session.
  RecordedRuns(RunContext& context, SessionDriver& session_driver,
               const std::vector<lock::Ticket>& tickets);

  /// If the command may run with --once-per, its start is then committed, and the lease suffices to
  /// start it.
  [[nodiscard]] Refusal Check(lock::Hold& hold);

  /// To be served while the locks are held.
  [[nodiscard]] EventSource& source() { return recorder_; }
  /// The run begins. Later calls do nothing.
  void Begin(TimePoint began) { recorder_.Begin(began); }

  /// The run, which began at `began`, has ended: records that. With --min-interval, a success is
  /// written while the lock is still held, until its lease ends or a signal arrives; if it cannot
  /// be written, the command may run again too soon, and that is reported. With --history alone,
  /// the end is written with the release; what is not released then, the caller releases.
  void End(lock::Hold& hold, TimePoint began, const lock::FinishedRun& run);
  /// After the close: of what End() has written, later answers do not count.
  void GiveUpRest() { recorder_.GiveUpRest(); }
  /// With --verbose: the LOCKs whose history cannot be kept, each once.
  void ReportUnkept();

 private:
  [[nodiscard]] Refusal CheckLastSuccess(lock::Hold& hold);
  [[nodiscard]] Refusal CommitStart(lock::Hold& hold);
  /// Serves until `is_done`, unless a signal arrives, which is returned, or the locks are lost.
  std::optional<int> Serve(lock::Hold& hold, EventSource& source,
                           const std::function<bool()>& is_done);
  [[nodiscard]] Refusal Stopped(std::optional<int> signal, cli::EndReason lost) const;
  [[nodiscard]] Refusal TooRecent(const char* option, Duration interval, const char* what,
                                  const std::string& lock, const std::string& host,
                                  Duration ago) const;
  [[nodiscard]] Refusal Unknown(const lock::RecordFailure& failure) const;
  [[nodiscard]] std::string DisplayPath() const { return DisplayPaths(tickets_); }

  RunContext& context_;
  SessionDriver& session_driver_;
  const std::vector<lock::Ticket>& tickets_;
  const bool is_shared_;
  lock::RunRecorder recorder_;
  std::size_t reported_ = 0;
};

}  // namespace zklock::commands
