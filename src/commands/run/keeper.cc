#include "commands/run/keeper.h"

#include <fmt/core.h>
#include <syslog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/end_cause.h"
#include "base/exit_status.h"
#include "cli/reports/end_reason.h"
#include "cli/reports/report_queue.h"
#include "cli/reports/report_reasons.h"
#include "cli/text/messages.h"
#include "cli/text/printable.h"
#include "cli/text/run_messages.h"
#include "commands/nesting/run_metadata.h"
#include "commands/run/acquire_locks.h"
#include "commands/run/lease_first.h"
#include "commands/run/recorded_runs.h"
#include "commands/run/running_command.h"
#include "commands/session/event_broadcaster.h"
#include "commands/session/run_context.h"
#include "lock/hold/hold.h"
#include "process/guard/keeper_link.h"
#include "process/guard/owner_guard.h"
#include "process/loop/alarm.h"
#include "process/loop/child.h"
#include "process/nesting/nesting_server.h"
#include "process/tree/ended.h"
#include "process/tree/owner.h"
#include "protocol/lease.h"

namespace zklock::commands {
namespace {

using process::LinkState;

// A parent with one of these names only started zklock for the shell. It is not the owner: it exits
// when zklock does, or never.
constexpr std::array<std::string_view, 6> kWrappers = {"sudo",    "doas", "su",
                                                       "runuser", "env",  "timeout"};

/// Runs the front: the zklock that the user waits for. Returns when the keeper holds the lock or
/// has ended.
int WaitForKeeper(process::KeeperFork forked, process::Signals& signals) {
  process::EventLoop loop;
  process::Alarm link(forked.link.get());
  loop.Add(signals);
  loop.Add(link);
  std::optional<int> ended_by;
  for (;;) {
    loop.RunOnce();
    while (const auto signal = signals.Next()) {
      // The terminal sends its signals to the keeper as well.
      if (!signal->from_terminal) kill(forked.keeper, signal->number);
      if (process::StopsByDefault(signal->number)) {
        signals.SuspendSelf(signal->number);
      } else if (process::EndsByDefault(signal->number)) {
        ended_by = signal->number;
      }
    }
    const LinkState message = process::ReadLink(forked.link.get());
    if (message == LinkState::kNothing) continue;
    if (message == LinkState::kMessage && !ended_by) {
      process::AcknowledgeHeld(forked.link.get());
      return kExitOk;
    }
    forked.link.Reset();  // if the keeper holds the lock, this makes it release the lock
    const int status = process::WaitFor(forked.keeper);
    return message == LinkState::kMessage ? kExitSignalBase + *ended_by
                                          : process::ShellStatus(status);
  }
}

/// Writes a message after the keeper has closed its streams. May block.
void WriteToSystemLog(const std::string& line) {
  openlog("zklock", LOG_PID, LOG_USER);
  syslog(LOG_WARNING, "%s", line.c_str());
  closelog();
}

/// The background process that holds the locks for the owner.
class Keeper {
 public:
  Keeper(RunContext& context, const process::Owner& owner, UniqueFd link)
      : context_(context),
        owner_(owner),
        link_(std::move(link)),
        link_alarm_(link_.get()),
        owner_alarm_(owner_.fd()),
        nested_(socket_, owner_.id(),
                [this](int connection) { guard_->AddNestedRun(connection); }) {
    context_.loop.Add(link_alarm_);
    context_.loop.Add(owner_alarm_);
  }

  int Execute() {
    if (owner_.HasEnded()) return kExitOk;
    locks_ = AcquireLocks(
        context_,
        {.beneficiary = owner_.id().pid,
         .contender_data =
             [this](const cli::WantedLock& wanted) {
               return KeeperDataFor(context_.options, wanted, {context_.Self(), owner_, socket_});
             },
         .is_cancelled =
             [this] {
               return owner_.HasEnded() || process::ReadLink(link_.get()) == LinkState::kClosed;
             },
         .fork_guard = [this] { ForkGuard(); }});
    if (!locks_.tickets.empty()) Hold();  // otherwise all are held for the owner already
    return kExitOk;
  }

 private:
  [[nodiscard]] zookeeper::Session& session() { return locks_.session_driver->session(); }

