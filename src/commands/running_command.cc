#include "commands/running_command.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "cli/end_reason.h"
#include "cli/report_reasons.h"
#include "process/ancestry.h"

namespace zklock::commands {

int CannotExecute(RunContext& context, process::ExecFailed failed) {
  context.report.CannotExecute(context.options.command.front(), failed);
  return process::ExitStatusOf(failed);
}

void RunningCommand::FollowAncestors(TimePoint own_lease_end, Duration own_grace) {
  const AncestorLocks& ancestors = context_.ancestors;
  if (ancestors.empty()) return;
  supervisor_.SetLease(std::min(own_lease_end, ancestors.lease_end()),
                       std::min(own_grace, ancestors.GraceFor(context_.options.kill_after)));
  if (ancestors.is_lost()) OnLossOf(ancestors.DisplayPath(), EndCause::kOuter);
}

void RunningCommand::PublishProgress() {
  if (supervisor_.cause() == EndCause::kLeaseRanOut) PublishLoss(locks_, EndCause::kLeaseRanOut);
  if (start_published_ || !supervisor_.has_started()) return;
  start_published_ = true;
  context_.events.Publish(
      cli::StartedEvent{context_.options.command.front(), supervisor_.command_pid()});
}

void RunningCommand::OnLoss(EndCause loss) { OnLossOf(locks_, loss); }

void RunningCommand::OnLossOf(const std::string& locks, EndCause loss) {
  PublishLoss(locks, loss);
  if (context_.options.on_lost == cli::OnLost::kStop) supervisor_.End(loss);
}

void RunningCommand::PublishLoss(const std::string& locks, EndCause loss) {
  if (loss_) return;
  loss_ = loss;
  context_.events.Publish(cli::LostEvent{locks, loss, context_.options.on_lost});
}

void RunningCommand::OnReleaseRequest(const lock::ReleaseRequest& request) {
  if (std::exchange(request_reported_, true)) return;
  constexpr EndCause kCause = EndCause::kReleaseRequested;
  context_.report.Error(cli::CauseText(kCause, locks_, cli::AskerText(request)));
  supervisor_.End(kCause);
}

void RunningCommand::PassSignals(const std::function<void()>& before_suspension) {
  while (const auto signal = context_.signals.Next()) {
    // The terminal sends its signals to the whole process group, to the command too.
    if (signal->from_terminal || supervisor_.IsFromCommand(signal->sender)) continue;
    supervisor_.Forward(signal->number);
  }
  // The command may ignore a TSTP, or act on it later: zklock suspends itself once it is suspended.
  if (const auto suspended_by = supervisor_.TakeSuspension()) {
    if (process::HasJobControl()) before_suspension();
    supervisor_.SuspendWithCommand(context_.signals, *suspended_by);
  }
}

void RunningCommand::PublishEnd() {
  ended_ = *supervisor_.ended();
  context_.signals.SetCommandEnd(ended_.wait_status);
  PublishProgress();
  const bool is_contained = std::holds_alternative<std::string>(supervisor_.containment());
  context_.events.Publish(cli::ExitedEvent{ended_.wait_status, is_contained});
}

EndCause RunningCommand::cause() const {
  return supervisor_.cause().value_or(loss_.value_or(EndCause::kItself));
}

int RunningCommand::Status() const {
  return cli::EndStatus(cli::RowOf(cause()).reason, process::ShellStatus(ended_.wait_status));
}

void RunningCommand::ReportProcesses() const {
  for (const auto& survivor : ended_.survivors) context_.report.Survivor(survivor);
  for (const auto& process : ended_.left_behind) context_.report.LeftBehind(process);
  if (ended_.guard_failed) {
    context_.report.Error(cli::CauseText(EndCause::kGuardFailed, locks_, ""));
  }
}

}  // namespace zklock::commands
