#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <optional>

#include "base/clock.h"
#include "base/end_cause.h"
#include "base/event_source.h"
#include "base/unique_fd.h"
#include "process/guard/shared_memory.h"
#include "process/tree/owner.h"
#include "process/tree/pidfd.h"

namespace zklock::process {

/// What the guard of an owner needs to know.
struct OwnerDuty {
  /// Must outlive the guard. Null for a process that only queues, which must not call BeginHold().
  const Owner* owner = nullptr;
  int signal = 15;  ///< tells the owner that the lock is lost
  /// Called in the guard to close the session, once the keeper has died unexpectedly and, if the
  /// lock was held, the owner and all nested runs have ended. Like CommandSpec::when_orphaned. Not
  /// called if a nested run unknown to the guard may be left.
  std::function<void()> when_orphaned;
  /// Called in the keeper; returns whether the session may still be open when the keeper ends. If
  /// so, the guard is not dismissed, so that it can close the session. May be empty.
  std::function<bool()> is_needed{};
};

/// A small process alongside the keeper that tells the owner about a loss even if the keeper is
/// killed or hangs. The guard signals the owner before the lease ends, or as soon as the keeper is
/// gone. It then waits until the owner and all nested runs have ended, and closes the session; it
/// gives up when the lease ends.
///
/// This class is the keeper's side. From BeginHold() on, a guard that dies is replaced; if the fork
/// fails, it is retried until it succeeds. Until then, only the keeper can signal the owner.
class OwnerGuard final : public EventSource {
 public:
  /// Starts a guard for a keeper that queues: it closes the session as soon as the keeper is gone.
  /// Returns when the guard has left the process group, or after a second. Throws std::system_error
  /// if the guard cannot be forked or watched.
  explicit OwnerGuard(OwnerDuty duty);
  /// Dismisses the guard without any further action, unless it is needed (OwnerDuty::is_needed).
  ~OwnerGuard() override;

  /// Must be called when the lock is held, before the owner learns of that. `lease_end`: the
  /// initial end of the lease. `grace`: how long before the lease's end the owner is signalled.
  /// Returns when the guard is ready, but no later than the lease's stop time. The guard of an
  /// ancestor recognises nested guards by their name and spares them, so "held" must not be
  /// reported before this guard has that name. Throws std::system_error if the guard has ended and
  /// cannot be replaced, or the new one ends at once.
  void BeginHold(TimePoint lease_end, Duration grace);
  /// Moves the lease's end, forward or back, and sets how long before it the owner is signalled.
  void SetLease(TimePoint lease_end, Duration grace);
  /// Signals the owner, unless this process or the guard has already done so, or the owner has
  /// released the lock.
  void SignalOwner(EndCause cause);
  /// Must be called when the owner has ended or released the lock: the owner is then no longer
  /// signalled.
  void OnOwnerReleased() { page_->cause.Set(EndCause::kItself); }
  /// Like Supervisor::AddNestedRun().
  void AddNestedRun(int connection);
  /// Must be called once no nested runs remain.
  void ForgetNestedRuns() { page_->keeps_session = false; }
  /// Must be called before this process closes the session. The owner is no longer signalled, and
  /// if this process dies before the close, the guard closes the session without waiting for the
  /// owner to end.
  void BeginClose();
  /// Returns why the owner was signalled; kItself: it was not, and will not be.
  [[nodiscard]] std::optional<EndCause> cause() const { return page_->cause.Get(); }

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  /// The stage only ever advances.
  enum class Stage { kQueueing, kHolding, kClosing };
  struct Page {
    SharedLease lease;  // written by the keeper
    SharedCause cause;  // set before the signal, by the process that sends it
    /// Written by the keeper: a nested run unknown to the guard may be left.
    std::atomic<bool> keeps_session{false};
    std::atomic<Stage> stage{Stage::kQueueing};  // written by the keeper
  };

  [[noreturn]] void Watch(pid_t keeper, int keepers_end) noexcept;
  void WatchUntilEnd(pid_t keeper, int keepers_end);
  void Fork();
  void AwaitReady(TimePoint deadline) const;
  /// Returns whether the guard has ended, or is about to: its end of the socket is closed some time
  /// before its pidfd reports the end.
  [[nodiscard]] bool IsGone() const;
  /// Returns whether the guard was ready before it ended.
  [[nodiscard]] bool WasReady() const;
  void Dismiss();

  const OwnerDuty duty_;
  SharedPage<Page> page_;
  pid_t guard_ = 0;
  std::optional<PidFd> process_;  // the guard
  UniqueFd socket_;               // to the guard
  TimePoint next_fork_ = kNever;  // when to fork a new guard, if the last attempt failed
};

}  // namespace zklock::process
