#include "commands/keeper.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/exit_status.h"
#include "cli/messages.h"
#include "commands/ancestor_locks.h"
#include "commands/event_broadcaster.h"
#include "commands/nesting.h"
#include "commands/queue_wait.h"
#include "commands/run_metadata.h"
#include "commands/session_driver.h"
#include "lock/hold.h"
#include "process/keeper_link.h"
#include "process/nesting_server.h"
#include "process/owner.h"
#include "process/owner_guard.h"
#include "process/supervisor.h"
#include "process/waker.h"
#include "protocol/lease.h"
#include "zookeeper/close_session.h"

namespace zklock::commands {
namespace {

using process::LinkMessage;

// They start the shell's zklock and end with it, or never: nobody's shell.
constexpr std::array<std::string_view, 6> kWrappers = {"sudo",    "doas", "su",
                                                       "runuser", "env",  "timeout"};

process::Owner FindOwner(const cli::RunOptions& options) {
  const std::string subcommand(protocol::ModeName(options.locks.front().mode));
  auto owner = options.owner_pid ? process::Owner::Open(static_cast<pid_t>(*options.owner_pid))
                                 : process::Owner::Parent();
  if (!owner) {
    throw cli::UsageError(
        fmt::format(cli::message::kNoSuchProcess, options.owner_pid.value_or(getppid())),
        subcommand);
  }
  const bool is_wrapper = owner->id().pid == 1 || std::find(kWrappers.begin(), kWrappers.end(),
                                                            owner->name()) != kWrappers.end();
  if (!options.owner_pid && is_wrapper) {
    throw cli::UsageError(fmt::format(cli::message::kUnclearOwner, owner->name(), owner->id().pid),
                          subcommand);
  }
  if (owner->Signal(0) != 0) {
    throw cli::UsageError(fmt::format(cli::message::kForeignOwner, owner->id().pid), subcommand);
  }
  return *std::move(owner);
}

/// The zklock that the user waits for: until the keeper holds, or has ended.
int AwaitKeeper(process::KeeperFork forked, process::Signals& signals) {
  process::EventLoop loop;
  process::Waker link(forked.link.get());
  loop.Add(signals);
  loop.Add(link);
  std::optional<int> ended_by;
  for (;;) {
    loop.RunOnce();
    while (const auto signal = signals.Next()) {
      // What the terminal sends reaches the keeper as well.
      if (!signal->from_terminal) kill(forked.keeper, signal->number);
      if (process::StopsByDefault(signal->number)) {
        signals.StopSelf(signal->number);
      } else if (process::EndsByDefault(signal->number)) {
        ended_by = signal->number;
      }
    }
    const LinkMessage word = process::ReadLink(forked.link.get());
    if (word == LinkMessage::kNothing) continue;
    if (word == LinkMessage::kWord && !ended_by) {
      process::SayHeard(forked.link.get());
      return kExitOk;
    }
    forked.link.Reset();  // held, but not wanted any more: it lets go
    const int status = process::ReapKeeper(forked.keeper);
    return word == LinkMessage::kWord ? kExitSignalBase + *ended_by : process::ShellStatus(status);
  }
}

/// What the hold tells: the lease is the guard's, what is written to the contender the keeper's.
class KeeperObserver final : public lock::HoldObserver {
 public:
  void SetGuard(process::OwnerGuard* guard) { guard_ = guard; }
  void OnLease(TimePoint lease_end, Duration grace) override {
    if (guard_ != nullptr) guard_->SetLease(lease_end, grace);
  }
  void OnOwnData(const std::string& data) override { revocation_ = cli::FindRevocation(data); }
  [[nodiscard]] const std::optional<cli::RevokeData>& revocation() const { return revocation_; }

 private:
  process::OwnerGuard* guard_ = nullptr;
  std::optional<cli::RevokeData> revocation_;
};

class Keeper {
 public:
  Keeper(const cli::RunOptions& options, process::Signals& signals, process::MessageSink& sink,
         const process::Owner& owner, UniqueFd link)
      : options_(options),
        signals_(signals),
        sink_(sink),
        report_(sink, options.verbosity),
        steps_({&report_}),
        self_(process::ThisProcess()),
        owner_(owner),
        link_(std::move(link)),
        link_waker_(link_.get()),
        owner_waker_(owner_.fd()),
        nested_(socket_, owner_.id(),
                [this] {
                  if (guard_) guard_->KeepSession();
                }),
        wanted_(options.locks) {
    loop_.Add(signals_);
    loop_.Add(sink_);
    loop_.Add(link_waker_);
    loop_.Add(owner_waker_);
  }

