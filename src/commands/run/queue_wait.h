#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/options/options.h"
#include "cli/reports/end_reason.h"
#include "commands/nesting/nesting.h"
#include "commands/run/progress.h"
#include "commands/session/event_broadcaster.h"
#include "commands/session/run_context.h"
#include "commands/session/session_driver.h"
#include "lock/data/contender_data.h"
#include "lock/several/acquisition.h"

namespace zklock::commands {

/// All LOCKs were acquired.
struct TakenLocks {
  std::vector<lock::Ticket> tickets;
  std::vector<std::string> passed;             ///< contenders no longer needed, to be deleted
  std::vector<lock::ReservedLock> reserved{};  ///< those already reserved for the ID of --reserve
  bool may_be_reserved = false;                ///< Acquisition::MayBeReserved()
};
/// A signal ended the wait.
struct Interrupted {
  int signal_number = 0;
};
/// Our contender was asked to leave (zklock release).
struct AskedToLeave {
  lock::ReleaseRequest request;
};
/// The locks are no longer wanted.
struct Cancelled {};

/// Why the locks were not acquired. UsageError: the wait would never have ended. An AcquireOutcome
/// is never Acquired, ReservedLock or HeldForUs here.
using WaitFailure =
    std::variant<lock::AcquireOutcome, Interrupted, AskedToLeave, Cancelled, cli::UsageError>;
/// How the wait ended.
using WaitOutcome = std::variant<TakenLocks, KeeperFound, WaitFailure>;

/// Callbacks during the wait. Any of them may be empty.
struct WaitHooks {
  /// Called after each event; returns true to cancel the wait. (A lost ancestor lock always cancels
  /// it.)
  std::function<bool()> is_cancelled{};
  /// Called after each event that does not end the wait.
  std::function<void(const lock::Acquisition& acquire)> on_progress{};
  /// Called before each create of a contender.
  std::function<void()> on_joining{};
};

/// The wait in the queues of all LOCKs, with a progress display.
class QueueWait {
 public:
  /// `locks`: all of them, for messages. The references must outlive it.
  QueueWait(RunContext& context, SessionDriver& session_driver, std::string locks, WaitHooks hooks)
      : context_(context),
        session_driver_(session_driver),
        locks_(std::move(locks)),
        hooks_(std::move(hooks)) {}

  [[nodiscard]] WaitOutcome Run(const std::vector<lock::AcquireRequest>& requests);
  /// Returns when the time of --wait ends; kNever without --wait, or before the first queue has
  /// been joined.
  [[nodiscard]] TimePoint wait_end() const { return wait_end_; }
  /// Returns the LOCK at which the wait ended.
  [[nodiscard]] const std::string& ended_at() const { return ended_at_; }
  /// Returns the end of the run after a failure. Call this after closing the session, as with
  /// FailureEnd.
  [[nodiscard]] cli::RunEnd End(const WaitFailure& failure) const;

 private:
  [[nodiscard]] std::unique_ptr<lock::Acquisition> Begin(
      const std::vector<lock::AcquireRequest>& requests, QueueEvents& events);
  std::optional<WaitOutcome> Check(lock::Acquisition& acquire, QueueEvents& events,
                                   Progress& progress);
  static WaitOutcome OutcomeOf(const lock::Acquisition& acquire);
  /// Finds the holder for the message about a conflict, if the contender in the way is not known to
  /// hold the lock.
  void FindHolder(const lock::LockName& lock, WaitOutcome& outcome);
  [[nodiscard]] cli::RunEnd EndOf(const lock::AcquireOutcome& outcome) const;
  [[nodiscard]] cli::RunEnd EndOf(const lock::Busy& busy) const;
  /// Returns the LOCKs in whose queues the wait ended; all of them except with --any.
  [[nodiscard]] std::string StillWaitedFor() const;
  [[nodiscard]] std::vector<std::string> NotLeftExceptFor(
      std::optional<lock::QueueLeftEvent::Why> why) const;
  [[nodiscard]] std::string NoneText(lock::Busy::Why why, const std::string& locks) const;

  RunContext& context_;
  SessionDriver& session_driver_;
  const std::string locks_;
  const WaitHooks hooks_;
  std::string ended_at_;
  bool held_others_ = false;  // some LOCKs were held while the wait for the next one ended
  QueueEvents::Left left_;
  TimePoint wait_end_ = kNever;
};

}  // namespace zklock::commands
