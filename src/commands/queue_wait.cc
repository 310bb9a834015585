#include "commands/queue_wait.h"

#include <algorithm>
#include <csignal>
#include <stdexcept>
#include <utility>

#include "cli/duration.h"
#include "cli/report_reasons.h"
#include "commands/console.h"
#include "commands/failure_end.h"
#include "process/identity.h"

namespace zklock::commands {
namespace {

using cli::EndReason;
using cli::EndRun;
using cli::EndWithStatus;

/// How long a `try` stands in a turnstile, where nobody has to wait.
constexpr Duration kTurnstileTime = std::chrono::seconds(5);

cli::EndReason ReasonOf(lock::Busy::Why why) {
  switch (why) {
    case lock::Busy::Why::kTaken:
      return EndReason::kTaken;
    case lock::Busy::Why::kWaitOver:
      return EndReason::kWaitOver;
    case lock::Busy::Why::kQueueFull:
      return EndReason::kQueueFull;
    case lock::Busy::Why::kSuperseded:
      return EndReason::kSuperseded;
    case lock::Busy::Why::kRemoved:
      break;
  }
  return EndReason::kRemoved;
}

template <typename... F>
struct Overloaded : F... {
  using F::operator()...;
};

}  // namespace

std::vector<lock::AcquireRequest> RequestsFor(
    const cli::RunOptions& options, const std::vector<cli::WantedLock>& wanted,
    const process::Identity& self, pid_t below, const PassedOver& passed_over,
    const std::function<std::string(protocol::Mode)>& data) {
  const std::string& chroot = options.server.servers.chroot;
  std::vector<lock::AcquireRequest> requests;
  for (const cli::WantedLock& one : wanted) {
    lock::AcquireRequest request{
        .lock = lock::LockName::In(chroot, one.path),
        .mode = one.mode,
        .dialect = options.dialect,
        .host = self.host,
        .data = data(one.mode),
        .try_only = options.try_only,
        .wait = options.wait,
        .max_queue = options.max_queue,
        .supersede = options.supersede,
        .below = std::string(options.permits ? protocol::kLeases : ""),
        .permits = options.permits,
        .holds_for_us = HoldsFor(options, self, below, one.mode, passed_over),
        .connect_timeout = options.server.connect_timeout};
    if (options.permits) {
      // The way to a permit leads through one at a time. A `try` stands there too, while those
      // before it leave a permit: what it finds in the turnstile then are no waiters.
      requests.push_back(
          {.lock = request.lock,
           .host = self.host,
           .data = request.data,
           .wait = options.try_only ? std::optional<Duration>(kTurnstileTime) : options.wait,
           .max_queue = options.try_only ? std::nullopt : options.max_queue,
           .below = std::string(protocol::kTurnstile),
           .permit_limit = options.try_only ? options.permits : std::nullopt,
           .connect_timeout = options.server.connect_timeout});
    }
    requests.push_back(std::move(request));
  }
  return requests;
}

WaitOutcome QueueWait::Run(std::vector<lock::AcquireRequest> requests,
                           const std::function<bool()>& is_cancelled) {
  requests_ = std::move(requests);
  QueueEvents steps(in_.steps, in_.session_driver.session(), in_.on_joining);
  lock::AcquireSet acquire(in_.session_driver.session(), in_.clock, requests_, process::MakeUuid,
                           steps);
  Progress progress(ResolveProgress(in_.options.progress, in_.options.verbosity), in_.sink,
                    StandardErrorTerminal(), in_.session_driver.session(), in_.clock);
  in_.steps.Add(progress);
  in_.loop.Add(acquire);
  in_.loop.Add(progress);
  std::optional<WaitOutcome> outcome;
  while (!outcome) {
    in_.loop.RunOnce();
    outcome = Look(acquire, steps, progress, is_cancelled);
    if (!outcome && in_.on_progress) in_.on_progress(acquire.IsAboutToHold());
  }
  in_.loop.Remove(progress);
  in_.loop.Remove(acquire);
  in_.steps.Remove(progress);
  const auto* decided = std::get_if<lock::AcquireOutcome>(&*outcome);
  has_all_ = decided != nullptr && std::holds_alternative<lock::Acquired>(*decided);
  tickets_ = acquire.tickets();
  passed_ = acquire.passed();
  ended_at_ = acquire.lock().display_path();
  return *outcome;
}

std::optional<WaitOutcome> QueueWait::Look(lock::AcquireSet& acquire, const QueueEvents& steps,
                                           Progress& progress,
                                           const std::function<bool()>& is_cancelled) {
  // First: who is told to leave before the command has begun has nothing to end.
  if (steps.revocation()) return ToldToLeave{*steps.revocation()};
  if (const auto& outcome = acquire.outcome()) {
    const auto* held = std::get_if<lock::HeldForUs>(&*outcome);
    if (held == nullptr) return *outcome;
    return KeeperFound{
        {.lock = acquire.lock(), .mode = held->mode, .path = held->path, .token = held->token},
        held->data};
  }
  if (in_.outer.IsQueuedBeside(steps.waits_for())) return WaitsBehindWriter(steps.waits_for());
  if (in_.session_driver.IsHopeless()) return lock::AcquireOutcome(lock::Unreachable{});
  const auto pausing = [&progress](const std::function<void()>& stop) {
    progress.Pause();
    stop();
  };
  if (const auto signal = TakeEndingSignal(in_.signals, pausing)) {
    progress.Interrupt();
    return Interrupted{*signal};
  }
  if (is_cancelled()) return Cancelled{};
  return std::nullopt;
}

std::string QueueWait::DisplayPath() const {
  std::string shown;
  for (const auto& request : requests_) {
    // A semaphore has two.
    if (request.below == protocol::kTurnstile) continue;
    shown += (shown.empty() ? "" : ", ") + request.lock.display_path();
  }
  return shown;
}

cli::RunEnd QueueWait::End(const WaitOutcome& outcome) const {
  const int conflict = in_.options.conflict_exit_code;
  return std::visit(
      Overloaded{[this](const lock::AcquireOutcome& decided) { return EndOf(decided); },
                 [this](const Interrupted& interrupted) {
                   return cli::InterruptedEnd(DisplayPath(), interrupted.signal_number);
                 },
                 [this, conflict](const ToldToLeave& told) {
                   return EndWithStatus(conflict, EndReason::kToldToLeave, DisplayPath(),
                                        cli::AskerText(told.revocation));
                 },
                 [this, conflict](const Cancelled&) {
                   if (!in_.outer.is_lost()) return EndWithStatus(conflict, EndReason::kCancelled);
                   return EndWithStatus(conflict, EndReason::kLostBeforeRun,
                                        in_.outer.DisplayPath());
                 },
                 [](const cli::UsageError& endless) {
                   return EndRun(EndReason::kUsage, cli::UsageLines(endless));
                 },
                 [](const KeeperFound&) -> cli::RunEnd {
                   throw std::logic_error("a keeper that was found ends no run");
                 }},
      outcome);
}

cli::RunEnd QueueWait::EndOf(const lock::AcquireOutcome& outcome) const {
  const auto no_end = [](const auto&) -> cli::RunEnd {
    throw std::logic_error("a lock that is held ends no run");
  };
  return std::visit(
      Overloaded{[this](const lock::Busy& busy) { return EndOf(busy); },
                 [&](const lock::Acquired& acquired) { return no_end(acquired); },
                 [&](const lock::HeldForUs& held) { return no_end(held); },
                 FailureEnd(in_.session_driver, in_.options.server.connect_timeout, ended_at_)},
      outcome);
}

cli::RunEnd QueueWait::EndOf(const lock::Busy& busy) const {
  const cli::RunOptions& options = in_.options;
  const int conflict = options.conflict_exit_code;
  const EndReason reason = ReasonOf(busy.why);
  switch (reason) {
    case EndReason::kTaken:
      return EndWithStatus(conflict, reason, ended_at_, cli::BlockerText(busy));
    case EndReason::kWaitOver:
      return EndWithStatus(conflict, reason, ended_at_,
                           cli::FormatDuration(options.wait.value_or(Duration::zero())),
                           cli::BlockerText(busy));
    case EndReason::kQueueFull:
      return EndWithStatus(conflict, reason, ended_at_, options.max_queue.value_or(0));
    default:
      return EndWithStatus(conflict, reason, ended_at_);
  }
}

}  // namespace zklock::commands
