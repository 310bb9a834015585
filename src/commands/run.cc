#include "commands/run.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "base/exit_status.h"
#include "base/mutation.h"
#include "cli/duration.h"
#include "cli/event_writer.h"
#include "cli/printable.h"
#include "commands/ancestor_locks.h"
#include "commands/console.h"
#include "commands/event_broadcaster.h"
#include "commands/failure_end.h"
#include "commands/keeper.h"
#include "commands/nesting.h"
#include "commands/preforked_command.h"
#include "commands/progress.h"
#include "commands/queue_wait.h"
#include "commands/run_metadata.h"
#include "commands/session_driver.h"
#include "lock/acquire_set.h"
#include "lock/hold.h"
#include "lock/last_run.h"
#include "process/ancestry.h"
#include "process/descriptors.h"
#include "process/event_loop.h"
#include "process/executable.h"
#include "process/identity.h"
#include "process/nesting_server.h"
#include "process/process_tree.h"
#include "process/supervisor.h"
#include "process/waker.h"
#include "protocol/lease.h"

namespace zklock::commands {
namespace {

using cli::EndReason;
using cli::EndRun;
using cli::EndWithStatus;

/// One run, from the queue to the release.
class LockedRun {
 public:
  LockedRun(const cli::RunOptions& options, process::Signals& signals, process::MessageSink& sink)
      : options_(options),
        signals_(signals),
        sink_(sink),
        report_(sink, options.verbosity),
        events_(OpenEventsFor(options)),
        steps_(Listeners()),
        wanted_(options.locks),
        command_(options, signals, outer_) {
    signals_.AddWindowChanges();
    loop_.Add(signals_);
    loop_.Add(sink_);
    if (events_) loop_.Add(*events_);
  }

  int Execute() {
    const int status = FindAndRun();
    if (events_) events_->Finish();
    return status;
  }

 private:
  int FindAndRun() {
    const auto executable =
        process::FindExecutable(options_.command.front(), GetEnvironment("PATH"));
    if (const auto* failed = std::get_if<process::ExecFailed>(&executable)) {
      return CannotExecute(*failed);
    }
    command_.SetExecutable(std::get<std::string>(executable));
    process::RequireProcessTree();  // what cannot be ended is not begun, nor queued for
    if (const auto status =
            RemoveInheritedLocks(options_, wanted_, outer_, getppid(), signals_, report_, steps_)) {
      return *status;
    }
    outer_.AddTo(loop_);
    while (!wanted_.empty()) {
      session_driver_.emplace(loop_, options_.server, clock_);
      loop_.RunReady();  // a server has a session to make while we find out who we are
      if (FirstContenderMayHold()) command_.PrepareEarly(session_driver_->session());
      self_ = process::ThisProcess();
      QueueWait waiting({options_, signals_, sink_, report_, steps_, loop_, *session_driver_,
                         clock_, outer_,
                         [this](bool is_about_to_hold) {
                           command_.OnProgress(is_about_to_hold, session_driver_->session());
                         },
                         [this] { command_.OnJoining(session_driver_->session()); }});
      const WaitOutcome outcome = waiting.Run(
          // The shell that holds may have become this zklock, by exec.
          RequestsFor(options_, wanted_, self_, getpid(), passed_over_,
                      [this](auto mode) { return ContenderDataFor(options_, mode, self_); }),
          [this] { return outer_.is_lost(); });
      if (waiting.has_all()) {
        tickets_ = waiting.tickets();
        passed_ = waiting.passed();
        return RunUnder();
      }
      if (const auto* found = std::get_if<KeeperFound>(&outcome)) {
        (void)session_driver_->Close();
        command_.Discard();
        if (const auto status = GoOnUnder(*found)) return *status;
        continue;
      }
      const bool confirmed = CloseSession();
      return End(waiting.End(outcome), confirmed);
    }
    return RunNested();
  }

