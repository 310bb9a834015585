#include "process/guard/owner_guard.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>
#include <vector>

#include "base/exit_status.h"
#include "process/guard/guard_link.h"
#include "process/guard/nested_run.h"
#include "process/loop/child.h"
#include "process/loop/descriptors.h"
#include "process/loop/locked_memory.h"
#include "process/loop/system_error.h"
#include "process/loop/timer.h"
#include "process/tree/guard_name.h"

namespace zklock::process {
namespace {

constexpr Duration kForkPause = std::chrono::seconds(1);
// The same limit as for a command's guard.
constexpr Duration kForkTime = std::chrono::seconds(1);

}  // namespace

OwnerGuard::OwnerGuard(OwnerDuty duty) : duty_(std::move(duty)) {
  page_->lease.Set(kNever, {});
  Fork();
  AwaitReady(BootClock::now() + kForkTime);
}

// The guard sends a message when it is ready. A guard that dies closes its end. A stopped one does
// neither, hence the timer. The message is left unread, so that this function can be called again.
void OwnerGuard::AwaitReady(TimePoint deadline) const {
  const UniqueFd timer = MakeTimer();
  SetTimer(timer.get(), deadline);
  std::array<pollfd, 2> polled = {{{socket_.get(), POLLIN, 0}, {timer.get(), POLLIN, 0}}};
  while (poll(polled.data(), polled.size(), -1) < 0 && errno == EINTR) {
  }
}

bool OwnerGuard::IsGone() const {
  pollfd end = {socket_.get(), 0, 0};
  return poll(&end, 1, 0) > 0 && (end.revents & POLLHUP) != 0;
}

bool OwnerGuard::WasReady() const {
  char first;
  const auto peek = [&] { return recv(socket_.get(), &first, 1, MSG_PEEK | MSG_DONTWAIT); };
  // The first call fails if the guard has left one of our messages unread (ECONNRESET).
  return peek() > 0 || peek() > 0;
}

void OwnerGuard::BeginHold(TimePoint lease_end, Duration grace) {
  page_->lease.Set(lease_end, grace);
  page_->stage = Stage::kHolding;
  if (IsGone()) {
    Dismiss();
    Fork();
  } else {
    kill(guard_, SIGCONT);  // wakes the guard, which then plans for the lease
  }
  AwaitReady(page_->lease.StopTime());
  if (IsGone()) {
    throw std::system_error(EAGAIN, std::generic_category(), "starting the guard of --hold");
  }
}

OwnerGuard::~OwnerGuard() {
  if (!duty_.is_needed || !duty_.is_needed()) Dismiss();
}

void OwnerGuard::SetLease(TimePoint lease_end, Duration grace) {
  // CONT wakes the guard to plan again. It has not been reaped, so the pid is still the guard's.
  if (page_->lease.Set(lease_end, grace) && guard_ > 0) kill(guard_, SIGCONT);
}

void OwnerGuard::SignalOwner(EndCause cause) {
  if (page_->cause.Set(cause)) (void)duty_.owner->Signal(duty_.signal);
}

void OwnerGuard::AddNestedRun(int connection) {
  if (!SendNestedRun(socket_.get(), connection)) page_->keeps_session = true;
}

void OwnerGuard::BeginClose() {
  OnOwnerReleased();
  page_->stage = Stage::kClosing;
}

void OwnerGuard::Fork() {
  const pid_t keeper = getpid();
  GuardSocket ends = MakeGuardSocket();
  guard_ = ForkBlocked("fork");
  if (guard_ == 0) Watch(keeper, ends.guard.get());
  socket_ = std::move(ends.zklock);
  process_ = PidFd::Open(guard_);
  // For lack of descriptors or memory, the guard's death would not be noticed.
  if (process_->fd() < 0 && IsShortage(errno)) ThrowErrno("watching another process (pidfd_open)");
}

void OwnerGuard::Dismiss() {
  if (guard_ == 0) return;
  kill(guard_, SIGKILL);
  WaitFor(std::exchange(guard_, 0));
  process_.reset();
}

EventSource::Interest OwnerGuard::GetInterest() {
  return {.fd = process_ ? process_->fd() : -1, .events = POLLIN, .wake = next_fork_};
}

void OwnerGuard::OnReady(short /*revents*/) {
  const bool failed_to_start = process_ && !WasReady();
  Dismiss();
  page_->keeps_session = true;  // until ForgetNestedRuns(): the new guard does not know of the runs
  if (failed_to_start) {
    next_fork_ = BootClock::now() + kForkPause;
    return;
  }
  try {
    Fork();
    next_fork_ = kNever;
  } catch (const std::system_error&) {
    next_fork_ = BootClock::now() + kForkPause;
  }
}

void OwnerGuard::Watch(pid_t keeper, int keepers_end) noexcept {
  try {
    WatchUntilEnd(keeper, keepers_end);
  } catch (...) {
    _exit(kExitInternal);  // the keeper then forks another guard
  }
  _exit(kExitOk);
}

void OwnerGuard::WatchUntilEnd(pid_t keeper, int keepers_end) {
  setsid();  // so that a KILL or STOP sent to the keeper's group spares the guard
  // CONT reports that the keeper has died or the lease was shortened, and wakes a stopped guard.
  sigset_t resumed;
  sigemptyset(&resumed);
  sigaddset(&resumed, SIGCONT);
  const UniqueFd signals(Check(signalfd(-1, &resumed, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd"));
  Check(prctl(PR_SET_PDEATHSIG, SIGCONT), "prctl");
  TakeGuardName();
  const UniqueFd timer = MakeTimer();
  const ContinueTimer continue_timer;
  const int owner = duty_.owner != nullptr ? duty_.owner->fd() : -1;
  KeepOnlyDescriptors({keepers_end, owner, signals.get(), timer.get()});
  Send(keepers_end, {.kind = Message::Kind::kReady});
  NestedRuns nested_runs;
  bool misses_run = false;
  bool is_closed = false;  // the keeper's end
  bool is_locked = false;
  for (;;) {
    const bool orphaned = getppid() != keeper;  // before reading, so that no message is missed
    for (;;) {
      Received received = Receive(keepers_end);
      is_closed = received.is_closed;
      if (!received.message) break;
      misses_run = misses_run || !received.connection;
      if (received.connection) nested_runs.Add(std::move(received.connection));
    }
    if (orphaned) nested_runs.End();
    const bool runs_are_left = nested_runs.AreLeft();
    const bool owner_ended = duty_.owner != nullptr && duty_.owner->HasEnded();
    const bool holds = page_->stage == Stage::kHolding;
    if (holds && !std::exchange(is_locked, true)) LockMemory();
    if (orphaned && (!holds || (owner_ended && !runs_are_left))) break;
    const TimePoint now = BootClock::now();
    const TimePoint lease_end = page_->lease.end();
    const TimePoint stop = page_->lease.StopTime();
    if (orphaned && now >= lease_end) return;  // the servers end the session themselves
    if (holds && orphaned) SignalOwner(EndCause::kAbandoned);
    if (holds && now >= stop) SignalOwner(EndCause::kLeaseRanOut);

    const TimePoint look = orphaned             ? std::min(lease_end, nested_runs.wake())
                           : page_->cause.Get() ? kNever
                                                : stop;
    SetTimer(timer.get(), look);
    continue_timer.Set(After(look, kContinueDelay));
    std::vector<pollfd> polled = {{timer.get(), POLLIN, 0},
                                  {signals.get(), POLLIN, 0},
                                  {is_closed ? -1 : keepers_end, POLLIN, 0},
                                  {holds && !owner_ended ? owner : -1, POLLIN, 0}};
    nested_runs.AppendTo(polled);
    if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) ThrowErrno("poll");
    signalfd_siginfo taken;
    while (read(signals.get(), &taken, sizeof taken) > 0) {
    }
  }
  const bool may_close = page_->stage != Stage::kHolding || (!misses_run && !page_->keeps_session);
  if (duty_.when_orphaned && may_close) duty_.when_orphaned();
}

}  // namespace zklock::process
