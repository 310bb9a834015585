#include "process/guard/guard.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <new>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/exit_status.h"
#include "process/guard/guarded_tree.h"
#include "process/guard/nested_run.h"
#include "process/loop/descriptors.h"
#include "process/loop/locked_memory.h"
#include "process/loop/system_error.h"
#include "process/loop/timer.h"
#include "process/tree/guard_name.h"
#include "protocol/lease.h"

namespace zklock::process {

namespace {

using std::chrono::milliseconds;

// How many processes to reap at once before other work: a fork bomb never stops leaving zombies.
constexpr int kMostReaped = 1000;
// How long to reap zombies before a walk, which would spend far more time on each of them.
constexpr Duration kReapTime = milliseconds(200);
// How often the tree is walked to send it the stop signal.
constexpr Duration kStopPause = milliseconds(50);
// Shorter waits are not reported.
constexpr Duration kQuietWait = milliseconds(1000);
// A round over a huge tree may take this long before zklock assumes that the guard hangs.
constexpr Duration kLongRound = milliseconds(500);
// How many milliseconds to wait before retrying for lack of memory.
constexpr int kRetryPause = 5;

class Guard {
 public:
  Guard(const GuardDuty& duty, UniqueFd socket) : duty_(duty), socket_(std::move(socket)) {}

  void Run();
  void ReportFailure(const std::system_error& error) const { SendFailure(socket_.get(), error); }

 private:
  // The phase only advances down this list; phases may be skipped.
  enum class Phase {
    kReady,     // the command is forked, but may not run yet
    kRunning,   // the command runs or, with Descendants::kWait, its descendants do
    kReported,  // the command ended by itself; zklock may not have read the report yet
    kEnding,    // every process has been sent the stop signal; new ones also get it
    kKilling,   // every process is sent KILL, repeatedly
    kFinished,  // no process is left to end; zklock holds the lock until it dismisses the guard
  };

  void Begin();
  void TakeTurn();
  void AwaitRelease();
  void Wait();
  void PromiseLook(TimePoint look) const;
  void ReadExecResult();
  void ReadMessages();
  void BeginCommand();
  void Forward(const Message& message);
  void Reap();
  void CommandChanged(int wait_status);
  [[nodiscard]] bool MustEndForOuter() const;
  void Advance(TimePoint now);
  void CommandEnded(TimePoint now);
  [[nodiscard]] bool MustReportAwaited(TimePoint now);
  void ReportAwaited(Message::Kind kind, const std::vector<Survivor>& processes) const;
  void BeginEnding(TimePoint now);
  void Kill();
  void Finish();

  [[nodiscard]] bool HasProcesses() const;
  [[nodiscard]] std::vector<Survivor> Survivors() const;
  [[nodiscard]] TimePoint LeaseEnd() const;
  [[nodiscard]] TimePoint StopTime() const;
  [[nodiscard]] std::optional<EndCause> WhatIsOver(TimePoint now) const;
  [[nodiscard]] TimePoint KillTime() const;
  [[nodiscard]] TimePoint NextLook() const;
  [[nodiscard]] bool MustKill() const;
  [[nodiscard]] bool AwaitsSurvivors(TimePoint now) const;
  [[nodiscard]] bool MustContinueZklock() const;
  [[nodiscard]] bool ZklockIsGone() const;
  [[nodiscard]] bool MayCloseSession() const;
  void SendStatus(Message::Kind kind) const;

  const GuardDuty& duty_;
  UniqueFd socket_;
  UniqueFd timer_;
  std::optional<ContinueTimer> continue_timer_;  // created here: timers are not inherited by fork
  UniqueFd signals_;                             // CHLD, and CONT, which reports zklock's death
  UniqueFd link_;                                // to the command; closed once it has been executed
  GuardedTree tree_{duty_.spec.stop_signal, duty_.cgroup};
  NestedRuns nested_runs_;
  std::vector<pollfd> polled_;  // of Wait(); kept, so that it needs no more memory