  /// Of several LOCKs, and behind a turnstile, it is the last one. A `try` that finds the lock busy
  /// creates none, and two forks would be a large part of what it costs.
  [[nodiscard]] bool FirstContenderMayHold() const {
    return wanted_.size() == 1 && !options_.permits && !options_.try_only;
  }
  [[nodiscard]] lock::LockName NameOf(const cli::WantedLock& wanted) const {
    return lock::LockName::In(options_.server.servers.chroot, wanted.path);
  }
  /// The LOCKs to be queued for, as messages name them.
  [[nodiscard]] std::string DisplayPath() const {
    std::string shown;
    for (const cli::WantedLock& wanted : wanted_) {
      shown += (shown.empty() ? "" : ", ") + wanted.path;
    }
    return shown;
  }

  /// Under the locks of outer zklocks alone.
  int RunNested() {
    self_ = process::ThisProcess();
    command_.AwaitNested();
    process::LeaveWorkingDirectory();
    if (const auto signal = TakeEndingSignal(signals_)) return kExitSignalBase + *signal;
    process::Supervisor& supervisor = command_.supervisor();
    supervisor.Begin(EnvironmentFor({}, outer_.tickets(), self_, socket_));
    loop_.Add(supervisor);
    while (!supervisor.is_over()) {
      loop_.RunOnce();
      HeedOuter(supervisor, kNever, options_.kill_after);
      TellOfStart(supervisor);
      PassSignalsOn(supervisor, [&] {
        report_.Stopping(outer_.DisplayPath(), outer_.lease_end() - clock_.Now());
      });
    }
    loop_.Remove(supervisor);
    if (const auto& failed = supervisor.exec_failed()) return CannotExecute(*failed);
    const process::Ended ended = Reaped(supervisor, outer_.DisplayPath());
    TellOfProcesses(ended);
    return StatusOf(ended);
  }

  /// What runs under outer locks ends with them, and before their leases and our own.
  void HeedOuter(process::Supervisor& supervisor, TimePoint own_lease_end, Duration own_grace) {
    if (outer_.empty()) return;
    supervisor.SetLease(
        std::min(own_lease_end, outer_.lease_end()),
        std::min(own_grace, protocol::GraceFor(options_.kill_after, outer_.session_timeout())));
    if (outer_.is_lost() && !std::exchange(loss_told_, true)) {
      steps_.Publish(cli::LostEvent{outer_.DisplayPath(), lock::Loss::kOuter, options_.on_lost});
      if (options_.on_lost == cli::OnLost::kStop) supervisor.End();
    }
  }

  /// A keeper may hold the LOCK for a shell above us. The exit status, if the run is over.
  std::optional<int> GoOnUnder(const KeeperFound& found) {
    const auto wanted = std::find_if(wanted_.begin(), wanted_.end(), [&](const auto& one) {
      return NameOf(one).path == found.holder.lock.path;
    });
    try {
      auto answer =
          GoOnUnderKeeper(found, options_, wanted->mode, self_, passed_over_, signals_, report_);
      if (const int* status = std::get_if<int>(&answer)) {
        steps_.Publish(cli::ReleasedEvent{DisplayPath(), EndReason::kInterrupted, *status});
        return *status;
      }
      auto& link = std::get<std::unique_ptr<process::NestingLink>>(answer);
      if (!link) return std::nullopt;
      loop_.Add(*link);
      outer_.Add(found.holder, std::move(link));
      steps_.Publish(cli::NestedEvent{found.holder.lock.display_path()});
      wanted_.erase(wanted);
      return std::nullopt;
    } catch (const cli::UsageError&) {
      steps_.Publish(cli::ReleasedEvent{DisplayPath(), EndReason::kUsage, kExitUsage});
      throw;
    }
  }

  int CannotExecute(process::ExecFailed failed) {
    report_.CannotExecute(options_.command.front(), failed);
    return process::ExitStatusOf(failed);
  }

