#include "commands/run/locked_run.h"

#include <algorithm>
#include <csignal>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/exit_status.h"
#include "cli/reports/report_reasons.h"
#include "cli/text/run_messages.h"
#include "commands/nesting/run_metadata.h"
#include "commands/run/lease_first.h"
#include "commands/run/recorded_runs.h"
#include "commands/run/running_command.h"
#include "commands/session/console.h"
#include "commands/session/event_broadcaster.h"
#include "lock/hold/hold.h"
#include "process/loop/alarm.h"
#include "process/loop/descriptors.h"
#include "process/nesting/nesting_server.h"
#include "protocol/lease.h"

namespace zklock::commands {
namespace {

using cli::EndReason;

/// A run from the moment its locks are held to their release. A run always ends in this order:
/// stop, reap, release, close.
class LockedRun {
 public:
  LockedRun(RunContext& context, HeldLocks locks, std::unique_ptr<PreforkedCommand> command)
      : context_(context),
        locks_(std::move(locks)),
        display_path_(locks_.DisplayPath()),
        command_(std::move(command)),
        hold_events_(context_.events, session(), display_path_),
        hold_(
            session(), context_.clock, locks_.tickets, context_.options.kill_after,
            [this](const lock::HoldEvent& event) { hold_events_.OnEvent(event); }, locks_.passed),
        recorded_runs_(context_, *locks_.session_driver, locks_.tickets) {}

  int Execute() {
    if (const auto refusal = recorded_runs_.Check(hold_)) {
      const auto unconfirmed = CloseSession();
      return EndBeforeStart(refusal(), unconfirmed);
    }
    const TimePoint began = context_.clock.Now();
    if (const auto signal = BeginCommand()) {
      const auto unconfirmed = CloseSession();
      if (*signal != kNoSignal) {
        return EndBeforeStart(cli::InterruptedEnd(display_path_, *signal, unconfirmed),
                              unconfirmed);
      }
      return EndBeforeStart(cli::EndWithStatus(context_.options.conflict_exit_code, ReasonIfLost(),
                                               context_.ancestors.DisplayPath()),
                            unconfirmed);
    }
    Supervise(began);
    if (const auto* failed = command_->supervisor().exec_failed()) {
      Release({EndReason::kNotExecuted, process::ExitStatusOf(*failed)});
      return CannotExecute(context_, *failed, command_->long_variable());
    }
    if (const auto lost = running_->EndIfLostBeforeStart(ReasonIfLost())) {
      return EndBeforeStart(*lost, CloseSession());
    }
    return Finish(began);
  }

 private:
  [[nodiscard]] zookeeper::Session& session() const { return locks_.session_driver->session(); }

  /// Like RunContext::End().
  int EndBeforeStart(const cli::RunEnd& end, std::optional<Duration> unconfirmed) {
    const int status = context_.End(display_path_, end, unconfirmed);
    if (recorded_runs_.start_may_count() && end.reason != EndReason::kLostStarting) {
      context_.report.Error(cli::message::kStartMayCount, display_path_);
    }
    return status;
  }

  /// Returns the reason if the lock is lost before the command is executed.
  [[nodiscard]] EndReason ReasonIfLost() const {
    return recorded_runs_.start_may_count() ? EndReason::kLostStarting : EndReason::kLostBeforeRun;
  }

