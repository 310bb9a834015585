#include "commands/run/acquire_locks.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "base/exit_status.h"
#include "cli/text/run_messages.h"
#include "commands/nesting/nesting.h"
#include "commands/run/queue_wait.h"
#include "commands/run/reserve.h"
#include "commands/session/exit.h"
#include "lock/several/acquire_set.h"
#include "protocol/lease.h"

namespace zklock::commands {
namespace {

class LockAcquisition {
 public:
  LockAcquisition(RunContext& context, const AcquireTask& task)
      : context_(context),
        task_(task),
        server_(context.options.server),
        wanted_(context.options.locks) {}

  HeldLocks Run() {
    if (context_.options.resumes) {
      BeginSession();
      return {.session_driver = nullptr, .reserved = Resume(context_, *session_driver_)};
    }
    RemoveInheritedLocks(context_, wanted_, task_.beneficiary);
    context_.ancestors.AddTo(context_.loop);
    while (!wanted_.empty()) {
      BeginSession();
      if (auto reserved = FindReservedOfAny()) {
        return {.session_driver = nullptr, .reserved = *std::move(reserved)};
      }
      QueueWait wait(context_, *session_driver_, DisplayPath(), Hooks());
      const WaitOutcome outcome = wait.Run(Requests());
      wait_end_ = std::min(wait_end_, wait.wait_end());
      if (const auto* taken = std::get_if<TakenLocks>(&outcome)) {
        if (context_.options.reserve.empty()) return Held(*taken);
        auto reserved = Reserve(context_, *session_driver_, *taken, task_.contender_data);
        if (reserved) return {.session_driver = nullptr, .reserved = *std::move(reserved)};
        LeaveSession();
        continue;
      }
      if (const auto* found = std::get_if<KeeperFound>(&outcome)) {
        UseHoldOf(*found);
      } else if (const auto slow = NeedsLongerSession(outcome)) {
        LeaveSession();
        server_.session_timeout = *slow->longer;
        context_.events.Publish(lock::PlaceLostEvent{wait.ended_at(), *slow});
      } else {
        const auto unconfirmed = CloseSession();
        throw Exit(
            context_.End(DisplayPath(), wait.End(std::get<WaitFailure>(outcome)), unconfirmed));
      }
    }
    return {};
  }

 private:
  /// With --any and --reserve: looks for a reservation before there is a contender, which might
  /// wait for a lock although another one is already reserved for us.
  std::optional<std::vector<lock::Ticket>> FindReservedOfAny() {
    if (!context_.options.any || context_.options.reserve.empty()) return std::nullopt;
    return Reserve(context_, *session_driver_, {}, task_.contender_data);
  }

  void BeginSession() {
    session_driver_.reset();
    session_driver_ = std::make_unique<SessionDriver>(context_.loop, server_, context_.clock,
                                                      &context_.session_for_guard);
    // Sends the request for a session now: the server works on it while this process prepares.
    context_.loop.RunReady();
    if (task_.command != nullptr) task_.command->FindCgroup();
    // A `try` that finds the lock busy creates no contender, and two forks would be a large part of
    // its cost, so it forks only when it joins the queue.
    if (task_.command != nullptr && !context_.options.try_only) {
      task_.command->PrepareEarly(session_driver_->session());
    }
  }

  WaitHooks Hooks() {
    WaitHooks hooks{.is_cancelled = task_.is_cancelled};
    hooks.on_joining = [this] {
      context_.session_for_guard.Set(session_driver_->session());
      if (task_.command != nullptr) task_.command->OnJoining(session_driver_->session());
      TryForkGuard();
    };
    if (task_.command != nullptr) {
      hooks.on_progress = [this](const lock::Acquisition& acquire) {
        task_.command->OnProgress(acquire, session_driver_->session());
      };
    }
    return hooks;
  }

  void TryForkGuard() const {
    try {
      if (task_.fork_guard) task_.fork_guard();
    } catch (const std::system_error&) {
      // As with a command, a failed fork matters only once the locks are held.
    }
  }

  std::vector<lock::AcquireRequest> Requests() {
    const cli::RunOptions& options = context_.options;
    std::vector<lock::AcquireRequest> requests;
    for (const cli::WantedLock& wanted : wanted_) {
      auto& first_place = first_places_[wanted.path];
      if (!first_place) first_place = std::make_shared<lock::FirstPlace>();
      lock::AcquireRequest request{
          .lock = context_.NameOf(wanted),
          .mode = wanted.mode,
          .dialect = options.dialect,
          .host = context_.Self().host,
          .data = task_.contender_data(wanted),
          .try_only = options.try_only,
          .wait = WaitLeft(),
          .max_queue = options.max_queue,
          .supersede = options.supersede,
          .first_place = first_place,
          .permits = options.permits,
          .take = options.take,
          .reserve = ReservationRequestOf(options),
          .preempt = PreemptFor(context_, task_.beneficiary),
          .holds_for_us = HoldsFor(context_, task_.beneficiary, wanted.mode, disproven_),
          .connect_timeout = options.server.connect_timeout};
      if (options.permits) {
        for (auto& one : lock::RequestsForPermit(request)) requests.push_back(std::move(one));
      } else {
        requests.push_back(std::move(request));
      }
    }
    return requests;
  }