  int RunUnder() {
    zookeeper::Session& session = session_driver_->session();
    const Duration timeout = session.lease().timeout();
    steps_.WarnOfShortSession(timeout);
    for (const lock::Ticket& ticket : tickets_) steps_.Publish(cli::AcquiredEvent{ticket});

    HoldEvents hold_events(steps_, session, DisplayPath());
    lock::Hold hold(session, clock_, tickets_, options_.kill_after, hold_events, passed_);
    std::optional<lock::LastRun> last_run;
    if (options_.min_interval) {
      last_run.emplace(session, tickets_);
      if (const auto status = RefuseIfRecent(*last_run, hold)) return *status;
    }
    const TimePoint began = clock_.Now();
    if (const auto status = Begin(hold)) return *status;
    process::Supervisor& supervisor = command_.supervisor();
    if (outer_.empty()) hold_events.SetSupervisor(&supervisor);
    Supervise(hold, hold_events, supervisor);
    if (const auto& failed = supervisor.exec_failed()) {
      Release({EndReason::kNotExecuted, process::ExitStatusOf(*failed)});
      return CannotExecute(*failed);
    }
    process::Ended ended = Reaped(supervisor, DisplayPath());
    const TimePoint reaped = clock_.Now();
    AwaitNestedRuns(hold, hold_events, ended);
    // Stop, reap, release, close: the command and all nested runs have been reaped, only now is
    // the lock released.
    const int status = StatusOf(ended);
    std::size_t releases = 0;
    if (!WasLost(ended)) {
      if (last_run && status == 0) Record(*last_run, hold, began);
      releases = hold.Release({.ran = reaped - began, .status = status, .host = self_.host});
    }
    Release({WasLost(ended) ? EndReason::kLost : EndReason::kEnded, status}, releases);
    TellOfProcesses(ended);
    return status;
  }

  /// The exit status, if the command does not begin.
  std::optional<int> Begin(const lock::Hold& hold) {
    try {
      command_.Await(session_driver_->session(), std::min(hold.lease_end(), outer_.lease_end()));
      process::LeaveWorkingDirectory();  // the command is forked, and keeps it
      // One from before the command was there to get it, too.
      if (const auto signal = TakeEndingSignal(signals_)) {
        return Release(cli::InterruptedEnd(DisplayPath(), *signal));
      }
      nested_.emplace(socket_, process::ProcessId{self_.pid, self_.start_time});
      std::vector<std::string> nodes;
      for (const lock::Ticket& ticket : tickets_) nodes.push_back(ticket.path);
      nested_->Open(nodes, LeaseOf(hold));
      command_.supervisor().Begin(EnvironmentFor(tickets_, outer_.tickets(), self_, socket_));
      return std::nullopt;
    } catch (const std::system_error&) {
      // Nobody is to wait for a lock that nobody uses.
      Release({EndReason::kNotExecuted, kExitSystem});
      throw;
    }
  }

  protocol::NestingLease LeaseOf(const lock::Hold& hold) {
    return {hold.lease_end(), session_driver_->session().lease().timeout()};
  }

  /// --min-interval: the exit status, if the command is not to run.
  std::optional<int> RefuseIfRecent(lock::LastRun& last_run, lock::Hold& hold) {
    std::optional<int> signal;
    const bool is_known = Finish(last_run, hold, signal);
    if (signal) return Release(cli::InterruptedEnd(DisplayPath(), *signal));
    const int conflict = options_.conflict_exit_code;
    if (!is_known) {
      return Release(EndWithStatus(conflict, EndReason::kLostBeforeRun, DisplayPath()));
    }
    if (const auto& unknown = last_run.unknown()) {
      // It may have run a moment ago.
      const bool confirmed = CloseSession();
      const FailureEnd end(*session_driver_, options_.server.connect_timeout, DisplayPath());
      return End(std::visit(end, *unknown), confirmed);
    }
    if (!last_run.newest()) return std::nullopt;
    const auto& [lock, success] = *last_run.newest();
    const Duration ago = tickets_.front().ServerTimeAt(clock_.Now()) - success.began;
    if (ago >= *options_.min_interval) return std::nullopt;
    return Release(EndWithStatus(conflict, EndReason::kTooRecent, lock,
                                 cli::Printable(success.host), cli::FormatDuration(ago),
                                 cli::FormatDuration(*options_.min_interval)));
  }

  /// While the lock is still held, until its lease ends, and if no signal is in a hurry: a success
  /// that is not written down may run again too soon.
  void Record(lock::LastRun& last_run, lock::Hold& hold, TimePoint began) {
    last_run.Record(began, self_.host);
    std::optional<int> signal;
    if (!Finish(last_run, hold, signal) || !last_run.refused().empty()) {
      report_.NotRecorded(DisplayPath());
    }
  }