  int Execute() {
    if (owner_.HasEnded()) return kExitOk;
    if (const auto status = RemoveInheritedLocks(options_, wanted_, outer_, owner_.id().pid,
                                                 signals_, report_, steps_)) {
      return *status;
    }
    outer_.AddTo(loop_);
    while (!wanted_.empty()) {
      session_driver_.emplace(loop_, options_.server, clock_);
      QueueWait waiting(
          {options_, signals_, sink_, report_, steps_, loop_, *session_driver_, clock_, outer_});
      const WaitOutcome outcome = waiting.Run(
          RequestsFor(
              options_, wanted_, self_, owner_.id().pid, passed_over_,
              [this](auto mode) { return KeeperDataFor(options_, mode, self_, owner_, socket_); }),
          [this] {
            return owner_.HasEnded() || process::ReadLink(link_.get()) == LinkMessage::kGone ||
                   outer_.is_lost();
          });
      if (waiting.has_all()) {
        Keep(waiting.tickets(), waiting.passed());
        return kExitOk;
      }
      (void)session_driver_->Close();
      if (const auto* found = std::get_if<KeeperFound>(&outcome)) {
        if (const auto status = GoOnUnder(*found)) return *status;
        continue;
      }
      const cli::RunEnd end = waiting.End(outcome);
      report_.Explain(end);
      return end.status;
    }
    return kExitOk;  // held for the owner already
  }

 private:
  /// Another keeper may hold the LOCK for the owner, or a process above it: then there is nothing
  /// to hold. The exit status, if this keeper is over.
  std::optional<int> GoOnUnder(const KeeperFound& found) {
    const std::string lock = found.holder.lock.display_path();
    const auto wanted = std::find_if(wanted_.begin(), wanted_.end(),
                                     [&](const auto& one) { return one.path == lock; });
    const auto answer =
        GoOnUnderKeeper(found, options_, wanted->mode, self_, passed_over_, signals_, report_);
    if (const int* status = std::get_if<int>(&answer)) return *status;
    if (std::get<std::unique_ptr<process::NestingLink>>(answer)) {
      steps_.Publish(cli::NestedEvent{lock});
      wanted_.erase(wanted);
    }
    return std::nullopt;
  }

  void Keep(const std::vector<lock::Ticket>& tickets, const std::vector<std::string>& passed) {
    zookeeper::Session& session = session_driver_->session();
    const Duration timeout = session.lease().timeout();
    steps_.WarnOfShortSession(timeout);
    for (const lock::Ticket& ticket : tickets) steps_.Publish(cli::AcquiredEvent{ticket});
    KeeperObserver observer;
    lock::Hold hold(session, clock_, tickets, options_.kill_after, observer, passed);
    try {
      guard_.emplace(process::OwnerDuty{
          .owner = owner_,
          .signal = options_.on_lost_signal,
          .lease_end = hold.lease_end(),
          .grace = hold.grace(),
          .when_orphaned = [credentials = *session.credentials(), endpoints = session.endpoints(),
                            access = options_.server.access, timeout] {
            zookeeper::CloseSession(credentials, endpoints, timeout, access);
          }});
    } catch (const std::system_error&) {
      (void)session_driver_->Close();  // nobody is to wait for a lock that nobody uses
      throw;
    }
    observer.SetGuard(&*guard_);
    std::vector<std::string> nodes;
    nodes.reserve(tickets.size());
    for (const lock::Ticket& ticket : tickets) nodes.push_back(ticket.path);
    nested_.Open(nodes, {hold.lease_end(), timeout});
    sink_.Close();
    process::SayHeld(link_.get());
    // After every wake-up the lease is looked at first.
    loop_.Remove(session);
    loop_.Add(hold);
    loop_.Add(*guard_);
    loop_.Add(nested_);
    loop_.Add(session);
    loop_.Add(alarm_);
    try {
      while (!IsOver(hold, *guard_, observer)) {
        loop_.RunOnce();
        nested_.SetLease({hold.lease_end(), session.lease().timeout()});
      }
    } catch (...) {
      // Nobody looks after the lease any more, and no answer can be waited for: the guard closes
      // the session when the owner has ended.
      nested_.End();
      guard_->TellOwner();
      guard_->LeaveAlone();
      throw;
    }
    loop_.Remove(alarm_);
    loop_.Remove(nested_);
    loop_.Remove(*guard_);
    loop_.Remove(hold);
    observer.SetGuard(nullptr);
    // Dismissed last: an outer guard may kill this process during the close.
    guard_->BeginClose();
    (void)session_driver_->Close();
    guard_.reset();
  }

