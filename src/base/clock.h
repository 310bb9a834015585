#pragma once

#include <chrono>

namespace zklock {

using Duration = std::chrono::nanoseconds;

/// CLOCK_BOOTTIME as a chrono clock: monotonic, and it also counts while the host is suspended,
/// which a lease needs (the servers expire a session whether or not this host is suspended).
struct BootClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;

  static time_point now() noexcept;
};

using TimePoint = BootClock::time_point;

/// A deadline that is never reached.
inline constexpr TimePoint kNever = TimePoint::max();

/// The source of time for code whose decisions depend on it; a test can advance it by hand.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual TimePoint Now() const = 0;
};

/// The real clock.
class SystemClock final : public Clock {
 public:
  [[nodiscard]] TimePoint Now() const override { return BootClock::now(); }
};

/// Returns `start` + `span`, or kNever if the sum overflows (300 years count as forever).
[[nodiscard]] TimePoint After(TimePoint start, Duration span) noexcept;

}  // namespace zklock
