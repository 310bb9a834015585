#include "process/loop/timer.h"

#include <sys/timerfd.h>

#include <algorithm>

#include "process/loop/system_error.h"

namespace zklock::process {

UniqueFd MakeTimer() {
  return UniqueFd(
      Check(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd_create"));
}

void SetTimer(int timer, TimePoint moment) {
  itimerspec setting{};  // all zero: disarmed
  if (moment != kNever) {
    // Zero would disarm the timer and less would be refused; such moments are before the boot.
    const Duration since_boot = std::max(moment.time_since_epoch(), Duration(1));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_boot);
    setting.it_value.tv_sec = seconds.count();
    setting.it_value.tv_nsec = (since_boot - seconds).count();
  }
  // This also clears an expiration that was not read.
  Check(timerfd_settime(timer, TFD_TIMER_ABSTIME, &setting, nullptr), "timerfd_settime");
}

}  // namespace zklock::process