  void Hold() {
    // After sink.Close(), the events are no longer shown.
    HoldEvents hold_events(context_.events, session(), locks_.DisplayPath());
    lock::Hold hold(
        session(), context_.clock, locks_.tickets, context_.options.kill_after,
        [&hold_events](const lock::HoldEvent& event) { hold_events.OnEvent(event); },
        locks_.passed);
    StartGuard(hold);
    hold_events.SetLeaseSink(
        [this](TimePoint lease_end, Duration grace) { guard_->SetLease(lease_end, grace); });
    std::vector<std::string> nodes;
    nodes.reserve(locks_.tickets.size());
    for (const lock::Ticket& ticket : locks_.tickets) nodes.push_back(ticket.path);
    nested_.Open(nodes, NestingLease(hold));
    context_.sink.Close();
    process::ReportHeld(link_.get());
    const TimePoint began = context_.clock.Now();
    if (context_.options.max_run) run_end_ = After(began, *context_.options.max_run);
    RecordedRuns recorded_runs(context_, *locks_.session_driver, locks_.tickets);
    recorded_runs.Begin(began);
    try {
      Serve(hold, hold_events, recorded_runs.source());
    } catch (...) {
      // Nothing maintains the lease any longer, and this process cannot wait for answers: the guard
      // closes the session when the owner has ended.
      nested_.End();
      guard_->SignalOwner(EndCause::kAbandoned);
      throw;
    }
    hold_events.SetLeaseSink({});
    guard_->BeginClose();
    const EndCause cause = guard_->cause().value_or(EndCause::kItself);
    std::size_t releases = 0;
    if (!hold.loss() && cli::RowOf(cause).is_recorded) {
      // The owner's own status is not known.
      const bool ran_too_long = cause == EndCause::kRunTooLong;
      lock::FinishedRun run{.duration = context_.clock.Now() - began,
                            .status = ran_too_long ? kExitTooLong : kExitOk,
                            .host = context_.Self().host,
                            .has_status = ran_too_long};
      SetCause(run, cause, hold_events);
      recorded_runs.End(hold, began, run);
      releases = hold.Release(run);
    }
    (void)locks_.session_driver->Close(releases);
    // Log only now that nothing is held any longer: logging may block.
    if (!why_ended_.empty() && guard_->cause() != EndCause::kItself) LogEnd();
  }

  void LogEnd() {
    WriteToSystemLog(fmt::format(cli::message::kOwnerSignalled, why_ended_, owner_.id().pid,
                                 cli::Printable(owner_.name()),
                                 cli::SignalName(context_.options.on_lost_signal)));
  }

  /// Returns the text for the log; empty if there is nothing to log.
  [[nodiscard]] std::string TextOf(EndCause cause, const lock::Hold& hold,
                                   const HoldEvents& hold_events) {
    if (*cli::RowOf(cause).format == '\0') return "";
    if (cause == EndCause::kRunTooLong) {
      return cli::CauseText(cause, locks_.DisplayPath(), {.limit = *context_.options.max_run});
    }
    const cli::CauseDetails details =
        cause == EndCause::kReleaseRequested
            ? cli::CauseDetails{.by = cli::AskerText(*hold_events.release_request())}
            : DetailsOfLoss(cause, hold, hold_events, *locks_.session_driver);
    return cli::CauseText(cause, locks_.DisplayPath(), details);
  }

  void ForkGuard() {
    if (guard_) return;
    process::OwnerDuty duty = context_.session_for_guard.GuardDuty();
    duty.owner = &owner_;
    duty.signal = context_.options.on_lost_signal;
    guard_.emplace(std::move(duty));
  }

  void StartGuard(const lock::Hold& hold) {
    context_.session_for_guard.Set(session());
    try {
      ForkGuard();
      guard_->BeginHold(hold.lease_end(), hold.grace());
    } catch (const std::system_error&) {
      (void)locks_.session_driver->Close();  // others must not wait for a lock that is not used
      throw;
    }
  }

  void Serve(lock::Hold& hold, const HoldEvents& hold_events, EventSource& recorded_runs) {
    const LeaseFirst order(context_.loop, session(), {&hold, &*guard_, &nested_, &recorded_runs});
    context_.loop.Add(alarm_);
    while (!Advance(hold, hold_events)) {
      context_.loop.RunOnce();
      nested_.SetLease(NestingLease(hold));
      if (nested_.Runs().empty()) guard_->ForgetNestedRuns();
    }
    context_.loop.Remove(alarm_);
  }

  [[nodiscard]] protocol::NestingLease NestingLease(const lock::Hold& hold) {
    return {hold.lease_end(), session().lease().timeout()};
  }