  /// Returns what is left of the time of --wait, which all sessions share.
  [[nodiscard]] std::optional<Duration> WaitLeft() const {
    if (wait_end_ == kNever) return context_.options.wait;
    return std::max(wait_end_ - context_.clock.Now(), Duration::zero());
  }

  /// Returns the failure if the locks could be acquired with a longer session than any requested
  /// before.
  [[nodiscard]] std::optional<lock::TooSlow> NeedsLongerSession(const WaitOutcome& outcome) const {
    const auto* const failure = std::get_if<WaitFailure>(&outcome);
    const auto* const end =
        failure == nullptr ? nullptr : std::get_if<lock::AcquireOutcome>(failure);
    const auto* const slow = end == nullptr ? nullptr : std::get_if<lock::TooSlow>(end);
    if (slow == nullptr || !slow->longer || *slow->longer <= server_.session_timeout) return {};
    return *slow;
  }

  HeldLocks Held(const TakenLocks& taken) {
    const Duration timeout = session_driver_->session().lease().timeout();
    const cli::ServerOptions& asked = context_.options.server;
    if (timeout < protocol::kComfortableSessionTimeout) {
      context_.events.WarnOfShortSession(timeout);
    } else if (asked.asks_session_timeout && timeout < asked.session_timeout) {
      context_.events.Publish(cli::ShortSessionEvent{timeout, asked.session_timeout});
    }
    for (const lock::Ticket& ticket : taken.tickets)
      context_.events.Publish(cli::AcquiredEvent{ticket});
    return {std::move(session_driver_), taken.tickets, taken.passed};
  }

  /// Returns the LOCKs that the run queues for, for messages.
  [[nodiscard]] std::string DisplayPath() const {
    const std::string locks = DisplayPaths(wanted_);
    return context_.options.any ? fmt::format(cli::message::kAnyOf, locks) : locks;
  }

  /// Runs under the lock of a keeper that claims to hold it for the beneficiary, if the keeper can
  /// prove that.
  void UseHoldOf(const KeeperFound& found) {
    LeaveSession();
    const auto wanted = std::find_if(wanted_.begin(), wanted_.end(), [&](const auto& one) {
      return context_.NameOf(one).path == found.holder.lock.path;
    });
    try {
      auto link = UseExistingHold(context_, found, wanted->mode, disproven_);
      if (!link) return;
      if (task_.depends_on_existing_holds) {
        context_.loop.Add(*link);
        context_.ancestors.Add(found.holder, std::move(link));
      }
    } catch (const Exit& exit) {
      Publish(cli::EndReason::kInterrupted, exit.status());
      throw;
    } catch (const cli::UsageError&) {
      Publish(cli::EndReason::kUsage, kExitUsage);
      throw;
    }
    context_.events.Publish(cli::AcquiredByOuterEvent{found.holder.lock.display_path()});
    wanted_.erase(wanted);
    if (context_.options.any) wanted_.clear();
  }

  /// Closes the session, and ends the guard that would have closed it. If no server has answered,
  /// the close continues during the wait in the next session, so that the run does not wait for its
  /// own contender.
  void LeaveSession() {
    if (CloseSession()) closing_ = std::move(session_driver_);
    if (task_.command != nullptr) task_.command->Discard();
  }

  std::optional<Duration> CloseSession() {
    // Nothing reads signals in this loop: it would find them ready again and again.
    context_.loop.Remove(context_.signals);
    const auto unconfirmed = session_driver_->Close();
    context_.loop.Add(context_.signals);
    return unconfirmed;
  }

  /// Publishes the end of a run that no longer has a session. Its message has already been
  /// reported, or the caller throws it.
  void Publish(cli::EndReason reason, int status) {
    context_.events.Publish(cli::ReleasedEvent{DisplayPath(), reason, status});
  }

  RunContext& context_;
  const AcquireTask& task_;
  cli::ServerOptions server_;
  TimePoint wait_end_ = kNever;
  std::vector<cli::WantedLock> wanted_;  // without those that are held already
  std::map<std::string, std::shared_ptr<lock::FirstPlace>> first_places_;  // by LOCK
  DisprovenKeepers disproven_;
  std::unique_ptr<SessionDriver> session_driver_;
  std::unique_ptr<SessionDriver> closing_;
};

}  // namespace

HeldLocks AcquireLocks(RunContext& context, const AcquireTask& task) {
  return LockAcquisition(context, task).Run();
}

}  // namespace zklock::commands
