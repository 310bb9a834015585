#include "process/loop/timer.h"

#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>

#include "process/loop/system_error.h"

namespace zklock::process {
namespace {

// The pause between CONTs: one is not enough if the process is stopped again right after it.
constexpr timespec kAgain = {.tv_sec = 0, .tv_nsec = 100'000'000};

// Zero would disarm the timer, and a negative time would be refused; both mean a moment at or
// before boot.
timespec WhenArmed(TimePoint moment) {
  const Duration since_boot = std::max(moment.time_since_epoch(), Duration(1));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_boot);
  return {.tv_sec = seconds.count(), .tv_nsec = (since_boot - seconds).count()};
}

}  // namespace

UniqueFd MakeTimer() {
  return UniqueFd(
      Check(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd_create"));
}

void SetTimer(int timer, TimePoint moment) {
  itimerspec setting{};  // all zero: disarmed
  if (moment != kNever) setting.it_value = WhenArmed(moment);
  // This also clears an expiration that was not read.
  Check(timerfd_settime(timer, TFD_TIMER_ABSTIME, &setting, nullptr), "timerfd_settime");
}

// Uses system calls, because before glibc 2.34 these functions are in a separate library.
static_assert(sizeof(time_t) == sizeof(long), "SYS_timer_settime has the kernel's timespec");

ContinueTimer::ContinueTimer() {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGCONT;
  if (syscall(SYS_timer_create, CLOCK_BOOTTIME, &event, &id_) != 0) id_ = -1;
}

ContinueTimer::~ContinueTimer() {
  if (id_ >= 0) syscall(SYS_timer_delete, id_);
}

void ContinueTimer::Set(TimePoint moment) const {
  itimerspec setting{};
  if (moment != kNever) setting = {.it_interval = kAgain, .it_value = WhenArmed(moment)};
  if (id_ >= 0) syscall(SYS_timer_settime, id_, TIMER_ABSTIME, &setting, nullptr);
}

}  // namespace zklock::process
