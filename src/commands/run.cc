#include "commands/run.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "base/exit_status.h"
#include "base/mutation.h"
#include "cli/contender_data.h"
#include "commands/connector.h"
#include "commands/outer.h"
#include "lock/acquire.h"
#include "lock/hold.h"
#include "process/event_loop.h"
#include "process/executable.h"
#include "process/identity.h"
#include "process/supervisor.h"
#include "protocol/held.h"
#include "protocol/lease.h"
#include "zookeeper/close_session.h"

namespace zklock::commands {
namespace {

using namespace std::chrono_literals;

/// What the wait came to: the queue's word, or a signal that ended the wait.
struct Interrupted {
  int signal_number = 0;
};
using WaitOutcome = std::variant<lock::AcquireOutcome, Interrupted>;

std::optional<std::string> GetEnvironment(const char* name) {
  const char* value = getenv(name);
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

std::string ContenderDataFor(const cli::RunOptions& options, const process::Identity& self) {
  std::string command = options.command.front();
  if (options.publish_command) {
    for (std::size_t i = 1; i < options.command.size(); ++i) command += " " + options.command[i];
  } else {
    command.erase(0, command.find_last_of('/') + 1);  // npos + 1 is 0: no slash, nothing erased
  }
  return cli::FormatContenderData({.mode = options.mode,
                                   .host = self.host,
                                   .user = self.user,
                                   .pid = self.pid,
                                   .boot_id = self.boot_id,
                                   .start_time = self.start_time,
                                   .command = command,
                                   .label = options.label});
}

/// The command's environment: ours, and what it holds.
std::vector<std::string> EnvironmentFor(const lock::Ticket& ticket, const process::Identity& self) {
  auto held = protocol::ParseHeld(GetEnvironment("ZKLOCK_HELD").value_or(""));
  held.push_back({ticket.mode, self.pid, self.start_time, ticket.path});
  const std::vector<std::pair<std::string, std::string>> added = {
      {"ZKLOCK_LOCK", ticket.lock.shown()},
      {"ZKLOCK_MODE", std::string(protocol::ModeName(ticket.mode))},
      {"ZKLOCK_NODE", ticket.shown_path()},
      {"ZKLOCK_TOKEN", std::to_string(ticket.token)},
      {"ZKLOCK_HELD", protocol::FormatHeld(held)},
  };
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    const bool replaced =
        std::any_of(added.begin(), added.end(), [&](const auto& one) { return one.first == name; });
    // Credentials are for zklock alone.
    if (!replaced && name != "ZKLOCK_AUTH") environment.push_back(text);
  }
  for (const auto& [name, value] : added) environment.push_back(name + "=" + value);
  return environment;
}

/// Says what the acquisition does on its way.
class AcquireReporter final : public lock::AcquireObserver {
 public:
  AcquireReporter(cli::Report& report, std::string lock)
      : report_(report), lock_(std::move(lock)) {}
  void OnQueued(const lock::Ticket& ticket) override { report_.Queued(ticket.shown_path()); }
  void OnWaiting(const std::string& predecessor, std::size_t ahead) override {
    report_.Waiting(lock_, predecessor, ahead);
  }
  void OnPlaceLost() override { report_.PlaceLost(lock_); }
  void OnStranger(const protocol::Stranger& stranger) override {
    report_.Stranger(lock_, stranger);
  }

 private:
  cli::Report& report_;
  std::string lock_;
};

/// Carries the lease from the hold to the guard.
class LeaseKeeper final : public lock::HoldObserver {
 public:
  LeaseKeeper(cli::Report& report, std::string lock) : report_(report), lock_(std::move(lock)) {}
  void SetSupervisor(process::Supervisor* supervisor) { supervisor_ = supervisor; }
  void OnLease(TimePoint lease_end) override {
    if (supervisor_ != nullptr) supervisor_->ExtendLease(lease_end);
  }
  void OnSuspect() override { report_.Suspect(lock_); }
  void OnConfirmed() override { report_.Confirmed(lock_); }

 private:
  cli::Report& report_;
  std::string lock_;
  process::Supervisor* supervisor_ = nullptr;
};

/// One run, from the queue to the release.
class LockedRun {
 public:
  LockedRun(const cli::RunOptions& options, process::Signals& signals, process::MessageSink& sink)
      : options_(options),
        signals_(signals),
        sink_(sink),
        report_(sink, options.verbosity),
        self_(process::ThisProcess()),
        lock_{options.server.servers.chroot + options.lock, options.server.servers.chroot} {
    loop_.Add(signals_);
    loop_.Add(sink_);
  }

