#include "base/clock.h"

#include <ctime>

namespace zklock {

BootClock::time_point BootClock::now() noexcept {
  timespec now{};
  // Cannot fail: the clock has existed since Linux 2.6.39, and the pointer is valid.
  clock_gettime(CLOCK_BOOTTIME, &now);
  return time_point(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

TimePoint After(TimePoint start, Duration span) noexcept {
  // `start` may be before boot, so kNever - start could overflow.
  if (span > Duration::zero() && start > kNever - span) return kNever;
  return start + span;
}

}  // namespace zklock