  static constexpr int kNoSignal = 0;
  /// Returns the signal that arrived before the command could begin, kNoSignal if an outer lock was
  /// lost before that, or none if the command began.
  std::optional<int> BeginCommand() {
    try {
      command_->FinishForks(session(), std::min(hold_.lease_end(), context_.ancestors.lease_end()));
      process::LeaveWorkingDirectory();  // the command has been forked, and keeps its own
      // A signal that is pending now arrived before there was a command to receive it too.
      if (const auto signal = TakeEndingSignal(context_.signals)) return signal;
      context_.loop.RunReady();
      if (context_.ancestors.is_lost()) return kNoSignal;
      const process::Identity& self = context_.Self();
      nested_.emplace(socket_, process::ProcessId{self.pid, self.start_time},
                      [this](int connection) { command_->supervisor().AddNestedRun(connection); });
      std::vector<std::string> nodes;
      for (const lock::Ticket& ticket : locks_.tickets) nodes.push_back(ticket.path);
      nested_->Open(nodes, NestingLease());
      running_.emplace(context_, command_->supervisor(), display_path_,
                       [this](EndCause cause) { return DetailsOf(cause); });
      command_->Begin(EnvironmentFor(locks_.tickets, context_.ancestors.tickets(), self, socket_));
      return std::nullopt;
    } catch (const std::system_error&) {
      // Others must not wait for a lock that is not used.
      Release({EndReason::kNotExecuted, kExitSystem});
      throw;
    }
  }

  void Supervise(TimePoint began) {
    process::Supervisor& supervisor = command_->supervisor();
    // With ancestors' locks, RunningCommand::FollowAncestors() sets the lease.
    if (context_.ancestors.empty()) {
      hold_events_.SetLeaseSink([&supervisor](TimePoint lease_end, Duration grace) {
        supervisor.SetLease(lease_end, grace);
      });
    }
    const LeaseFirst order(context_.loop, session(),
                           {&hold_, &supervisor, &*nested_, &recorded_runs_.source()});
    while (!supervisor.is_over()) {
      context_.loop.RunOnce();
      nested_->SetLease(NestingLease());
      running_->FollowAncestors(hold_.lease_end(), hold_.grace());
      running_->PublishProgress();
      if (supervisor.has_started()) recorded_runs_.Begin(began);
      recorded_runs_.ReportUnkept();
      EndIfLostOrAsked();
      running_->HandleSignals(hold_.lease_end());
    }
  }

  /// After a loss or a request for the release, ends nested runs and the command. After a loss,
  /// --on-lost may let the command continue.
  void EndIfLostOrAsked() {
    const auto& request = hold_events_.release_request();
    const bool is_asked = request && !request->forced;
    if (hold_.loss() || is_asked) nested_->End();
    if (hold_.loss()) running_->OnLoss(*hold_.loss());
    if (is_asked) running_->OnReleaseRequest(*request);
  }

  /// Returns the details of a loss that has just been found.
  [[nodiscard]] cli::CauseDetails DetailsOf(EndCause cause) {
    // An ancestor's lease may have ended first.
    const bool is_ours =
        cause == EndCause::kRemoved || context_.ancestors.lease_end() >= hold_.lease_end();
    return is_ours ? DetailsOfLoss(cause, hold_, hold_events_, *locks_.session_driver)
                   : cli::CauseDetails{};
  }

  /// Call when the command has been reaped. Returns the exit status.
  int Finish(TimePoint began) {
    running_->PublishEnd();
    const TimePoint reaped = context_.clock.Now();
    WaitForNestedRuns();
    // The command and all nested runs have ended, or the lease has: only now is the lock released.
    const int status = running_->Status();
    const cli::CauseRow& row = cli::RowOf(running_->cause());
    const bool is_recorded = row.is_recorded && !hold_.loss();
    std::size_t releases = 0;
    if (is_recorded) {
      lock::FinishedRun run{
          .duration = reaped - began, .status = status, .host = context_.Self().host};
      SetCause(run, running_->cause(), hold_events_);
      recorded_runs_.End(hold_, began, run);
      releases = hold_.Release(run);
    }
    Release({row.reason, status}, releases);
    if (is_recorded) recorded_runs_.GiveUpRest();
    recorded_runs_.ReportUnkept();
    running_->ReportEnd();
    return status;
  }

