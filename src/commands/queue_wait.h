#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/contender_data.h"
#include "cli/end_reason.h"
#include "cli/options.h"
#include "cli/report.h"
#include "commands/event_broadcaster.h"
#include "commands/nesting.h"
#include "commands/progress.h"
#include "commands/session_driver.h"
#include "lock/acquire_set.h"
#include "process/event_loop.h"
#include "process/identity.h"
#include "process/signals.h"

namespace zklock::commands {

/// A signal ended the wait.
struct Interrupted {
  int signal_number = 0;
};
/// Somebody has asked our contender to leave.
struct ToldToLeave {
  cli::RevokeData revocation;
};
/// Those who wait have gone: nobody wants the lock any more.
struct Cancelled {};

/// What the wait came to: the queue's word, or something else that ended it. UsageError: it would
/// never end.
using WaitOutcome = std::variant<lock::AcquireOutcome, Interrupted, ToldToLeave, Cancelled,
                                 KeeperFound, cli::UsageError>;

/// What to queue for, for each of `wanted`; `data` makes a contender's data. `below`: the process
/// that shells that hold may be above of. `options`, `self` and `passed_over` outlive the requests.
[[nodiscard]] std::vector<lock::AcquireRequest> RequestsFor(
    const cli::RunOptions& options, const std::vector<cli::WantedLock>& wanted,
    const process::Identity& self, pid_t below, const PassedOver& passed_over,
    const std::function<std::string(protocol::Mode)>& data);

/// The way through the queues, in the caller's loop.
class QueueWait {
 public:
  struct Setting {
    const cli::RunOptions& options;
    process::Signals& signals;
    process::MessageSink& sink;
    cli::Report& report;
    EventBroadcaster& steps;
    process::EventLoop& loop;  ///< has the signals
    SessionDriver& session_driver;
    const Clock& clock;
    const AncestorLocks& outer;
    /// Called after each event that leaves the wait open; true while the servers commit what may
    /// end it with the lock. May be empty.
    std::function<void(bool is_about_to_hold)> on_progress{};
    /// Called before each create of a contender. May be empty.
    std::function<void()> on_joining{};
  };
  explicit QueueWait(const Setting& setting) : in_(setting) {}

  /// `is_cancelled` is asked after each event.
  [[nodiscard]] WaitOutcome Run(std::vector<lock::AcquireRequest> requests,
                                const std::function<bool()>& is_cancelled);
  /// All LOCKs were taken.
  [[nodiscard]] bool has_all() const { return has_all_; }
  /// The end of the run after an outcome that is neither that nor KeeperFound. To be called after
  /// the session's close, as FailureEnd.
  [[nodiscard]] cli::RunEnd End(const WaitOutcome& outcome) const;

  /// What was taken.
  [[nodiscard]] const std::vector<lock::Ticket>& tickets() const { return tickets_; }
  /// Contenders of ours that are of no use any more.
  [[nodiscard]] const std::vector<std::string>& passed() const { return passed_; }

 private:
  std::optional<WaitOutcome> Look(lock::AcquireSet& acquire, const QueueEvents& steps,
                                  Progress& progress, const std::function<bool()>& is_cancelled);
  [[nodiscard]] cli::RunEnd EndOf(const lock::AcquireOutcome& outcome) const;
  [[nodiscard]] cli::RunEnd EndOf(const lock::Busy& busy) const;
  [[nodiscard]] std::string DisplayPath() const;

  const Setting in_;
  std::vector<lock::AcquireRequest> requests_;
  std::vector<lock::Ticket> tickets_;
  std::vector<std::string> passed_;
  bool has_all_ = false;
  std::string ended_at_;  // the LOCK at which the wait came to its end
};

}  // namespace zklock::commands
