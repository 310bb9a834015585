#pragma once

#include <chrono>

namespace zklock {

using Duration = std::chrono::nanoseconds;

/// CLOCK_BOOTTIME as a chrono clock: monotonic, and it counts while the host sleeps, which a lease
/// needs (a session expires on the servers whether or not this host was suspended).
struct BootClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;

  static time_point now() noexcept;
};

using TimePoint = BootClock::time_point;

/// A deadline that never comes.
inline constexpr TimePoint kNever = TimePoint::max();

/// Where code that decides by time gets it from, so that a test can tick it by hand.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual TimePoint Now() const = 0;
};

/// The real one.
class SystemClock final : public Clock {
 public:
  [[nodiscard]] TimePoint Now() const override { return BootClock::now(); }
};

/// `start` + `span`, and kNever instead of an overflow (a wait of 300 years is a wait for ever).
[[nodiscard]] TimePoint After(TimePoint start, Duration span) noexcept;

}  // namespace zklock
