#pragma once

#include "base/clock.h"

namespace zklock::test {

/// A clock that changes only when the test advances it.
class FakeClock final : public Clock {
 public:
  [[nodiscard]] TimePoint Now() const override { return now_; }
  void Advance(Duration span) { now_ += span; }
  void Set(TimePoint now) { now_ = now; }

 private:
  TimePoint now_ = TimePoint(std::chrono::hours(1));
};

}  // namespace zklock::test
