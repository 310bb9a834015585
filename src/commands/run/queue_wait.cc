#include "commands/run/queue_wait.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/overloaded.h"
#include "cli/reports/report_reasons.h"
#include "cli/text/duration.h"
#include "cli/text/run_messages.h"
#include "cli/text/server_messages.h"
#include "commands/session/console.h"
#include "commands/session/session_driver.h"
#include "lock/operations/calls.h"
#include "lock/several/acquire_any.h"
#include "lock/several/acquire_set.h"
#include "lock/survey/holders.h"
#include "process/loop/service_manager.h"
#include "process/tree/identity.h"

namespace zklock::commands {
namespace {

using namespace std::chrono_literals;
using cli::EndReason;
using cli::EndRun;
using cli::EndWithStatus;

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

// The startup time that each status requests from the service manager. The command gets the rest of
// it once the lock is held; systemd's own default is 90 s.
constexpr Duration kStartTime = 120s;
constexpr Duration kBetweenStatuses = 30s;
// A waiter that leaves must not keep others waiting.
constexpr Duration kHolderPatience = 500ms;

/// Tells the service manager what zklock is waiting for, and extends the startup timeout, so that
/// the service does not fail to start during the wait.
class ServiceStatus {
 public:
  /// Both arguments must outlive it.
  ServiceStatus(RunContext& context, zookeeper::Store& store)
      : context_(context), manager_(process::ServiceManager::FromEnvironment()) {
    if (!manager_) return;
    const PlainLines lines{
        .write = [this](const std::string& line) { manager_->Notify(line, kStartTime); },
        .first = Duration::zero(),
        .between = kBetweenStatuses};
    progress_.emplace(cli::ProgressStyle::kPlain, context.sink, TerminalInfo{}, store,
                      context.clock, lines);
    context_.events.Add(*progress_);
    context_.loop.Add(*progress_);
  }
  /// From now on, the status is up to the command.
  ~ServiceStatus() {
    if (!progress_) return;
    context_.events.Remove(*progress_);
    context_.loop.Remove(*progress_);
    if (progress_->has_waited()) manager_->Notify("", kStartTime);
  }
  ServiceStatus(const ServiceStatus&) = delete;
  ServiceStatus& operator=(const ServiceStatus&) = delete;

