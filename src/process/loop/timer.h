#pragma once

#include "base/clock.h"
#include "base/unique_fd.h"

namespace zklock::process {

/// Returns a disarmed timer descriptor on CLOCK_BOOTTIME. Throws std::system_error.
[[nodiscard]] UniqueFd MakeTimer();

/// Makes the descriptor readable from `moment` on: at once if that has passed, never for kNever.
void SetTimer(int timer, TimePoint moment);

/// How long after its timer a guard sets its ContinueTimer to fire: a guard that is not stopped
/// sets both again before then.
inline constexpr Duration kContinueDelay = std::chrono::milliseconds(20);

/// A timer on CLOCK_BOOTTIME that sends CONT to this process, where CONT should be blocked. If the
/// process is stopped at that moment, the kernel continues it (timer_create(2)). If the system
/// denies the timer, for example beyond RLIMIT_SIGPENDING, this class does nothing. A forked child
/// does not inherit the timer.
class ContinueTimer {
 public:
  /// Creates the timer, disarmed.
  ContinueTimer();
  ~ContinueTimer();
  ContinueTimer(const ContinueTimer&) = delete;
  ContinueTimer& operator=(const ContinueTimer&) = delete;

  /// Sends CONT at `moment` and every 100 ms after that: at once if `moment` has passed, never for
  /// kNever.
  void Set(TimePoint moment) const;

 private:
  int id_ = -1;  // the kernel's ID of the timer
};

}  // namespace zklock::process