  int Execute() {
    const auto executable =
        process::FindExecutable(options_.command.front(), GetEnvironment("PATH"));
    if (const auto* failed = std::get_if<process::ExecFailed>(&executable)) {
      return CannotExecute(*failed);
    }
    const Outer outer = LookForOuter(options_, lock_, signals_, report_);
    if (const auto* status = std::get_if<int>(&outer)) return *status;
    if (std::holds_alternative<HeldForUs>(outer)) {
      return RunNested(std::get<std::string>(executable));
    }
    connector_.emplace(loop_, options_.server, clock_);
    const WaitOutcome outcome = WaitForLock();
    if (const auto* interrupted = std::get_if<Interrupted>(&outcome)) {
      Release();
      report_.StoppedWhileWaiting(lock_.shown(), interrupted->signal_number);
      return kExitSignalBase + interrupted->signal_number;
    }
    const auto& decided = std::get<lock::AcquireOutcome>(outcome);
    if (const auto* acquired = std::get_if<lock::Acquired>(&decided)) {
      return RunUnder(acquired->ticket, std::get<std::string>(executable));
    }
    Release();  // first: no message may keep others waiting
    return Explain(decided);
  }

 private:
  /// Under the outer lock, and ended with it: the outer guard ends us and all that is below us.
  int RunNested(const std::string& executable) {
    report_.Nested(lock_.shown());
    std::vector<std::string> environment;
    for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
    auto started = process::Supervisor::Start({.executable = executable,
                                               .arguments = options_.command,
                                               .environment = std::move(environment),
                                               .stop_signal = options_.stop_signal,
                                               .kill_after = options_.kill_after,
                                               .descendants = options_.descendants,
                                               .when_orphaned = nullptr},
                                              signals_);
    if (const auto* failed = std::get_if<process::ExecFailed>(&started)) {
      return CannotExecute(*failed);
    }
    auto& supervisor = *std::get<std::unique_ptr<process::Supervisor>>(started);
    report_.Started(options_.command.front(), supervisor.command_pid());
    loop_.Add(supervisor);
    while (!supervisor.ended()) {
      loop_.RunOnce();
      PassSignalsOn(supervisor, [] {});
    }
    loop_.Remove(supervisor);
    return Conclude(*supervisor.ended());
  }

  WaitOutcome WaitForLock() {
    AcquireReporter observer(report_, lock_.shown());
    lock::Acquire acquire(connector_->session(), clock_,
                          {.lock = lock_,
                           .mode = options_.mode,
                           .host = self_.host,
                           .data = ContenderDataFor(options_, self_),
                           .try_only = options_.try_only,
                           .wait = options_.wait,
                           .connect_timeout = options_.server.connect_timeout},
                          process::MakeUuid, observer);
    loop_.Add(acquire);
    WaitOutcome outcome = Interrupted{};
    for (;;) {
      loop_.RunOnce();
      if (acquire.outcome()) {
        outcome = *acquire.outcome();
        break;
      }
      if (connector_->IsHopeless()) {
        outcome = lock::AcquireOutcome(lock::Unreachable{});
        break;
      }
      if (const auto signal = TakeEndingSignal()) {
        outcome = Interrupted{*signal};
        break;
      }
    }
    loop_.Remove(acquire);
    return outcome;
  }

  /// A signal that ends a wait; the others are dealt with.
  std::optional<int> TakeEndingSignal() {
    while (const auto signal = signals_.Next()) {
      if (signal->number == SIGCONT) continue;
      if (signal->number == SIGTSTP) {
        signals_.StopSelf();
        continue;
      }
      return signal->number;
    }
    return std::nullopt;
  }

  int Explain(const lock::AcquireOutcome& outcome) {
    if (const auto* busy = std::get_if<lock::Busy>(&outcome)) {
      report_.NotTaken(lock_.shown(), *busy, options_);
      return options_.conflict_exit_code;
    }
    if (std::holds_alternative<lock::Unreachable>(outcome)) {
      report_.Unreachable(connector_->Tried(), options_.server.connect_timeout,
                          connector_->IsHopeless());
      return kExitUnavailable;
    }
    if (const auto* refused = std::get_if<lock::Refused>(&outcome)) {
      report_.Refused(*refused);
      return kExitRefused;
    }
    if (const auto* unusable = std::get_if<lock::Unusable>(&outcome)) {
      report_.Unusable(lock_.shown(), *unusable);
      return kExitConfiguration;
    }
    report_.Defect(std::get<lock::Defect>(outcome).what);
    return kExitInternal;
  }

