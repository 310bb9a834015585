#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <optional>

#include "base/clock.h"
#include "base/end_cause.h"
#include "base/event_source.h"
#include "process/owner.h"
#include "process/pidfd.h"
#include "process/shared_lease.h"
#include "process/shared_page.h"

namespace zklock::process {

/// What the guard of an owner needs to know.
struct OwnerDuty {
  const Owner& owner;            ///< outlives the guard
  int signal = 15;               ///< tells the owner that the lock is lost
  TimePoint lease_end = kNever;  ///< the first D (protocol: the lease)
  Duration grace{};              ///< how long before the lease's end the owner is signalled
  /// Run in the guard after the keeper died unexpectedly and then the owner ended: closes the
  /// session. As CommandSpec::when_orphaned. Not run after KeepSession().
  std::function<void()> when_orphaned;
};

/// A small process beside the keeper, so that the owner learns of the loss even if the keeper is
/// killed or hangs: the guard signals the owner before the lease ends, or at once when the keeper
/// is gone. Then it waits for the owner's end, but no longer than until the lease's end, and closes
/// the session.
///
/// This class is the keeper's side. A guard that dies is replaced; if the system refuses that, as
/// soon as it no longer does. Until then only the keeper can signal the owner.
class OwnerGuard final : public EventSource {
 public:
  /// Returns when the guard is ready: the guard of an ancestor spares nested guards by their name,
  /// so "held" may not be reported before this one has it. Returns no later than the lease's stop
  /// time. Throws std::system_error if the system refuses.
  explicit OwnerGuard(OwnerDuty duty);
  /// Dismisses the guard, which then does nothing more.
  ~OwnerGuard() override;
  OwnerGuard(const OwnerGuard&) = delete;
  OwnerGuard& operator=(const OwnerGuard&) = delete;

  /// Moves the lease's end, forward or back, and sets how long before it the owner is signalled.
  void SetLease(TimePoint lease_end, Duration grace);
  /// Signals the owner, unless this process or the guard has already done so, or the owner has
  /// released.
  void SignalOwner(EndCause cause);
  /// The owner has ended, or has released: it is not to be signalled any more.
  void OnOwnerReleased() { page_->cause.Set(EndCause::kItself); }
  /// Whether something other than the owner relies on the lock. Then the guard will not close the
  /// session, and the lock is held until the servers end it.
  void KeepSession(bool keep) { page_->keeps_session = keep; }
  /// This process closes the session now. The owner is no longer signalled, and if this process
  /// dies before the close, the guard closes the session without waiting for the owner's end.
  void BeginClose();
  /// Leaves the guard running: to it, the end of this process is an unexpected one.
  void LeaveGuardRunning();
  /// Why the owner was signalled; kItself: it was not, and will not be.
  [[nodiscard]] std::optional<EndCause> cause() const { return page_->cause.Get(); }

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  struct Page {
    SharedLease lease;  // written by the keeper
    SharedCause cause;  // written by the process that signals the owner, before
    std::atomic<bool> keeps_session{false};  // written by the keeper
    std::atomic<bool> is_closing{false};     // written by the keeper
  };

  [[noreturn]] void Watch(pid_t keeper) noexcept;
  void WatchUntilEnd(pid_t keeper);
  void Fork();
  void Dismiss();

  const OwnerDuty duty_;
  SharedPage<Page> page_;
  pid_t guard_ = 0;
  std::optional<PidFd> process_;  // the guard
  TimePoint next_fork_ = kNever;  // where there is no guard
};

}  // namespace zklock::process
