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

/// How long a release, or a run that makes a reservation, waits for slow servers to answer a write
/// to the history. Without that write, the run would be shown as lost.
inline constexpr Duration kLongestHistoryWait = std::chrono::seconds(5);

/// Handles the records of runs under LOCKs while these are held. With --min-interval and
/// --once-per, decides from earlier runs whether the command may run, and records its success or
/// its start for later runs. With --history, records the run.
class RecordedRuns {
 public:
  /// Why the command must not run; empty if it may. Returns the end of the run. Call it after
  /// closing the session, as with FailureEnd.
  using Refusal = std::function<cli::RunEnd()>;

  /// The references must outlive it. `tickets`: of the session.
  RecordedRuns(RunContext& context, SessionDriver& session_driver,
               const std::vector<lock::Ticket>& tickets);

  /// Decides whether the command may run. If so, with --once-per, commits its start, and
  /// waits until the lease is long enough to start it.
  [[nodiscard]] Refusal Check(lock::Hold& hold);

  /// With --once-per: returns whether later runs may count this one, even if its command does not
  /// start.
  [[nodiscard]] bool start_may_count() const { return start_may_count_; }

  /// Returns the source to serve while the locks are held.
  [[nodiscard]] EventSource& source() { return recorder_; }
  /// Records that the run has begun. Later calls do nothing.
  void Begin(TimePoint began) { recorder_.Begin(began); }

  /// Records that the run, which began at `began`, has ended. With --min-interval, writes a success
  /// while the lock is still held, and keeps trying until the lease ends or a signal arrives. If
  /// the success cannot be written, reports that, because the command may run again too soon. With
  /// --history alone, writes the end with the release; the caller releases whatever this function
  /// has not released.
  void End(lock::Hold& hold, TimePoint began, const lock::FinishedRun& run);
  /// Call after the close: ignores later answers to what End() has written.
  void GiveUpRest() { recorder_.GiveUpRest(); }
  /// With --verbose, reports each LOCK whose history cannot be kept, once.
  void ReportUnkept();

 private:
  [[nodiscard]] Refusal CheckLastSuccess(lock::Hold& hold);
  [[nodiscard]] Refusal CommitStart(lock::Hold& hold);
  /// Runs the loop until `is_done`, until the locks are lost, or until a signal arrives, which it
  /// returns.
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
  bool start_may_count_ = false;
  std::size_t reported_ = 0;
};

}  // namespace zklock::commands