  /// False where the lock was lost over it, or a `signal` that ends came first.
  bool Finish(lock::LastRun& work, lock::Hold& hold, std::optional<int>& signal) {
    loop_.Add(hold);
    loop_.Add(work);
    while (!work.IsDone() && !hold.loss() && !signal) {
      loop_.RunOnce();
      signal = TakeEndingSignal(signals_);
    }
    loop_.Remove(work);
    loop_.Remove(hold);
    return work.IsDone() && !hold.loss();
  }

  void Supervise(lock::Hold& hold, const HoldEvents& hold_events, process::Supervisor& supervisor) {
    // After every wake-up the lease is looked at first.
    loop_.Remove(session_driver_->session());
    loop_.Add(hold);
    loop_.Add(supervisor);
    loop_.Add(*nested_);
    loop_.Add(session_driver_->session());
    while (!supervisor.is_over()) {
      loop_.RunOnce();
      nested_->SetLease(LeaseOf(hold));
      HeedOuter(supervisor, hold.lease_end(), hold.grace());
      TellOfStart(supervisor);
      if (HeedLoss(hold) && options_.on_lost == cli::OnLost::kStop) supervisor.End();
      if (HeedRevocation(hold_events)) supervisor.End();
      PassSignalsOn(supervisor, [&] {
        if (!hold.loss()) report_.Stopping(DisplayPath(), hold.lease_end() - clock_.Now());
      });
    }
    loop_.Remove(hold);
    loop_.Remove(*nested_);
    loop_.Remove(supervisor);
  }

  /// Nested runs end with the lock, whatever the command does. True the first time.
  bool HeedLoss(const lock::Hold& hold) {
    if (!hold.loss() || std::exchange(loss_told_, true)) return false;
    nested_->End();
    steps_.Publish(cli::LostEvent{DisplayPath(), *hold.loss(), options_.on_lost});
    return true;
  }

  bool HeedRevocation(const HoldEvents& hold_events) {
    if (!hold_events.revocation() || std::exchange(revoked_, true)) return false;
    nested_->End();
    report_.Revoked(DisplayPath(), *hold_events.revocation());
    return true;
  }

  /// What runs nested below the command may outlive it: the lock is held until that has ended too,
  /// or been ended, and no longer than the lease lasts.
  void AwaitNestedRuns(lock::Hold& hold, const HoldEvents& hold_events, process::Ended& ended) {
    nested_->Drain();
    if (WasLost(ended)) nested_->End();
    std::vector<pid_t> runs = nested_->Runs();
    if (runs.empty()) return;
    // Those are not left behind, and their own zklock tells what they leave.
    std::erase_if(ended.left_behind,
                  [&](const process::Survivor& one) { return nested_->IsBelowRun(one.pid); });
    if (!WasLost(ended))
      steps_.Publish(cli::KeptForNestedEvent{DisplayPath(), runs.size(), runs.front()});
    process::Waker alarm;
    loop_.Remove(session_driver_->session());
    loop_.Add(hold);
    loop_.Add(*nested_);
    loop_.Add(alarm);
    loop_.Add(session_driver_->session());
    while (!nested_->Runs().empty() && clock_.Now() < hold.lease_end()) {
      alarm.Set(hold.lease_end());
      loop_.RunOnce();
      nested_->SetLease(LeaseOf(hold));
      (void)HeedLoss(hold);
      (void)HeedRevocation(hold_events);
      if (outer_.is_lost()) nested_->End();
      if (const auto signal = TakeEndingSignal(signals_, [&](const auto& stop) {
            report_.Stopping(DisplayPath(), hold.lease_end() - clock_.Now());
            stop();
          })) {
        if (*signal != SIGUSR1 && *signal != SIGUSR2) nested_->End();
      }
    }
    loop_.Remove(alarm);
    loop_.Remove(*nested_);
    loop_.Remove(hold);
  }

  void TellOfStart(process::Supervisor& supervisor) {
    if (start_told_ || !supervisor.has_started()) return;
    start_told_ = true;
    steps_.Publish(cli::StartedEvent{options_.command.front(), supervisor.command_pid()});
  }