  /// Keeps the lock until nested runs, which may outlive the command, have also ended (by
  /// themselves or because they were told to), but no longer than the lease lasts.
  void WaitForNestedRuns() {
    nested_->Drain();
    const bool has_ended_itself = running_->cause() == EndCause::kItself;
    if (!has_ended_itself) nested_->End();
    const std::vector<pid_t> runs = nested_->Runs();
    if (runs.empty()) return;
    // Processes of nested runs do not count as left behind: each nested zklock reports its own.
    std::erase_if(running_->ended().left_behind,
                  [&](const process::Survivor& one) { return nested_->IsBelowRun(one.pid); });
    if (has_ended_itself) {
      context_.events.Publish(cli::NestedRunsLeftEvent{display_path_, runs.size(), runs.front()});
    }
    process::Alarm alarm;
    const LeaseFirst order(context_.loop, session(), {&hold_, &*nested_, &alarm});
    TimePoint run_end = command_->supervisor().run_end();
    bool is_over = false;  // whether the lease is over for nested runs
    while (!nested_->Runs().empty() && context_.clock.Now() < hold_.lease_end()) {
      alarm.Set(std::min(is_over ? hold_.lease_end() : NestedStopTime(), run_end));
      context_.loop.RunOnce();
      // From this time on, the nested runs end by themselves; the guard has finished its duty.
      if (!is_over && context_.clock.Now() >= NestedStopTime()) {
        is_over = true;
        running_->OnLoss(EndCause::kLeaseRanOut);
        nested_->End();
      }
      if (context_.clock.Now() >= run_end) {
        run_end = kNever;
        command_->supervisor().End(EndCause::kRunTooLong);
        running_->PublishProgress();
        nested_->End();
      }
      nested_->SetLease(NestingLease());
      EndIfLostOrAsked();
      if (context_.ancestors.is_lost()) nested_->End();
      EndNestedRunsBySignal();
    }
  }

  /// Returns the earliest stop time that a nested run may have: each has its own --kill-after.
  [[nodiscard]] TimePoint NestedStopTime() const {
    const Duration longest = protocol::GraceFor(Duration::max(), session().lease().timeout());
    return protocol::StopTime(hold_.lease_end(), longest);
  }

  void EndNestedRunsBySignal() {
    const auto signal = TakeEndingSignal(context_.signals, [this](const auto& suspend) {
      const TimePoint now = context_.clock.Now();
      context_.report.Suspending(display_path_, hold_.lease_end() - now, kNever - now,
                                 cli::Report::Suspended::kNestedRuns);
      suspend();
    });
    if (signal && *signal != SIGUSR1 && *signal != SIGUSR2) nested_->End();
  }

  [[nodiscard]] protocol::NestingLease NestingLease() {
    return {hold_.lease_end(), session().lease().timeout()};
  }

  /// Closes the session, then publishes and reports the end. `releases`: from Hold::Release().
  /// Returns the exit status.
  int Release(const cli::RunEnd& end, std::size_t releases = 0) {
    return context_.End(display_path_, end, CloseSession(releases));
  }

  std::optional<Duration> CloseSession(std::size_t releases = 0) {
    context_.loop.Remove(context_.signals);  // nothing reads signals in this loop
    return locks_.session_driver->Close(releases);
  }

  RunContext& context_;
  const HeldLocks locks_;
  const std::string display_path_;
  const std::unique_ptr<PreforkedCommand> command_;  // ends before the session does
  HoldEvents hold_events_;
  lock::Hold hold_;
  RecordedRuns recorded_runs_;
  std::optional<RunningCommand> running_;
  // The socket on which nested runs ask to run under our locks. It is open until the locks are
  // released.
  const std::string socket_ = "zklock-" + process::MakeUuid();
  std::optional<process::NestingServer> nested_;
};

}  // namespace

int RunUnderLocks(RunContext& context, HeldLocks locks, std::unique_ptr<PreforkedCommand> command) {
  return LockedRun(context, std::move(locks), std::move(command)).Execute();
}

}  // namespace zklock::commands