  /// Whether the lock is to be released now. Whoever loses it is told before, and has the grace to
  /// end; nothing is said to an owner that releases. What runs nested below the owner is ended if
  /// the lock is lost or asked for, and waited for in any case.
  bool IsOver(const lock::Hold& hold, process::OwnerGuard& guard, const KeeperObserver& observer) {
    const bool is_wanted = FrontIsContent() && !owner_.HasEnded() && !nested_.release_requested();
    if (!is_wanted) nested_.Drain();
    TakeEndingSignals();
    const TimePoint now = clock_.Now();
    const TimePoint stop = protocol::StopTime(hold.lease_end(), hold.grace());
    // The zklock that was waited for may have got the signal as well, and will not say then that
    // anything is held: that is waited for.
    const bool ends = told_to_end_ && !link_;
    if (ends || observer.revocation() || hold.loss() || outer_.is_lost() || now >= stop ||
        guard.has_told()) {
      nested_.End();
      if (is_wanted) guard.TellOwner();
    }
    if (hold.loss() || now >= hold.lease_end()) return true;
    if (guard.has_told() && leave_at_ == kNever) leave_at_ = now + options_.kill_after;
    if ((!is_wanted || now >= leave_at_) && nested_.Runs().empty()) return true;
    TimePoint next = hold.lease_end();
    for (const TimePoint moment : {stop, leave_at_}) {
      if (moment > now) next = std::min(next, moment);
    }
    alarm_.Set(next);
    return false;
  }

  /// False when the zklock that was waited for has gone before it could say that we hold.
  bool FrontIsContent() {
    if (!link_) return true;
    const LinkMessage word = process::ReadLink(link_.get());
    if (word == LinkMessage::kWord) {
      link_waker_.Set(-1);
      link_.Reset();
    }
    return word != LinkMessage::kGone;
  }

  void TakeEndingSignals() {
    while (const auto signal = signals_.Next()) {
      told_to_end_ = told_to_end_ || (process::EndsByDefault(signal->number) &&
                                      signal->number != SIGUSR1 && signal->number != SIGUSR2);
    }
  }

  const cli::RunOptions& options_;
  process::Signals& signals_;
  process::MessageSink& sink_;
  cli::Report report_;
  EventBroadcaster steps_;
  const SystemClock clock_;
  const process::Identity self_;
  const process::Owner& owner_;
  UniqueFd link_;  // to the zklock that is waited for, until that has heard
  process::Waker link_waker_;
  process::Waker owner_waker_;
  process::Waker alarm_;
  // Where others may run under our locks: from the start, since the contenders' data names it.
  const std::string socket_ = "zklock-" + process::MakeUuid();
  process::NestingServer nested_;
  std::optional<process::OwnerGuard> guard_;
  AncestorLocks outer_;  // held for the owner by zklocks above it
  PassedOver passed_over_;
  std::vector<cli::WantedLock> wanted_;
  process::EventLoop loop_;
  std::optional<SessionDriver> session_driver_;
  bool told_to_end_ = false;     // by a signal
  TimePoint leave_at_ = kNever;  // the owner has been told
};

}  // namespace

int HoldForOwner(const cli::RunOptions& options, process::Signals& signals,
                 process::MessageSink& sink) {
  const process::Owner owner = FindOwner(options);
  process::KeeperFork forked = process::ForkKeeper();
  if (forked.keeper != 0) return AwaitKeeper(std::move(forked), signals);
  return Keeper(options, signals, sink, owner, std::move(forked.link)).Execute();
}

}  // namespace zklock::commands