 private:
  RunContext& context_;
  const std::optional<process::ServiceManager> manager_;
  std::optional<Progress> progress_;
};

}  // namespace

std::unique_ptr<lock::Acquisition> QueueWait::Begin(
    const std::vector<lock::AcquireRequest>& requests, QueueEvents& events) {
  zookeeper::Session& session = session_driver_.session();
  const cli::RunOptions& options = context_.options;
  const auto publish = [&events](const lock::AcquireEvent& event) { events.OnEvent(event); };
  if (options.any && !options.try_only) {
    return std::make_unique<lock::AcquireAny>(session, context_.clock, requests, process::MakeUuid,
                                              publish);
  }
  using Take = lock::AcquireSet::Take;
  return std::make_unique<lock::AcquireSet>(session, context_.clock, requests, process::MakeUuid,
                                            publish, options.any ? Take::kFirstFree : Take::kAll);
}

WaitOutcome QueueWait::Run(const std::vector<lock::AcquireRequest>& requests) {
  zookeeper::Session& session = session_driver_.session();
  QueueEvents events(context_.events, session, hooks_.on_joining,
                     context_.options.server.access.acl == zookeeper::Acl::kCreator);
  const std::unique_ptr<lock::Acquisition> acquire = Begin(requests, events);
  const cli::RunOptions& options = context_.options;
  Progress progress(ResolveProgress(options.progress, options.verbosity), context_.sink,
                    StandardErrorTerminal(), session, context_.clock);
  if (options.any) progress.SetAlternatives(requests.size());
  context_.events.Add(progress);
  context_.loop.Add(*acquire);
  context_.loop.Add(progress);
  const ServiceStatus service_status(context_, session);
  std::optional<WaitOutcome> outcome;
  while (!outcome) {
    context_.loop.RunOnce();
    outcome = Check(*acquire, events, progress);
    if (!outcome && hooks_.on_progress) hooks_.on_progress(*acquire);
  }
  context_.loop.Remove(progress);
  context_.loop.Remove(*acquire);
  context_.events.Remove(progress);
  FindHolder(acquire->lock(), *outcome);
  ended_at_ = acquire->lock().display_path();
  held_others_ = !acquire->tickets().empty();
  left_ = events.left();
  const auto* const taken = std::get_if<TakenLocks>(&*outcome);
  wait_end_ = acquire->wait_end();
  // With --verbose, an event reports it.
  if (taken != nullptr && options.verbosity == cli::Verbosity::kNormal) {
    progress.OnAcquired(options.any ? DisplayPaths(taken->tickets) : locks_);
  }
  return *outcome;
}

std::optional<WaitOutcome> QueueWait::Check(lock::Acquisition& acquire, QueueEvents& events,
                                            Progress& progress) {
  // Requests to leave come first: even if the lock has just been acquired, the run can still leave,
  // since no command has begun.
  const auto* busy = acquire.outcome() ? std::get_if<lock::Busy>(&*acquire.outcome()) : nullptr;
  const bool is_removed = busy != nullptr && busy->why == lock::Busy::Why::kRemoved;
  const std::vector<QueueEvents::Asked> all_asked = events.asked();
  for (auto asked = all_asked.rbegin(); asked != all_asked.rend(); ++asked) {
    if (asked->request.forced && !is_removed) continue;
    if (!acquire.GiveUp(asked->contender)) return WaitFailure(AskedToLeave{asked->request});
    events.Forget(asked->contender);
  }
  if (acquire.outcome()) return OutcomeOf(acquire);
  if (context_.ancestors.IsQueuedBeside(events.waits_for())) {
    return WaitFailure(WaitsBehindWriter(events.waits_for()));
  }
  if (session_driver_.IsHopeless()) return WaitFailure(lock::Unreachable{});
  const auto pause = [&progress](const std::function<void()>& suspend) {
    progress.Pause();
    suspend();
  };
  if (const auto signal = TakeEndingSignal(context_.signals, pause)) {
    progress.Interrupt();
    return WaitFailure(Interrupted{*signal});
  }
  if (context_.ancestors.is_lost() || (hooks_.is_cancelled && hooks_.is_cancelled())) {
    return WaitFailure(Cancelled{});
  }
  return std::nullopt;
}

WaitOutcome QueueWait::OutcomeOf(const lock::Acquisition& acquire) {
  const lock::AcquireOutcome& outcome = *acquire.outcome();
  if (std::holds_alternative<lock::Acquired>(outcome) ||
      std::holds_alternative<lock::ReservedLock>(outcome)) {
    return TakenLocks{acquire.tickets(), acquire.passed(), acquire.reserved(),
                      acquire.MayBeReserved()};
  }
  if (const auto* held = std::get_if<lock::HeldForUs>(&outcome)) {
    return KeeperFound{
        {.lock = acquire.lock(), .mode = held->mode, .path = held->path, .token = held->token},
        held->data};
  }
  return WaitFailure(outcome);
}

void QueueWait::FindHolder(const lock::LockName& lock, WaitOutcome& outcome) {
  auto* const failure = std::get_if<WaitFailure>(&outcome);
  auto* const decided = failure == nullptr ? nullptr : std::get_if<lock::AcquireOutcome>(failure);
  auto* const busy = decided == nullptr ? nullptr : std::get_if<lock::Busy>(decided);
  const cli::RunOptions& options = context_.options;
  const bool is_named =
      busy != nullptr && !options.any &&
      (busy->why == lock::Busy::Why::kTaken || busy->why == lock::Busy::Why::kWaitOver);
  const bool is_known = is_named && busy->holds && options.permits.value_or(1) == 1;
  if (!is_named || is_known || options.verbosity == cli::Verbosity::kQuiet) return;
  zookeeper::Session& session = session_driver_.session();
  const TimePoint deadline = context_.clock.Now() + kHolderPatience;
  const auto serve = [&](EventSource& source, const std::function<bool()>& is_done) {
    context_.ServeUntil(source, deadline, is_done);
    if (!is_done()) throw lock::OperationFailed(lock::Unreachable{});
  };
  lock::Calls calls(session, context_.clock, kHolderPatience, serve);
  try {
    const auto holders = lock::ReadHolders(calls, lock, options.permits.value_or(1));
    // The contender that excludes a reader may be a writer that itself waits for other readers.
    const bool reads =
        std::any_of(options.locks.begin(), options.locks.end(), [&](const auto& one) {
          return one.mode == protocol::Mode::kRead && context_.NameOf(one).path == lock.path;
        });
    if (holders.empty() || holders[0].stat.ephemeral_owner == session.session_id() ||
        (reads && holders[0].name.reads())) {
      return;
    }
    const lock::Holder& holder = holders[0];
    busy->blocker = holder.name.full;
    busy->blocker_data = holder.data;
    busy->reserved = lock::FindReservation(holder.name.full, holder.data, holder.stat);
    busy->holds = true;
    busy->more_hold = holders.size() - 1;
  } catch (const lock::OperationFailed&) {
    // The message then names the contender in the way.
  }
}

cli::RunEnd QueueWait::End(const WaitFailure& failure) const {
  const int conflict = context_.options.conflict_exit_code;
  return std::visit(
      Overloaded{[this](const lock::AcquireOutcome& decided) { return EndOf(decided); },
                 [this](const Interrupted& interrupted) {
                   if (!session_driver_.session().lease().newest_sent()) {
                     return cli::InterruptedLooking(locks_, interrupted.signal_number,
                                                    session_driver_.Tried());
                   }
                   return cli::InterruptedEnd(StillWaitedFor(), interrupted.signal_number,
                                              session_driver_.unconfirmed());
                 },
                 [this, conflict](const AskedToLeave& asked) {
                   return EndWithStatus(conflict, EndReason::kAskedToLeave, StillWaitedFor(),
                                        cli::AskerText(asked.request));
                 },
                 [this, conflict](const Cancelled&) {
                   if (!context_.ancestors.is_lost())
                     return EndWithStatus(conflict, EndReason::kCancelled);
                   return EndWithStatus(conflict, EndReason::kLostBeforeRun,
                                        context_.ancestors.DisplayPath());
                 },
                 [](const cli::UsageError& endless) {
                   return EndRun(EndReason::kUsage, cli::UsageLines(endless));
                 }},
      failure);
}

cli::RunEnd QueueWait::EndOf(const lock::AcquireOutcome& outcome) const {
  const auto no_end = [](const auto&) -> cli::RunEnd {
    throw std::logic_error("QueueWait::End");  // a held lock does not end the run
  };
  // A run that has had a session looks for a server as long as its session can last.
  const auto answered_at = session_driver_.session().lease().newest_sent();
  const Duration looked_for =
      answered_at ? std::chrono::round<std::chrono::seconds>(context_.clock.Now() - *answered_at)
                  : context_.options.server.connect_timeout;
  cli::RunEnd end =
      std::visit(Overloaded{[this](const lock::Busy& busy) { return EndOf(busy); },
                            [&](const lock::Acquired& acquired) { return no_end(acquired); },
                            [&](const lock::ReservedLock& reserved) { return no_end(reserved); },
                            [&](const lock::HeldForUs& held) { return no_end(held); },
                            FailureEnd(session_driver_, looked_for, ended_at_)},
                 outcome);
  if (std::holds_alternative<lock::Unreachable>(outcome) && answered_at) {
    end.message = fmt::format(cli::message::kLostWaiting, ended_at_, end.message);
  }
  return end;
}

/// With --any: returns the LOCKs whose queues we have not left, or have left for the reason `why`.
std::vector<std::string> QueueWait::NotLeftExceptFor(
    std::optional<lock::QueueLeftEvent::Why> why) const {
  std::vector<std::string> locks;
  for (const cli::WantedLock& wanted : context_.options.locks) {
    const std::string lock = context_.NameOf(wanted).display_path();
    const auto left = left_.find(lock);
    if (left == left_.end() || left->second == why) locks.push_back(lock);
  }
  return locks;
}

std::string QueueWait::StillWaitedFor() const {
  if (left_.empty()) return locks_;
  const std::vector<std::string> locks = NotLeftExceptFor(std::nullopt);
  const std::string names = fmt::format("{}", fmt::join(locks, ", "));
  return locks.size() == 1 ? names : fmt::format(cli::message::kAnyOf, names);
}

/// With --any: says why none of the LOCKs was acquired.
std::string QueueWait::NoneText(lock::Busy::Why why, const std::string& locks) const {
  const cli::RunOptions& options = context_.options;
  switch (why) {
    case lock::Busy::Why::kTaken:
      return fmt::format(cli::message::kNoneFree, locks);
    case lock::Busy::Why::kWaitOver:
      return fmt::format(cli::message::kNoneBecameFree, locks,
                         cli::FormatDuration(options.wait.value_or(Duration::zero())));
    case lock::Busy::Why::kQueueFull:
      return fmt::format(cli::message::kAllQueuesFull, locks);
    case lock::Busy::Why::kRemoved:
    case lock::Busy::Why::kSuperseded:
      break;
  }
  return fmt::format(cli::message::kRemovedFromAll, locks);
}

cli::RunEnd QueueWait::EndOf(const lock::Busy& busy) const {
  const cli::RunOptions& options = context_.options;
  const int conflict = options.conflict_exit_code;
  const EndReason reason = ReasonOf(busy.why);
  if (options.any) {
    const std::vector<std::string> locks = NotLeftExceptFor(lock::WhyLeft(busy.why));
    if (locks.size() > 1) {
      const std::string names = fmt::format("{}", fmt::join(locks, ", "));
      return {.reason = reason, .status = conflict, .message = NoneText(busy.why, names)};
    }
  }
  switch (reason) {
    case EndReason::kTaken:
      return EndWithStatus(conflict, reason, ended_at_, cli::HeldText(busy));
    case EndReason::kWaitOver:
      return EndWithStatus(conflict, reason, ended_at_,
                           cli::FormatDuration(options.wait.value_or(Duration::zero())),
                           cli::BlockerText(busy));
    case EndReason::kQueueFull:
      return EndWithStatus(conflict, reason, ended_at_,
                           cli::QueueFullText(options.max_queue.value_or(0)));
    case EndReason::kRemoved:
      // It is not known which of the contenders was deleted.
      return EndWithStatus(conflict, reason, held_others_ ? locks_ : ended_at_);
    default:
      return EndWithStatus(conflict, reason, ended_at_);
  }
}

}  // namespace zklock::commands
