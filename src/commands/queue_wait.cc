#include "commands/queue_wait.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/exit_status.h"
#include "commands/console.h"
#include "process/identity.h"

namespace zklock::commands {
namespace {

/// How long a `try` stands in a turnstile, where nobody has to wait.
constexpr Duration kTurnstileTime = std::chrono::seconds(5);

cli::Released::Why WhyOf(lock::Busy::Why why) {
  using Why = cli::Released::Why;
  switch (why) {
    case lock::Busy::Why::kTaken:
      return Why::kTaken;
    case lock::Busy::Why::kWaitOver:
      return Why::kWaitOver;
    case lock::Busy::Why::kQueueFull:
      return Why::kQueueFull;
    case lock::Busy::Why::kSuperseded:
      return Why::kSuperseded;
    case lock::Busy::Why::kRemoved:
      break;
  }
  return Why::kRemoved;
}

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
  QueueSteps steps(in_.steps, in_.session_driver.session(), in_.on_joining);
  lock::AcquireSet acquire(in_.session_driver.session(), in_.clock, requests_, process::MakeUuid,
                           steps);
  Progress progress(ResolveProgress(in_.options.progress, in_.options.verbosity), in_.sink,
                    StandardErrorScreen(), in_.session_driver.session(), in_.clock);
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

std::optional<WaitOutcome> QueueWait::Look(lock::AcquireSet& acquire, const QueueSteps& steps,
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

std::pair<cli::Released::Why, int> QueueWait::Judge(const WaitOutcome& outcome) const {
  using Why = cli::Released::Why;
  const int conflict = in_.options.conflict_exit_code;
  if (const auto* interrupted = std::get_if<Interrupted>(&outcome)) {
    return {Why::kInterrupted, kExitSignalBase + interrupted->signal_number};
  }
  if (std::holds_alternative<cli::UsageError>(outcome)) return {Why::kUnusable, kExitUsage};
  const auto* decided = std::get_if<lock::AcquireOutcome>(&outcome);
  if (decided == nullptr) return {Why::kRemoved, conflict};  // told to leave, or not wanted
  if (const auto* busy = std::get_if<lock::Busy>(decided)) {
    return {WhyOf(busy->why), conflict};
  }
  if (std::holds_alternative<lock::Unreachable>(*decided)) {
    return {Why::kUnreachable, kExitUnavailable};
  }
  if (std::holds_alternative<lock::Refused>(*decided)) return {Why::kRefused, kExitRefused};
  if (std::holds_alternative<lock::Unusable>(*decided) ||
      std::holds_alternative<lock::QuotaExceeded>(*decided)) {
    return {Why::kUnusable, kExitConfiguration};
  }
  return {Why::kDefect, kExitInternal};
}

void QueueWait::Explain(const WaitOutcome& outcome) {
  if (const auto* decided = std::get_if<lock::AcquireOutcome>(&outcome)) {
    ExplainQueue(*decided);
  } else if (const auto* interrupted = std::get_if<Interrupted>(&outcome)) {
    in_.report.StoppedWhileWaiting(DisplayPath(), interrupted->signal_number);
  } else if (const auto* told = std::get_if<ToldToLeave>(&outcome)) {
    in_.report.ToldToLeave(DisplayPath(), told->revocation);
  } else if (const auto* endless = std::get_if<cli::UsageError>(&outcome)) {
    throw cli::UsageError(*endless);
  }
}

void QueueWait::ExplainQueue(const lock::AcquireOutcome& outcome) {
  if (const auto* busy = std::get_if<lock::Busy>(&outcome)) {
    in_.report.NotTaken(ended_at_, *busy, in_.options);
  } else if (std::holds_alternative<lock::Unreachable>(outcome)) {
    in_.report.Unreachable(in_.session_driver.Tried(), in_.options.server.connect_timeout,
                           in_.session_driver.IsHopeless());
  } else if (const auto* refused = std::get_if<lock::Refused>(&outcome)) {
    in_.session_driver.session().IsCloseRefused() ? in_.report.OtherSchemeWanted()
                                                  : in_.report.Refused(*refused);
  } else if (const auto* unusable = std::get_if<lock::Unusable>(&outcome)) {
    in_.report.Unusable(ended_at_, *unusable);
  } else if (const auto* quota = std::get_if<lock::QuotaExceeded>(&outcome)) {
    in_.report.QuotaExceeded(*quota);
  } else {
    in_.report.Defect(std::get<lock::Defect>(outcome));
  }
}

}  // namespace zklock::commands
