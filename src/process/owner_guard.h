#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <optional>

#include "base/clock.h"
#include "base/event_source.h"
#include "process/guard_link.h"
#include "process/owner.h"
#include "process/pidfd.h"
#include "process/shared_page.h"

namespace zklock::process {

/// What the guard of an owner has to know.
struct OwnerDuty {
  const Owner& owner;            ///< outlives the guard
  int signal = 15;               ///< tells the owner that the lock is lost
  TimePoint lease_end = kNever;  ///< the first D (protocol: the lease)
  Duration grace{};              ///< so long before the lease's end it is told, at first
  /// Run in the guard when the keeper has died unexpectedly and then the owner has ended: closes
  /// the session. As CommandSpec::when_orphaned. Not run after KeepSession().
  std::function<void()> when_orphaned;
};

/// A small process beside the keeper, so that a keeper that is killed or hangs is no silent loss:
/// the owner gets its signal before the lease ends, at once when the keeper has gone. Then the
/// guard waits for the owner's end, but no longer than for the lease's, and closes the session.
///
/// This is the keeper's end of it. A guard that dies is replaced; when the system refuses that, as
/// soon as it no longer does. Until then the keeper alone tells the owner.
class OwnerGuard final : public EventSource {
 public:
  /// Returns when the guard is ready: nested guards of an outer lock are spared by their name, so
  /// nobody may be told before that the lock is held. No later than when the owner would have to be
  /// told that it is lost. Throws std::system_error when the system refuses.
  explicit OwnerGuard(OwnerDuty duty);
  /// Dismisses the guard: it does nothing any more.
  ~OwnerGuard() override;
  OwnerGuard(const OwnerGuard&) = delete;
  OwnerGuard& operator=(const OwnerGuard&) = delete;

  /// Moves the lease's end, forward or back, and sets how long before it the owner is told.
  void SetLease(TimePoint lease_end, Duration grace);
  /// Signals the owner, unless that has been done: by this process or by the guard.
  void TellOwner();
  /// The guard will not close the session: something else than the owner relies on the lock, which
  /// then lasts until the servers end the session.
  void KeepSession() { page_->keeps_session = true; }
  /// This process closes the session now. Nothing more is said to the owner, and if this process
  /// dies before the close, the guard closes the session without waiting for the owner's end.
  void BeginClose();
  /// The guard goes on by itself: it takes this process's end for an unexpected one.
  void LeaveAlone();
  [[nodiscard]] bool has_told() const { return page_->told; }

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  struct Page {
    SharedMoment lease_end;                  // written by the keeper
    SharedSpan grace;                        // likewise
    std::atomic<bool> told{false};           // by whoever signals the owner, before
    std::atomic<bool> keeps_session{false};  // written by the keeper
    std::atomic<bool> is_closing{false};     // likewise
  };

  [[noreturn]] void Watch(pid_t keeper) noexcept;
  void WatchUntilEnd(pid_t keeper);
  [[nodiscard]] TimePoint StopTime() const;
  void Fork();
  void Dismiss();

  const OwnerDuty duty_;
  SharedPage<Page> page_;
  pid_t guard_ = 0;
  std::optional<PidFd> process_;  // the guard
  TimePoint next_fork_ = kNever;  // where there is no guard
};

}  // namespace zklock::process
