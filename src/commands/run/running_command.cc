#include "commands/run/running_command.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>
#include <variant>

#include "cli/reports/end_reason.h"
#include "cli/reports/report_reasons.h"
#include "process/tree/ancestry.h"

namespace zklock::commands {

namespace {

// If the command ends sooner than this, a single message says why it had to end and what ended it.
constexpr Duration kPromptEnd = std::chrono::seconds(1);

}  // namespace

int CannotExecute(RunContext& context, process::ExecFailed failed,
                  const std::string& long_variable) {
  context.report.CannotExecute(context.options.command, failed, long_variable);
  return process::ExitStatusOf(failed);
}

cli::CauseDetails DetailsOfLoss(EndCause cause, const lock::Hold& hold,
                                const HoldEvents& hold_events, SessionDriver& session_driver) {
  if (cause == EndCause::kRemoved) {
    const auto& request = hold_events.release_request();
    return {.by = request && request->forced ? cli::AskerText(*request) : ""};
  }
  zookeeper::Session& session = session_driver.session();
  const protocol::Lease& lease = session.lease();
  std::optional<std::pair<Duration, Duration>> grants;
  if (!lease.CanBeExtended()) grants = {lease.timeout(), 4 * lease.PingSpan()};
  return {.unconfirmed = hold.Unconfirmed(),
          .tried = session_driver.Tried(),
          .paused = hold.paused(),
          .server = session.connected_server(),
          .granted = session.granted_timeout(),
          .grants = grants};
}

void SetCause(lock::FinishedRun& run, EndCause cause, const HoldEvents& hold_events) {
  run.cause = cli::RowOf(cause).name;
  if (cause != EndCause::kReleaseRequested) return;
  run.asked_by = hold_events.release_request()->by;
  run.asked_reason = hold_events.release_request()->reason;
}

RunningCommand::RunningCommand(RunContext& context, process::Supervisor& supervisor,
                               std::string locks, Details details)
    : context_(context),
      supervisor_(supervisor),
      locks_(std::move(locks)),
      details_(std::move(details)) {
  context_.loop.Add(alarm_);
}

void RunningCommand::FollowAncestors(TimePoint own_lease_end, Duration own_grace) {
  const AncestorLocks& ancestors = context_.ancestors;
  if (ancestors.empty()) return;
  supervisor_.SetLease(std::min(own_lease_end, ancestors.lease_end()),
                       std::min(own_grace, ancestors.GraceFor(context_.options.kill_after)));
  // Once the tree has ended, the guard closes the links, and nothing can be lost any longer.
  if (ancestors.is_lost() && !supervisor_.is_over()) {
    OnLossOf(ancestors.DisplayPath(), EndCause::kOuter);
  }
}

void RunningCommand::PublishProgress() {
  if (supervisor_.cause() == EndCause::kLeaseRanOut) PublishLoss(locks_, EndCause::kLeaseRanOut);
  if (supervisor_.cause() == EndCause::kOuter) {
    PublishLoss(context_.ancestors.DisplayPath(), EndCause::kOuter);
  }
  if (supervisor_.cause() == EndCause::kRunTooLong && !std::exchange(is_too_long_, true)) {
    SetReason(cli::CauseText(EndCause::kRunTooLong, locks_, {.limit = *context_.options.max_run}));
  }
  if (!reason_.empty() && supervisor_.has_sent_stop() && context_.clock.Now() >= report_at_) {
    context_.report.Error(std::exchange(reason_, "") + "; " + FateOfCommand(cli::Fate::kSentStop));
    has_sent_stop_ = true;
  }
  if (const auto awaited = supervisor_.TakeAwaited(); awaited && !supervisor_.is_over()) {
    ReportAwaited(*awaited);
  }
  if (start_published_ || !supervisor_.has_started()) return;
  start_published_ = true;
  context_.events.Publish(
      cli::StartedEvent{context_.options.command.front(), supervisor_.command_pid()});
}

void RunningCommand::ReportAwaited(const process::Supervisor::Awaited& awaited) {
  if (!awaited.is_survivor) return context_.report.Awaited(awaited.process, awaited.more);
  if (!reason_.empty()) {
    const bool was_sent = supervisor_.has_sent_stop();
    const cli::Fate fate = was_sent ? cli::Fate::kSentStop : cli::Fate::kUnsignalled;
    context_.report.Error(std::exchange(reason_, "") + "; " + FateOfCommand(fate));
    has_sent_stop_ = was_sent;
  }
  context_.report.AwaitedSurvivor(locks_, awaited.process, awaited.more);
}

void RunningCommand::OnLoss(EndCause loss) { OnLossOf(locks_, loss); }

void RunningCommand::OnLossOf(const std::string& locks, EndCause loss) {
  PublishLoss(locks, loss);
  EndsCommand(loss) ? supervisor_.End(loss) : supervisor_.RecordLoss();
}

/// With --on-lost warn, only the loss of an outer lock ends the command: the outer zklock holds
/// that lock until this command has ended.
bool RunningCommand::EndsCommand(EndCause loss) const {
  return context_.options.on_lost == cli::OnLost::kStop || loss == EndCause::kOuter;
}

void RunningCommand::PublishLoss(const std::string& locks, EndCause loss) {
  // With --on-lost warn, the loss of an outer lock may follow that of our own.
  if (loss_ && (EndsCommand(*loss_) || !EndsCommand(loss))) return;
  loss_ = loss;
  const cli::CauseDetails details = details_ ? details_(loss) : cli::CauseDetails{};
  context_.events.Publish(cli::LostEvent{loss, details});
  SetReason(cli::CauseText(loss, locks, details));
  const bool continues = !EndsCommand(loss) && loss != EndCause::kLeaseRanOut &&
                         !supervisor_.cause() && supervisor_.ended() == nullptr;
  if (!continues) return;
  context_.report.Error(std::exchange(reason_, "") + "; " + FateOfCommand(cli::Fate::kContinues));
}

void RunningCommand::SetReason(std::string reason) {
  if (supervisor_.ended() != nullptr && supervisor_.has_started()) {
    context_.report.Error(reason + "; " + FateOfCommand(FateAtEnd()));
  } else if (reason_.empty() && !has_sent_stop_) {
    reason_ = std::move(reason);
    report_at_ = context_.clock.Now() + kPromptEnd;
    alarm_.Set(report_at_);
  } else {
    context_.report.Error(reason);  // the command is already being ended for another reason
  }
}

std::string RunningCommand::FateOfCommand(cli::Fate fate) const {
  return cli::FateText(fate, context_.options.command.front(), context_.options.label,
                       context_.options.stop_signal, supervisor_.had_ended());
}

cli::Fate RunningCommand::FateAtEnd() const {
  if (!supervisor_.has_started()) return cli::Fate::kNotBegun;
  const process::Ended& ended = *supervisor_.ended();
  if (ended.was_refused) return cli::Fate::kUnsignalled;
  if (ended.got_kill) return ended.got_stop ? cli::Fate::kKilledAfter : cli::Fate::kKilled;
  return ended.got_stop ? cli::Fate::kStopped : cli::Fate::kHadEnded;
}

void RunningCommand::OnReleaseRequest(const lock::ReleaseRequest& request) {
  if (std::exchange(has_request_, true)) return;
  constexpr EndCause kCause = EndCause::kReleaseRequested;
  SetReason(cli::CauseText(kCause, locks_, {.by = cli::AskerText(request)}));
  supervisor_.End(kCause);
}

void RunningCommand::HandleSignals(TimePoint own_lease_end) {
  // Signals that arrive now are for the runs that the command left behind.
  if (supervisor_.is_over()) return;
  supervisor_.ReadsSignals();
  while (const auto signal = context_.signals.Next()) {
    const bool already_received = signal->from_terminal && supervisor_.IsInOurGroup();
    if (already_received || supervisor_.IsFromCommand(signal->sender)) continue;
    signal->from_terminal ? supervisor_.ForwardFromTerminal(signal->number)
                          : supervisor_.Forward(signal->number);
  }
  // The command may ignore a TSTP, or act on it later: zklock suspends itself only once the command
  // is suspended.
  if (const auto suspended_by = supervisor_.TakeSuspension()) {
    const TimePoint lease_end = std::min(own_lease_end, context_.ancestors.lease_end());
    if (process::HasJobControl() && !loss_) ReportSuspension(lease_end);
    supervisor_.SuspendWithCommand(context_.signals, *suspended_by);
  }
}

void RunningCommand::ReportSuspension(TimePoint lease_end) {
  const TimePoint now = context_.clock.Now();
  const bool is_warned = context_.options.on_lost == cli::OnLost::kWarn;
  const TimePoint run_end = supervisor_.run_end();
  if (lease_end != kNever) {
    using enum cli::Report::Suspended;
    context_.report.Suspending(locks_, lease_end - now, run_end - now,
                               is_warned ? kCommandUnderWarn : kCommand);
  } else if (run_end != kNever) {  // under a reservation, no lease runs out
    context_.report.SuspendingReserved(run_end - now);
  }
}

void RunningCommand::PublishEnd() {
  ended_ = *supervisor_.ended();
  context_.signals.SetCommandEnd(ended_.wait_status);
  PublishProgress();
  if (!supervisor_.has_started()) return;
  const bool is_contained = std::holds_alternative<std::string>(supervisor_.containment());
  const int sent = ended_.got_kill ? SIGKILL : ended_.got_stop ? context_.options.stop_signal : 0;
  context_.events.Publish(cli::ExitedEvent{ended_.wait_status, is_contained, sent});
}

EndCause RunningCommand::cause() const {
  return supervisor_.cause().value_or(loss_.value_or(EndCause::kItself));
}

std::optional<cli::RunEnd> RunningCommand::EndIfLostBeforeStart(cli::EndReason reason) const {
  const bool is_lost = IsLoss(cause()) || cause() == EndCause::kReleaseRequested;
  if (supervisor_.has_started() || !is_lost) return std::nullopt;
  cli::RunEnd end =
      cli::EndWithStatus(context_.options.conflict_exit_code, reason,
                         cause() == EndCause::kOuter ? context_.ancestors.DisplayPath() : locks_);
  // `reason_` is more exact, unless the start may count or it has already been reported.
  if (reason == cli::EndReason::kLostBeforeRun && !reason_.empty()) {
    end.message = reason_ + "; " + FateOfCommand(cli::Fate::kNotBegun);
  }
  return end;
}

int RunningCommand::Status() const {
  return cli::EndStatus(cli::RowOf(cause()).reason, process::ShellStatus(ended_.wait_status));
}

void RunningCommand::ReportEnd() {
  if (!reason_.empty()) {
    context_.report.Error(std::exchange(reason_, "") + "; " + FateOfCommand(FateAtEnd()));
  } else if (has_sent_stop_) {
    context_.report.Error(FateOfCommand(FateAtEnd()));
  }
  for (const auto& survivor : ended_.survivors) context_.report.Survivor(survivor);
  for (const auto& process : ended_.left_behind) context_.report.LeftBehind(process);
  if (ended_.guard_failed) {
    context_.report.Error(cli::CauseText(EndCause::kGuardFailed, locks_));
  }
}

}  // namespace zklock::commands
