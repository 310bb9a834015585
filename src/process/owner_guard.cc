#include "process/owner_guard.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include "base/exit_status.h"
#include "process/descriptors.h"
#include "process/guard_name.h"
#include "process/system_error.h"
#include "process/timer.h"

namespace zklock::process {
namespace {

constexpr Duration kForkPause = std::chrono::seconds(1);

}  // namespace

OwnerGuard::OwnerGuard(OwnerDuty duty) : duty_(std::move(duty)) {
  page_->lease_end.Set(duty_.lease_end);
  Fork();
}

OwnerGuard::~OwnerGuard() { Dismiss(); }

void OwnerGuard::ExtendLease(TimePoint lease_end) {
  if (lease_end > page_->lease_end.Get()) page_->lease_end.Set(lease_end);
}

void OwnerGuard::TellOwner() { Tell(*page_, duty_); }

void OwnerGuard::LeaveAlone() {
  guard_ = 0;
  process_.reset();
  next_fork_ = kNever;
}

void OwnerGuard::Tell(Page& page, const OwnerDuty& duty) {
  if (!page.told.exchange(true)) (void)duty.owner.Signal(duty.signal);
}

void OwnerGuard::Fork() {
  const pid_t keeper = getpid();
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  guard_ = fork();
  if (guard_ == 0) Watch(duty_, *page_, keeper);
  const int error = errno;
  sigprocmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  Check(guard_, "fork");
  process_ = PidFd::Open(guard_);
}

void OwnerGuard::Dismiss() {
  if (guard_ <= 0) return;
  kill(guard_, SIGKILL);
  while (waitpid(guard_, nullptr, 0) < 0 && errno == EINTR) {
  }
  guard_ = 0;
  process_.reset();
}

EventSource::Interest OwnerGuard::GetInterest() {
  return {.fd = process_ ? process_->fd() : -1, .events = POLLIN, .wake = next_fork_};
}

void OwnerGuard::OnReady(short /*revents*/) {
  Dismiss();
  try {
    Fork();
    next_fork_ = kNever;
  } catch (const std::system_error&) {
    next_fork_ = BootClock::now() + kForkPause;
  }
}

void OwnerGuard::Watch(const OwnerDuty& duty, Page& page, pid_t keeper) noexcept {
  try {
    WatchUntilEnd(duty, page, keeper);
  } catch (...) {
    _exit(kExitInternal);  // the keeper forks another
  }
  _exit(kExitOk);
}

void OwnerGuard::WatchUntilEnd(const OwnerDuty& duty, Page& page, pid_t keeper) {
  TakeGuardName();
  setsid();  // a KILL or STOP of the keeper's group spares the guard
  // CONT tells of the keeper's death, and wakes a guard that somebody has stopped.
  sigset_t resumed;
  sigemptyset(&resumed);
  sigaddset(&resumed, SIGCONT);
  const UniqueFd signals(Check(signalfd(-1, &resumed, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd"));
  Check(prctl(PR_SET_PDEATHSIG, SIGCONT), "prctl");
  const UniqueFd timer = MakeTimer();
  KeepOnlyDescriptors({duty.owner.fd(), signals.get(), timer.get()});
  for (;;) {
    const bool orphaned = getppid() != keeper;
    const bool owner_ended = duty.owner.HasEnded();
    if (orphaned && owner_ended) break;
    const TimePoint now = BootClock::now();
    const TimePoint lease_end = page.lease_end.Get();
    const TimePoint stop = StopAt(lease_end, duty.grace);
    if (orphaned && now >= lease_end) return;  // the servers end the session
    if (orphaned || now >= stop) Tell(page, duty);

    SetTimer(timer.get(), orphaned ? lease_end : page.told ? kNever : stop);
    std::array<pollfd, 3> polled = {{{timer.get(), POLLIN, 0},
                                     {signals.get(), POLLIN, 0},
                                     {owner_ended ? -1 : duty.owner.fd(), POLLIN, 0}}};
    if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) ThrowErrno("poll");
    signalfd_siginfo taken;
    while (read(signals.get(), &taken, sizeof taken) > 0) {
    }
  }
  if (duty.when_orphaned) duty.when_orphaned();
}

}  // namespace zklock::process
