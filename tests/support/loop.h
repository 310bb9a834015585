#pragma once

#include <functional>
#include <stdexcept>

#include "base/clock.h"
#include "process/loop/event_loop.h"
#include "support/child.h"

namespace zklock::test {

/// Wakes a loop at a given time.
class Moment final : public EventSource {
 public:
  explicit Moment(TimePoint when) : when_(when) {}
  Interest GetInterest() override { return {.wake = when_}; }
  void OnReady(short /*revents*/) override {}
  [[nodiscard]] bool has_come() const { return BootClock::now() >= when_; }

 private:
  TimePoint when_;
};

/// Runs a loop until `holds`, checked after each round, is true; throws after kPatience.
inline void RunUntil(process::EventLoop& loop, const std::function<bool()>& holds) {
  Moment patience(BootClock::now() + kPatience);
  loop.Add(patience);
  bool is_so = false;
  while (!(is_so = holds()) && !patience.has_come()) loop.RunOnce();
  loop.Remove(patience);
  if (!is_so) throw std::runtime_error("the expected condition did not occur");
}

}  // namespace zklock::test