  /// Acts on what has happened; returns whether to release the lock now. An owner that is about to
  /// lose the lock is signalled first and has its grace period to end; an owner that releases the
  /// lock is not signalled. Runs nested below the owner are told to end if the lock is lost or
  /// another process asks for its release. In any case, the keeper waits for them: if one of
  /// several locks or permits is lost, they still rely on the others.
  bool Advance(const lock::Hold& hold, const HoldEvents& hold_events) {
    process::OwnerGuard& guard = *guard_;
    const bool is_wanted = IsFrontContent() && !owner_.HasEnded() && !nested_.release_requested();
    if (!is_wanted) {
      guard.OnOwnerReleased();
      nested_.Drain();
    }
    if (owner_.HasEnded()) owner_alarm_.Set(-1);  // it stays readable
    TakeEndingSignals();
    const TimePoint now = context_.clock.Now();
    const TimePoint stop = protocol::StopTime(hold.lease_end(), hold.grace());
    if (const auto cause = WhyToEnd(hold, hold_events, now >= stop)) {
      nested_.End();
      guard.SignalOwner(*cause);
      if (why_ended_.empty()) why_ended_ = TextOf(*cause, hold, hold_events);
    }
    if (now >= hold.lease_end()) return true;
    if (guard.cause() && leave_at_ == kNever) leave_at_ = now + hold.grace();
    if ((!is_wanted || now >= leave_at_) && nested_.Runs().empty()) return true;
    TimePoint next = hold.lease_end();
    for (const TimePoint moment : {stop, leave_at_, run_end_}) {
      if (moment > now) next = std::min(next, moment);
    }
    alarm_.Set(next);
    return false;
  }

  /// Returns why the hold has to end although the owner still wants it.
  [[nodiscard]] std::optional<EndCause> WhyToEnd(const lock::Hold& hold,
                                                 const HoldEvents& hold_events,
                                                 bool lease_runs_out) const {
    if (hold.loss()) return hold.loss();
    if (context_.ancestors.is_lost()) return EndCause::kOuter;
    const auto& request = hold_events.release_request();
    if (request && !request->forced) return EndCause::kReleaseRequested;
    // The front may have received the signal as well. In that case the front closes the link
    // without reporting that the lock is held: wait for that.
    if (got_ending_signal_ && !link_) return EndCause::kSignal;
    if (context_.clock.Now() >= run_end_) return EndCause::kRunTooLong;
    if (lease_runs_out || guard_->cause() == EndCause::kLeaseRanOut) return EndCause::kLeaseRanOut;
    return std::nullopt;
  }

  /// Returns false if the front ended before it could report that the lock is held.
  bool IsFrontContent() {
    if (!link_) return true;
    const LinkState message = process::ReadLink(link_.get());
    if (message != LinkState::kNothing) link_alarm_.Set(-1);  // it would keep waking the loop
    if (message == LinkState::kMessage) link_.Reset();
    return message != LinkState::kClosed;
  }

  void TakeEndingSignals() {
    while (const auto signal = context_.signals.Next()) {
      got_ending_signal_ =
          got_ending_signal_ || (process::EndsByDefault(signal->number) &&
                                 signal->number != SIGUSR1 && signal->number != SIGUSR2);
    }
  }

  RunContext& context_;
  const process::Owner& owner_;
  UniqueFd link_;  // to the front, until it has reported that the lock is held
  process::Alarm link_alarm_;
  process::Alarm owner_alarm_;
  process::Alarm alarm_;
  // The socket on which nested runs ask to run under our locks. It is named from the start, since
  // our contenders' data contains the name.
  const std::string socket_ = "zklock-" + process::MakeUuid();
  process::NestingServer nested_;
  HeldLocks locks_;
  std::optional<process::OwnerGuard> guard_;
  bool got_ending_signal_ = false;
  std::string why_ended_;        // set once the owner is signalled
  TimePoint run_end_ = kNever;   // --max-run
  TimePoint leave_at_ = kNever;  // set once the owner has been signalled
};

}  // namespace

process::Owner FindOwner(const cli::RunOptions& options) {
  auto owner = options.owner_pid ? process::Owner::Open(static_cast<pid_t>(*options.owner_pid))
                                 : process::Owner::Parent();
  if (!owner) {
    process::RequireProcessTree();  // without /proc, no process can be found
    throw cli::UsageError(
        fmt::format(cli::message::kNoSuchProcess, options.owner_pid.value_or(getppid())),
        options.subcommand);
  }
  const bool is_wrapper = owner->id().pid == 1 || std::find(kWrappers.begin(), kWrappers.end(),
                                                            owner->name()) != kWrappers.end();
  if (!options.owner_pid && is_wrapper) {
    throw cli::UsageError(fmt::format(cli::message::kUnclearOwner, owner->name(), owner->id().pid),
                          options.subcommand);
  }
  if (owner->Signal(0) != 0) {
    throw cli::UsageError(fmt::format(cli::message::kForeignOwner, owner->id().pid),
                          options.subcommand);
  }
  return *std::move(owner);
}

int HoldForOwner(const cli::RunOptions& options, process::Signals& signals,
                 process::MessageSink& sink) {
  const process::Owner owner = FindOwner(options);
  process::KeeperFork forked = process::ForkKeeper();
  if (forked.keeper != 0) return WaitForKeeper(std::move(forked), signals);
  RunContext context(options, signals, sink);
  return Keeper(context, owner, std::move(forked.link)).Execute();
}

}  // namespace zklock::commands