  process::Ended Reaped(const process::Supervisor& supervisor, const std::string& locks) {
    const process::Ended& ended = *supervisor.ended();
    signals_.SetCommandEnd(ended.wait_status);
    if (ended.by_order && !loss_told_ && !revoked_) steps_.Publish(cli::LeaseRanOutEvent{locks});
    steps_.Publish(cli::ExitedEvent{ended.wait_status});
    return ended;
  }

  template <typename F>
  void PassSignalsOn(process::Supervisor& supervisor, F before_stop) {
    while (const auto signal = signals_.Next()) {
      // What the terminal sends reached the command as well, as members of one process group.
      if (signal->from_terminal || supervisor.IsFromCommand(signal->sender)) continue;
      supervisor.Forward(signal->number);
      if (kMutationReleaseFirst) session_driver_->Close();
    }
    // The command may ignore what asks it to stop, or stop later: zklock follows it.
    if (const auto stop = supervisor.TakeStop()) {
      if (process::HasJobControl()) before_stop();
      supervisor.StopLikewise(signals_, *stop);
    }
  }

  /// The lock ended the command, not it the lock.
  [[nodiscard]] bool WasLost(const process::Ended& ended) const {
    return ended.by_order || loss_told_;
  }

  [[nodiscard]] int StatusOf(const process::Ended& ended) const {
    return WasLost(ended) ? kExitLost : process::ShellStatus(ended.wait_status);
  }

  void TellOfProcesses(const process::Ended& ended) {
    for (const auto& survivor : ended.survivors) report_.Survivor(survivor);
    for (const auto& process : ended.left_behind) report_.LeftBehind(process);
    if (ended.guard_failed) report_.GuardFailed();
  }

  /// Returns the exit status, as End() does.
  int Release(const cli::RunEnd& end, std::size_t releases = 0) {
    return End(end, CloseSession(releases));
  }

  bool CloseSession(std::size_t releases = 0) {
    loop_.Remove(signals_);  // nobody takes them any more
    return session_driver_->Close(releases);
  }

  /// After the session's close: no message may keep others waiting.
  int End(const cli::RunEnd& end, bool confirmed) {
    steps_.Publish(cli::ReleasedEvent{DisplayPath(), end.reason, end.status, confirmed});
    report_.Explain(end);
    return end.status;
  }

  static std::unique_ptr<cli::EventWriter> OpenEventsFor(const cli::RunOptions& options) {
    if (options.events.empty()) return nullptr;
    std::vector<std::string> locks;
    for (const cli::WantedLock& wanted : options.locks) locks.push_back(wanted.path);
    return std::make_unique<cli::EventWriter>(cli::OpenEvents(options.events, options.events_place),
                                              locks);
  }

  std::vector<cli::EventListener*> Listeners() {
    std::vector<cli::EventListener*> listeners = {&report_};
    if (events_) listeners.push_back(events_.get());
    return listeners;
  }

  const cli::RunOptions& options_;
  process::Signals& signals_;
  process::MessageSink& sink_;
  cli::Report report_;
  const std::unique_ptr<cli::EventWriter> events_;
  EventBroadcaster steps_;
  const SystemClock clock_;
  process::Identity self_;
  std::vector<cli::WantedLock> wanted_;  // by path; without what a zklock above holds for us
  process::EventLoop loop_;
  std::optional<SessionDriver> session_driver_;
  AncestorLocks outer_;  // held for us by others: we go on under them
  PassedOver passed_over_;
  PreforkedCommand command_;  // ended before the session is
  std::vector<lock::Ticket> tickets_;
  // Where others may run under our locks. It is open until the locks are released.
  const std::string socket_ = "zklock-" + process::MakeUuid();
  std::optional<process::NestingServer> nested_;
  std::vector<std::string> passed_;  // contenders of ours that are of no use any more
  bool start_told_ = false;
  bool loss_told_ = false;
  bool revoked_ = false;  // somebody has asked us to let go
};

}  // namespace

int Run(const cli::RunOptions& options, process::Signals& signals, process::MessageSink& sink) {
  if (options.hold) return HoldForOwner(options, signals, sink);
  return LockedRun(options, signals, sink).Execute();
}

}  // namespace zklock::commands
