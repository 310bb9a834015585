#pragma once

#include "base/clock.h"
#include "base/unique_fd.h"

namespace zklock::process {

/// A timer descriptor on CLOCK_BOOTTIME, not armed. Throws std::system_error.
[[nodiscard]] UniqueFd MakeTimer();

/// Makes the descriptor readable from `moment` on: at once if it has passed, never if it is kNever.
void SetTimer(int timer, TimePoint moment);

/// How much later than its timer a guard sets its ContinueTimer: a guard that is not stopped sets
/// both again before the latter fires.
inline constexpr Duration kContinueDelay = std::chrono::milliseconds(20);

/// A timer on CLOCK_BOOTTIME that sends CONT to this process, where CONT should be blocked. If the
/// process is stopped at that moment, the kernel continues it (timer_create(2)). If the system
/// denies the timer, for example beyond RLIMIT_SIGPENDING, this class does nothing. Not inherited
/// by fork().
class ContinueTimer {
 public:
  /// Creates the timer, not armed.
  ContinueTimer();
  ~ContinueTimer();
  ContinueTimer(const ContinueTimer&) = delete;
  ContinueTimer& operator=(const ContinueTimer&) = delete;

  /// Sends CONT at `moment`, and every 100 ms after that: at once if it has passed, never if it is
  /// kNever.
  void Set(TimePoint moment) const;

 private:
  int id_ = -1;  // the kernel's ID of the timer
};

}  // namespace zklock::process
