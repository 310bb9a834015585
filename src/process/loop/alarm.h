#pragma once

#include <poll.h>

#include "base/clock.h"
#include "base/event_source.h"

namespace zklock::process {

/// Wakes the loop while a descriptor is readable, and once at a given moment. The code that runs
/// the loop then decides what to do.
class Alarm final : public EventSource {
 public:
  Alarm() = default;
  explicit Alarm(int fd) : fd_(fd) {}
  explicit Alarm(TimePoint moment) : moment_(moment) {}
  /// `fd`: -1 for no descriptor.
  void Set(int fd) { fd_ = fd; }
  void Set(TimePoint moment) { moment_ = moment; }
  Interest GetInterest() override { return {.fd = fd_, .events = POLLIN, .wake = moment_}; }
  void OnReady(short /*revents*/) override {
    if (moment_ <= BootClock::now()) moment_ = kNever;
  }

 private:
  int fd_ = -1;
  TimePoint moment_ = kNever;
};

}  // namespace zklock::process
