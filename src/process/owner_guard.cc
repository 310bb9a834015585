#include "process/owner_guard.h"

#include <fcntl.h>
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
  page_->lease.Set(duty_.lease_end, duty_.grace);
  const UniqueFd timer = MakeTimer();
  int ends[2];
  Check(pipe2(ends, O_CLOEXEC), "pipe");
  const UniqueFd ready(ends[0]);
  UniqueFd guards_end(ends[1]);
  Fork();
  guards_end.Reset();
  // The guard closes its copy of that end when it is ready or dies. A guard that is stopped does
  // neither: hence the timer.
  SetTimer(timer.get(), page_->lease.StopTime());
  std::array<pollfd, 2> polled = {{{ready.get(), POLLIN, 0}, {timer.get(), POLLIN, 0}}};
  while (poll(polled.data(), polled.size(), -1) < 0 && errno == EINTR) {
  }
}

OwnerGuard::~OwnerGuard() { Dismiss(); }

void OwnerGuard::SetLease(TimePoint lease_end, Duration grace) {
  // CONT wakes the guard, which has not been reaped, to plan anew.
  if (page_->lease.Set(lease_end, grace) && guard_ > 0) kill(guard_, SIGCONT);
}

void OwnerGuard::SignalOwner(EndCause cause) {
  if (page_->cause.Set(cause)) (void)duty_.owner.Signal(duty_.signal);
}

void OwnerGuard::BeginClose() {
  page_->is_closing = true;
  OnOwnerReleased();
}

void OwnerGuard::LeaveGuardRunning() {
  guard_ = 0;
  process_.reset();
  next_fork_ = kNever;
}

void OwnerGuard::Fork() {
  const pid_t keeper = getpid();
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  guard_ = fork();
  if (guard_ == 0) Watch(keeper);
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

void OwnerGuard::Watch(pid_t keeper) noexcept {
  try {
    WatchUntilEnd(keeper);
  } catch (...) {
    _exit(kExitInternal);  // the keeper forks another
  }
  _exit(kExitOk);
}

void OwnerGuard::WatchUntilEnd(pid_t keeper) {
  setsid();  // a KILL or STOP of the keeper's group spares the guard
  // CONT tells of the keeper's death and of a lease that has moved back, and wakes a stopped guard.
  sigset_t resumed;
  sigemptyset(&resumed);
  sigaddset(&resumed, SIGCONT);
  const UniqueFd signals(Check(signalfd(-1, &resumed, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd"));
  Check(prctl(PR_SET_PDEATHSIG, SIGCONT), "prctl");
  TakeGuardName();
  const UniqueFd timer = MakeTimer();
  // Last: closing the other descriptors tells the keeper that this guard is ready.
  KeepOnlyDescriptors({duty_.owner.fd(), signals.get(), timer.get()});
  for (;;) {
    const bool orphaned = getppid() != keeper;
    const bool owner_ended = duty_.owner.HasEnded();
    if (orphaned && (owner_ended || page_->is_closing)) break;
    const TimePoint now = BootClock::now();
    const TimePoint lease_end = page_->lease.end();
    const TimePoint stop = page_->lease.StopTime();
    if (orphaned && now >= lease_end) return;  // the servers end the session
    if (orphaned) SignalOwner(EndCause::kAbandoned);
    if (now >= stop) SignalOwner(EndCause::kLeaseRanOut);

    SetTimer(timer.get(), orphaned ? lease_end : page_->cause.Get() ? kNever : stop);
    std::array<pollfd, 3> polled = {{{timer.get(), POLLIN, 0},
                                     {signals.get(), POLLIN, 0},
                                     {owner_ended ? -1 : duty_.owner.fd(), POLLIN, 0}}};
    if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) ThrowErrno("poll");
    signalfd_siginfo taken;
    while (read(signals.get(), &taken, sizeof taken) > 0) {
    }
  }
  const bool closes = page_->is_closing || !page_->keeps_session;
  if (duty_.when_orphaned && closes) duty_.when_orphaned();
}

}  // namespace zklock::process