  Phase phase_ = Phase::kReady;
  pid_t command_ = 0;
  std::optional<int> command_status_;  // set once the command has been reaped
  int suspended_by_ = 0;               // the signal that suspended the command; 0: not suspended
  bool leaves_job_ = false;            // leave zklock suspended: `fg` will show how the job ended
  std::optional<TimePoint> report_awaited_at_;  // when to send kAwaited; kNever: already sent
  bool has_children_ = true;
  bool reaps_more_ = false;  // Reap() has not reaped every zombie yet
  bool is_orphaned_ = false;
  bool misses_run_ = false;  // no descriptor or memory was left for some nested run's connection
  bool is_executed_ = false;
  TimePoint ending_since_ = kNever;
};

void Guard::Run() {
  Begin();
  while (phase_ != Phase::kFinished) {
    try {
      TakeTurn();
    } catch (const std::bad_alloc&) {
      poll(nullptr, 0, kRetryPause);  // the next turn does the rest
    }
  }
  AwaitRelease();
  if (!MayCloseSession()) return;
  // The ancestors need not hold their locks during the close.
  for (const int descriptor : duty_.spec.kept_open) close(descriptor);
  duty_.spec.when_orphaned();
}

void Guard::TakeTurn() {
  Wait();
  Reap();
  ReadMessages();
  Advance(BootClock::now());
}

// zklock kills the guard once the session has been closed. If zklock ends without doing so, the
// session may still be open.
void Guard::AwaitRelease() {
  for (;;) {
    // zklock may suspend itself even now, if it still believes that the command is suspended.
    while (MustContinueZklock() && !ZklockIsGone()) {
      kill(duty_.zklock, SIGCONT);
      poll(nullptr, 0, 1);
    }
    const bool is_gone = ZklockIsGone();  // before reading, so that no message is missed
    ReadMessages();
    const bool runs_are_left = nested_runs_.AreLeft();
    if (is_gone && !runs_are_left) return;
    Wait();
    Reap();
  }
}

bool Guard::MayCloseSession() const {
  return duty_.spec.when_orphaned && Survivors().empty() && !misses_run_ &&
         !duty_.page.keeps_session;
}

void Guard::Begin() {
  Check(prctl(PR_SET_CHILD_SUBREAPER, 1), "prctl");
  timer_ = MakeTimer();
  continue_timer_.emplace();
  tree_.Open();
  sigset_t watched;
  sigemptyset(&watched);
  sigaddset(&watched, SIGCHLD);
  sigaddset(&watched, SIGCONT);
  signals_.Reset(Check(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd"));
  // The kernel sends CONT when zklock dies, which also wakes a guard that was stopped. EOF on the
  // socket is no substitute: a helper process that zklock forked may hold a copy of zklock's end
  // after zklock's death.
  Check(prctl(PR_SET_PDEATHSIG, SIGCONT), "prctl");
  if (ZklockIsGone())
    raise(SIGCONT);  // zklock died before the prctl: no CONT will arrive, but Wait() must see one

  // A command that is stopped right after the fork must not have the guard's name, or it would get
  // no stop signal when the lease ends.
  TakeCommandName();
  link_ = ForkCommand(duty_.image, duty_.signals, duty_.page, duty_.cgroup);
  command_ = duty_.page.command;
  TakeGuardName();
  if (duty_.page.cgroup_error != 0) tree_.RemoveCgroup();
  // The guard leaves zklock's session and process group so that a KILL or STOP sent to the group
  // does not hit it; it does so after the fork, so that the command stays in them. It starts a new
  // session, not just a group: otherwise it would keep the command's group from being orphaned
  // (setpgid(2), stops from the terminal).
  setsid();
  Send(socket_.get(), {.kind = Message::Kind::kReady});
  LeaveWorkingDirectory();
  std::vector<int> kept = duty_.spec.kept_open;
  kept.insert(kept.end(), {socket_.get(), timer_.get(), signals_.get(), link_.get()});
  for (const int descriptor : tree_.descriptors()) kept.push_back(descriptor);
  KeepOnlyDescriptors(kept);
}

void Guard::Wait() {
  polled_ = {{is_orphaned_ ? -1 : socket_.get(), POLLIN, 0},
             {timer_.get(), POLLIN, 0},
             {signals_.get(), POLLIN, 0},
             {phase_ != Phase::kReady ? link_.get() : -1, POLLIN, 0}};
  const std::size_t own = polled_.size();
  int patience = -1;
  try {
    (void)nested_runs_.AreLeft();  // otherwise a closed connection would stay ready
    nested_runs_.AppendTo(polled_);
  } catch (const std::bad_alloc&) {
    polled_.resize(own);
    patience = kRetryPause;
  }
  const TimePoint look = NextLook();
  // zklock checks `look`, which does not include the time of a report: a late report does no harm.
  const bool reports = phase_ == Phase::kRunning && report_awaited_at_;
  SetTimer(timer_.get(),
           std::min({look, reports ? *report_awaited_at_ : kNever, nested_runs_.wake()}));
  continue_timer_->Set(After(look, kContinueDelay));
  const bool is_watched = phase_ != Phase::kReady;
  if (is_watched) duty_.page.guard_looks_at.Set(look);
  if (poll(polled_.data(), polled_.size(), patience) < 0 && errno != EINTR) ThrowErrno("poll");
  // This promise is never earlier than the one above: a guard that gets no CPU time is not hung.
  if (is_watched) PromiseLook(look);

  signalfd_siginfo taken;
  while (read(signals_.get(), &taken, sizeof taken) > 0) {
  }
  is_orphaned_ = ZklockIsGone();  // only after the read, so that no CONT is missed
}

// Promises to look by `look`, or by the end of a long round if that is later.
void Guard::PromiseLook(TimePoint look) const {
  duty_.page.guard_looks_at.Set(std::max(look, BootClock::now() + kLongRound));
}

// Also checks the parent: zklock may have been killed since the guard last looked, and can then no
// longer close its session. (A zklock that ends by itself dismisses the guard first, unless its
// close got no answer.)
bool Guard::ZklockIsGone() const { return is_orphaned_ || getppid() != duty_.zklock; }

void Guard::ReadExecResult() {
  if (!link_ || phase_ == Phase::kReady) return;
  int error = 0;
  const ssize_t size = recv(link_.get(), &error, sizeof error, MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  link_.Reset();
  if (size == static_cast<ssize_t>(sizeof error)) {
    if (!command_status_) {
      kill(command_, SIGKILL);  // it is about to exit, unless something stopped it
      waitpid(command_, nullptr, 0);
      command_status_ = SIGKILL;  // Forward() must no longer use the pid
      suspended_by_ = 0;
    }
    tree_.RemoveCgroup();
    Send(socket_.get(), {.kind = Message::Kind::kExecFailed, .number = error});
    phase_ = Phase::kFinished;
    return;
  }
  // If the tree had to end before this was known, the command may have been killed before its
  // execve.
  if (phase_ >= Phase::kEnding) return;
  is_executed_ = true;
  duty_.page.run_end.Set(After(BootClock::now(), duty_.spec.max_run));
  PromiseLook(NextLook());  // before zklock relies on it
  Send(socket_.get(), {.kind = Message::Kind::kStarted});
}

void Guard::ReadMessages() {
  for (;;) {
    Received received = Receive(socket_.get());
    is_orphaned_ = is_orphaned_ || received.is_closed;
    if (!received.message) break;
    if (received.message->kind == Message::Kind::kBegin) BeginCommand();
    if (received.message->kind == Message::Kind::kForward) Forward(*received.message);
    if (received.message->kind != Message::Kind::kNestedRun) continue;
    const bool missed_one = std::exchange(misses_run_, true);
    if (!received.connection) continue;
    nested_runs_.Add(std::move(received.connection));
    misses_run_ = missed_one;
  }
  if (is_orphaned_) nested_runs_.End();
}

void Guard::BeginCommand() {
  if (phase_ != Phase::kReady) return;  // the tree has already been ordered to end
  phase_ = Phase::kRunning;
  if (!duty_.page.cause.Get() && BootClock::now() < duty_.page.lease.StopTime()) {
    continue_timer_->Set(duty_.page.lease.StopTime());  // Wait() has not set it yet
    LetCommandRun(link_);
    LockMemory();  // neither delays nor affects the already forked command
  } else {
    // The lock is already lost, or zklock was stopped after acquiring it: the command does not
    // begin. The cause is set now, since the lease may be extended before the guard looks again.
    duty_.page.cause.Set(EndCause::kLeaseRanOut);
    link_.Reset();
  }
}

void Guard::Forward(const Message& message) {
  Reap();  // a command that has just ended would swallow the signal
  if (!command_status_) {
    kill(command_, message.number);  // not yet reaped, so the pid is still the command's
  } else if (duty_.spec.descendants == Descendants::kWait) {
    tree_.Forward(message.number, message.more);
  }
}

void Guard::Reap() {
  reaps_more_ = false;
  for (int i = 0; i < kMostReaped; ++i) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG | __WALL | WUNTRACED | WCONTINUED);
    if (pid > 0) {
      // Once the command has been reaped, a descendant may get its pid.
      if (pid == command_ && !command_status_) CommandChanged(status);
      continue;
    }
    has_children_ = !(pid < 0 && errno == ECHILD);
    return;
  }
  has_children_ = true;
  reaps_more_ = true;
}

void Guard::CommandChanged(int wait_status) {
  suspended_by_ = WIFSTOPPED(wait_status) ? WSTOPSIG(wait_status) : 0;
  // No other message is sent until zklock has read the signal, so that the socket cannot fill up.
  if (suspended_by_ != 0 && phase_ <= Phase::kRunning &&
      duty_.page.suspended_by.exchange(suspended_by_) == 0) {
    Send(socket_.get(), {.kind = Message::Kind::kWake});
  }
  if (WIFSTOPPED(wait_status) || WIFCONTINUED(wait_status)) return;
  command_status_ = wait_status;
  duty_.page.command_is_reaped = true;
  // An outer guard may have ended the command before this guard's zklock learned that the run has
  // to end. In a later phase, a closed link proves nothing: the outer zklock may just have noticed
  // the end of this run.
  if (phase_ == Phase::kRunning && MustEndForOuter()) duty_.page.cause.Set(EndCause::kOuter);
}

/// Returns whether an ancestor that holds a lock has told this run to end.
bool Guard::MustEndForOuter() const {
  return std::any_of(duty_.spec.kept_open.begin(), duty_.spec.kept_open.end(), [](int link) {
    pollfd polled{link, POLLRDHUP, 0};
    return poll(&polled, 1, 0) == 1;
  });
}

// Returns true if zklock suspended itself with the command and the command is no longer suspended,
// which zklock cannot notice.
bool Guard::MustContinueZklock() const {
  return duty_.page.zklock_is_suspended && suspended_by_ == 0 && !leaves_job_;
}

bool Guard::MustKill() const { return is_orphaned_ || duty_.page.must_kill; }

// The guard watches the lease itself: a stopped zklock cannot send an order.
TimePoint Guard::LeaseEnd() const {
  return is_executed_ && duty_.spec.outlives_lease ? kNever : duty_.page.lease.end();
}

TimePoint Guard::StopTime() const {
  return protocol::StopTime(LeaseEnd(), duty_.page.lease.grace());
}

std::optional<EndCause> Guard::WhatIsOver(TimePoint now) const {
  if (now >= StopTime()) return EndCause::kLeaseRanOut;
  if (now < duty_.page.run_end.Get() || phase_ == Phase::kReported) return std::nullopt;
  // The run was in time if its command has ended by itself and no process that has to end is left.
  const bool is_done =
      command_status_ && (duty_.spec.descendants == Descendants::kLeave || !HasProcesses());
  return is_done ? std::nullopt : std::optional(EndCause::kRunTooLong);
}

TimePoint Guard::KillTime() const {
  return protocol::KillTime(ending_since_, LeaseEnd(), duty_.page.lease.grace());
}

TimePoint Guard::NextLook() const {
  if (reaps_more_) return BootClock::now();
  if (phase_ <= Phase::kReported && MustContinueZklock()) return BootClock::now() + kStopPause;
  switch (phase_) {
    case Phase::kReady:
      return kNever;
    case Phase::kRunning:
      // No signal reports the end of processes that are only in the cgroup.
      if (command_status_ && !has_children_) return BootClock::now() + kStopPause;
      return std::min(StopTime(), duty_.page.run_end.Get());
    case Phase::kReported:
      return StopTime();
    case Phase::kEnding:
      return std::min(BootClock::now() + kStopPause, KillTime());
    case Phase::kKilling:
      return BootClock::now() + tree_.kill_pause();
    case Phase::kFinished:
      return kNever;
  }
  return kNever;
}

void Guard::Advance(TimePoint now) {
  ReadExecResult();  // first: what the lease's end means depends on whether the command has begun
  if (MustContinueZklock() && !ZklockIsGone()) kill(duty_.zklock, SIGCONT);
  if (phase_ == Phase::kReady && MustKill()) BeginEnding(now);
  // Read this before is_settled: a cause that zklock sets after reading the report concerns only
  // the nested runs.
  const bool has_cause = duty_.page.cause.Get().has_value();
  // Processes that the command left behind may continue. (If zklock died before reading the report,
  // one KILL may have hit both zklock and the command, so the tree is killed.)
  if (phase_ == Phase::kReported && duty_.page.is_settled) phase_ = Phase::kFinished;
  if (phase_ == Phase::kRunning || phase_ == Phase::kReported) {
    if (is_orphaned_) duty_.page.cause.Set(EndCause::kAbandoned);
    const auto over = WhatIsOver(now);
    if (over) duty_.page.cause.Set(*over);
    if (has_cause || is_orphaned_ || over) BeginEnding(now);
  }
  if (phase_ == Phase::kRunning && command_status_) CommandEnded(now);
  if (phase_ == Phase::kEnding) {
    if (!HasProcesses()) {
      Finish();
    } else if (MustKill() || now >= KillTime()) {
      phase_ = Phase::kKilling;
    } else {
      if (tree_.StopSignalRound()) duty_.page.sent_stop = true;
      if (tree_.was_refused()) duty_.page.was_refused = true;
    }
  }
  if (phase_ == Phase::kKilling) Kill();
}

// Without children there are no survivors, whatever the walk found: a process that /proc hides
// looks alive to the walk until it is reaped.
std::vector<Survivor> Guard::Survivors() const {
  return has_children_ ? tree_.survivors() : std::vector<Survivor>();
}

// Orphans become children of this process. So without children and with an empty cgroup, no process
// is left.
bool Guard::HasProcesses() const { return has_children_ || tree_.HasContained(); }

void Guard::CommandEnded(TimePoint now) {
  const bool has_processes = HasProcesses();
  if (has_processes && duty_.spec.descendants == Descendants::kWait) {
    if (MustReportAwaited(now)) ReportAwaited(Message::Kind::kAwaited, tree_.Living());
    return;
  }
  if (has_processes && duty_.spec.descendants == Descendants::kKill) return BeginEnding(now);

  if (has_processes) {
    tree_.MarkAsLeft();
    SendProcesses(socket_.get(), Message::Kind::kLeftBehind, tree_.Living());
  } else {
    tree_.RemoveCgroup();
  }
  SendStatus(Message::Kind::kCommandEnded);
  phase_ = Phase::kReported;
}

/// Returns true only once, when it is time to report what keeps the lock held.
bool Guard::MustReportAwaited(TimePoint now) {
  if (!report_awaited_at_) {
    report_awaited_at_ = now + kQuietWait;
    Send(socket_.get(), {.kind = Message::Kind::kWake});  // see Supervisor::ReadsSignals()
  }
  if (now < *report_awaited_at_) return false;
  report_awaited_at_ = kNever;
  return true;
}

void Guard::ReportAwaited(Message::Kind kind, const std::vector<Survivor>& processes) const {
  if (processes.empty()) return;  // only nested runs, which zklock itself reports
  Message message{.kind = kind,
                  .number = processes.front().pid,
                  .more = static_cast<int>(processes.size()) - 1};
  processes.front().name.copy(message.name.data(), message.name.size() - 1);
  Send(socket_.get(), message);
}

void Guard::BeginEnding(TimePoint now) {
  phase_ = Phase::kEnding;
  ending_since_ = now;
  report_awaited_at_.reset();
  // A shell continues a job that it knows to be stopped, and then shows that it has ended. If STOP
  // was sent to the command alone, nothing would continue zklock.
  leaves_job_ = suspended_by_ != 0 && suspended_by_ != SIGSTOP;
  // Tell nested runs to end before sending signals, so that they know why they end. Without a
  // cause, the command has ended by itself, and zklock waits for its nested runs.
  if (duty_.page.cause.Get()) nested_runs_.End();
  duty_.page.had_ended = command_status_.has_value();
  duty_.page.is_ending = true;
  Send(socket_.get(), {.kind = Message::Kind::kWake});  // zklock may rely on an older promise
}

/// Returns whether a process that could not be signalled still needs the lock, which zklock then
/// keeps for as long as the lease lasts.
bool Guard::AwaitsSurvivors(TimePoint now) const {
  return !Survivors().empty() && !MustKill() && !duty_.page.IsLost() && now < LeaseEnd();
}

void Guard::Kill() {
  const bool only_survivors = tree_.KillRound(LeaseEnd(), [this] {
    const TimePoint until = BootClock::now() + kReapTime;
    do {
      Reap();
    } while (reaps_more_ && BootClock::now() < until);
  });
  Reap();
  if (tree_.has_sent_kill()) duty_.page.sent_kill = true;
  if (tree_.was_refused()) duty_.page.was_refused = true;
  if ((has_children_ && !only_survivors) || tree_.HasContained()) return;
  const TimePoint now = BootClock::now();
  if (!AwaitsSurvivors(now)) return Finish();
  if (MustReportAwaited(now)) ReportAwaited(Message::Kind::kAwaitedSurvivor, Survivors());
}

void Guard::Finish() {
  ReadExecResult();
  tree_.RemoveCgroup();
  const std::vector<Survivor> survivors = Survivors();
  SendProcesses(socket_.get(), Message::Kind::kSurvivor, survivors);
  SendStatus(Message::Kind::kTreeEnded);
  phase_ = Phase::kFinished;
  // zklock may stay suspended while the ancestors wait for its connections to close. This run no
  // longer relies on their locks.
  if (!survivors.empty() || nested_runs_.AreLeft()) return;
  for (const int descriptor : duty_.spec.kept_open) shutdown(descriptor, SHUT_WR);
}

void Guard::SendStatus(Message::Kind kind) const {
  // A command that survived has no status: report the one that KILL would have given it.
  Send(socket_.get(), {.kind = kind, .number = command_status_.value_or(SIGKILL)});
}

}  // namespace

void RunGuard(const GuardDuty& duty, UniqueFd socket) noexcept {
  Guard guard(duty, std::move(socket));
  try {
    guard.Run();
  } catch (const std::system_error& error) {
    guard.ReportFailure(error);
    _exit(kExitSystem);
  } catch (...) {
    _exit(kExitInternal);  // zklock sees EOF on the socket and ends the tree
  }
  _exit(kExitOk);
}

}  // namespace zklock::process
