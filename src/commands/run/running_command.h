#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/end_cause.h"
#include "cli/reports/end_reason.h"
#include "commands/session/event_broadcaster.h"
#include "commands/session/run_context.h"
#include "commands/session/session_driver.h"
#include "lock/data/contender_data.h"
#include "lock/hold/hold.h"
#include "process/guard/supervisor.h"
#include "process/loop/alarm.h"
#include "process/tree/executable.h"

namespace zklock::commands {

/// Reports that the command cannot be executed. Returns the exit status.
int CannotExecute(RunContext& context, process::ExecFailed failed,
                  const std::string& long_variable = "");

/// Returns the details, for the message, of a loss of our session's locks that has just been found.
[[nodiscard]] cli::CauseDetails DetailsOfLoss(EndCause cause, const lock::Hold& hold,
                                              const HoldEvents& hold_events,
                                              SessionDriver& session_driver);

/// Sets, for the history, what ended the run and who requested its end.
void SetCause(lock::FinishedRun& run, EndCause cause, const HoldEvents& hold_events);

/// The command from its start to its end, as messages and events show it, under locks of our own
/// session, of ancestors, or both. The caller runs the loop, with the supervisor in it, and calls
/// the functions below after each wake-up.
class RunningCommand {
 public:
  using Details = std::function<cli::CauseDetails(EndCause)>;
  /// `locks`: all that it runs under, for messages. `details`: returns the details of a loss
  /// that has just been found; may be empty. `context` and `supervisor` must outlive it.
  RunningCommand(RunContext& context, process::Supervisor& supervisor, std::string locks,
                 Details details = {});
  ~RunningCommand() { context_.loop.Remove(alarm_); }
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;

  /// If ancestors also hold locks, makes the command end when these are lost, and before the end of
  /// the earliest lease, whether an ancestor's or our own.
  void FollowAncestors(TimePoint own_lease_end, Duration own_grace);
  /// Publishes that the command has been executed, and that its lease or --max-run has run out, as
  /// soon as that is known. If the end takes long, also reports why the command has to end.
  void PublishProgress();
  /// Call when the locks of our session are lost: publishes that, unless a loss has already been
  /// published, and ends the command if --on-lost says so.
  void OnLoss(EndCause loss);
  /// Call when another process asks for the release: reports that, once, and ends the command.
  void OnReleaseRequest(const lock::ReleaseRequest& request);
  /// Forwards the signals that have arrived to the command. When the command is suspended, so is
  /// zklock; under a shell with job control, first reports what the suspension means for the locks.
  /// `own_lease_end`: kNever if only ancestors hold locks.
  void HandleSignals(TimePoint own_lease_end);

  /// Publishes the end of the command, which the supervisor has reaped, if it was executed.
  void PublishEnd();
  /// Valid after PublishEnd().
  [[nodiscard]] process::Ended& ended() { return ended_; }
  /// Returns why the run ends: what ended the command or, with --on-lost warn, the loss that it
  /// outlived; kItself if it ended by itself. May still change before the release, if nested runs
  /// have to end.
  [[nodiscard]] EndCause cause() const;
  /// Returns how the run ends, with this `reason`, if the lock was lost or its release requested
  /// before the command was executed; otherwise none. Must be called after the command was reaped.
  [[nodiscard]] std::optional<cli::RunEnd> EndIfLostBeforeStart(cli::EndReason reason) const;
  /// Returns the exit status of zklock.
  [[nodiscard]] int Status() const;
  /// Reports why the command had to end and what ended it, and the processes that it left behind.
  void ReportEnd();

 private:
  void OnLossOf(const std::string& locks, EndCause loss);
  void PublishLoss(const std::string& locks, EndCause loss);
  [[nodiscard]] bool EndsCommand(EndCause loss) const;
  void ReportAwaited(const process::Supervisor::Awaited& awaited);
  void ReportSuspension(TimePoint lease_end);
  /// Notes why the command has to end. The message waits until the fate of the command is
  /// known.
  void SetReason(std::string reason);
  [[nodiscard]] std::string FateOfCommand(cli::Fate fate) const;
  [[nodiscard]] cli::Fate FateAtEnd() const;

  RunContext& context_;
  process::Supervisor& supervisor_;
  const std::string locks_;
  process::Ended ended_;
  bool start_published_ = false;
  std::optional<EndCause> loss_;  // the loss that was published
  bool has_request_ = false;
  bool is_too_long_ = false;
  const Details details_;
  std::string reason_;            // empty if it has been reported
  TimePoint report_at_ = kNever;  // when to report it even if the command has not ended
  process::Alarm alarm_;
  bool has_sent_stop_ = false;  // the reason has been reported, but not the end
};

}  // namespace zklock::commands