  int CannotExecute(process::ExecFailed failed) {
    report_.CannotExecute(options_.command.front(), failed);
    return process::ExitStatusOf(failed);
  }

  int RunUnder(const lock::Ticket& ticket, const std::string& executable) {
    zookeeper::Session& session = connector_->session();
    const Duration timeout = session.lease().timeout();
    if (timeout < protocol::kComfortableSessionTimeout) report_.ShortSession(timeout);
    report_.Acquired(ticket);

    const Duration grace = protocol::GraceFor(options_.kill_after, timeout);
    const bool warn_only = options_.on_lost == cli::OnLost::kWarn;
    LeaseKeeper keeper(report_, lock_.shown());
    lock::Hold hold(session, clock_, {ticket}, grace, keeper);
    auto started = process::Supervisor::Start(
        {.executable = executable,
         .arguments = options_.command,
         .environment = EnvironmentFor(ticket, self_),
         .stop_signal = options_.stop_signal,
         .kill_after = grace,
         .lease_end = warn_only ? kNever : hold.lease_end(),
         .descendants = options_.descendants,
         .when_orphaned =
             [credentials = *session.credentials(), endpoints = session.endpoints(), timeout] {
               zookeeper::CloseSession(credentials, endpoints, timeout, timeout);
             }},
        signals_);
    if (const auto* failed = std::get_if<process::ExecFailed>(&started)) {
      Release();
      return CannotExecute(*failed);
    }
    auto& supervisor = *std::get<std::unique_ptr<process::Supervisor>>(started);
    if (!warn_only) keeper.SetSupervisor(&supervisor);
    report_.Started(options_.command.front(), supervisor.command_pid());

    const process::Ended ended = Supervise(hold, supervisor);
    // Stop, reap, release, close: the command has been reaped, only now is the lock let go.
    Release();
    return Conclude(ended);
  }

  process::Ended Supervise(lock::Hold& hold, process::Supervisor& supervisor) {
    // After every wake-up the lease is looked at first.
    loop_.Remove(connector_->session());
    loop_.Add(hold);
    loop_.Add(supervisor);
    loop_.Add(connector_->session());
    while (!supervisor.ended()) {
      loop_.RunOnce();
      if (hold.loss() && !std::exchange(loss_told_, true)) {
        report_.Lost(lock_.shown(), *hold.loss(), options_.on_lost);
        if (options_.on_lost == cli::OnLost::kStop) supervisor.End();
      }
      PassSignalsOn(supervisor,
                    [&] { report_.Stopping(lock_.shown(), hold.lease_end() - clock_.Now()); });
    }
    loop_.Remove(hold);
    loop_.Remove(supervisor);
    return *supervisor.ended();
  }

  template <typename F>
  void PassSignalsOn(process::Supervisor& supervisor, F before_stop) {
    while (const auto signal = signals_.Next()) {
      if (signal->number == SIGTSTP) {
        before_stop();
        signals_.StopSelf();
      } else if (!signal->from_terminal) {
        // What the terminal sends reached the command as well, as members of one process group.
        supervisor.Forward(signal->number);
        if (kMutationReleaseFirst) connector_->Close();
      }
    }
  }

  int Conclude(const process::Ended& ended) {
    for (const auto& survivor : ended.survivors) report_.Survivor(survivor);
    for (const auto& process : ended.left_behind) report_.LeftBehind(process);
    if (ended.guard_failed) report_.GuardFailed();
    if (ended.by_order || loss_told_) {
      if (!loss_told_) report_.LeaseRanOut(lock_.shown());
      return kExitLost;
    }
    const int status = process::ShellStatus(ended.wait_status);
    report_.CommandEnded(status);
    return status;
  }

  void Release() {
    if (connector_->Close()) {
      report_.Released(lock_.shown());
    } else {
      report_.NotConfirmed(lock_.shown());
    }
  }

  const cli::RunOptions& options_;
  process::Signals& signals_;
  process::MessageSink& sink_;
  cli::Report report_;
  const SystemClock clock_;
  const process::Identity self_;
  const lock::LockName lock_;
  process::EventLoop loop_;
  std::optional<Connector> connector_;
  bool loss_told_ = false;
};

}  // namespace

int Run(const cli::RunOptions& options, process::Signals& signals, process::MessageSink& sink) {
  return LockedRun(options, signals, sink).Execute();
}

}  // namespace zklock::commands
