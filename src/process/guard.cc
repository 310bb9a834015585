#include "process/guard.h"

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
#include <system_error>
#include <vector>

#include "base/exit_status.h"
#include "process/children_file.h"
#include "process/descriptors.h"
#include "process/guard_name.h"
#include "process/system_error.h"
#include "process/timer.h"
#include "process/tree_stopper.h"
#include "protocol/lease.h"

namespace zklock::process {

namespace {

using std::chrono::milliseconds;

// Forks tell nobody: while the tree is being ended it is walked again this often.
constexpr Duration kStopRound = milliseconds(50);
constexpr Duration kKillRound = milliseconds(5);
// What has not died of so many KILLs waits for a disk or a network: looked after less often.
constexpr int kQuickKillRounds = 100;
constexpr Duration kSlowKillRound = milliseconds(100);
// What one round over a huge tree may take before zklock thinks that the guard hangs.
constexpr Duration kLongRound = milliseconds(500);
// Named in the report; one more would not help anybody, and the socket's buffer is finite.
constexpr size_t kMostNamed = 32;

class Guard {
 public:
  Guard(const GuardDuty& duty, UniqueFd socket) : duty_(duty), socket_(std::move(socket)) {}

  void Run();
  void ReportFailure(const std::system_error& error) const;

 private:
  // Only downwards, any step of it:
  enum class Phase {
    kReady,     // the command is forked and not let go yet
    kRunning,   // the command runs, or with Descendants::kWait what it left behind
    kReported,  // the command ended by itself, zklock has not dismissed us yet
    kStopping,  // all have got the stop signal; newcomers get it too
    kKilling,   // all get KILL, again and again
    kFinished,
  };

  void Begin();
  void Wait();
  void ReadExecResult();
  void ReadMessages();
  void BeginCommand();
  void Forward(int signal_number);
  void Reap();
  void CommandChanged(int wait_status);
  void Advance(TimePoint now);
  void CommandEnded(TimePoint now);
  void BeginStopping(TimePoint now);
  void KillChildren() const;
  void Kill();
  [[nodiscard]] TreeKiller::Treatment TreatmentOf(const Descendant& process) const;
  void Finish();

  [[nodiscard]] TimePoint LeaseEnd() const;
  [[nodiscard]] TimePoint NextLook() const;
  [[nodiscard]] bool MustKill() const;
  [[nodiscard]] bool MustContinueZklock() const;
  [[nodiscard]] bool ZklockHasGone() const;
  void SendNamed(Message::Kind kind, const std::vector<Survivor>& processes) const;
  void SendStatus(Message::Kind kind, bool by_order) const;

  const GuardDuty& duty_;
  UniqueFd socket_;
  UniqueFd timer_;
  UniqueFd signals_;  // CHLD, and CONT, which tells of zklock's death
  UniqueFd link_;     // to the command, until it has been executed
  ChildrenFile children_;

  Phase phase_ = Phase::kReady;
  pid_t command_ = 0;
  std::optional<int> command_status_;  // once it has been reaped
  int stopped_by_ = 0;       // the signal that has stopped the command; 0: it is not stopped
  bool leaves_job_ = false;  // zklock stays stopped: a shell's job ended with its lease
  bool has_children_ = true;
  bool is_orphaned_ = false;
  bool is_executed_ = false;
  bool lease_ran_out_ = false;
  TimePoint stopped_at_ = kNever;
  int kill_rounds_ = 0;
  TimePoint killed_since_ = kNever;
  TreeStopper stopper_{duty_.spec.stop_signal, children_};
  TreeKiller killer_{getpid(), [this](const Descendant& process) { return TreatmentOf(process); }};
};

void Guard::Run() {
  Begin();
  while (phase_ != Phase::kFinished) {
    Wait();
    ReadExecResult();
    Reap();
    ReadMessages();
    Advance(BootClock::now());
  }
  while (MustContinueZklock() && !ZklockHasGone()) {
    kill(duty_.zklock, SIGCONT);
    poll(nullptr, 0, 1);
  }
  if (ZklockHasGone() && killer_.survivors().empty() && duty_.spec.when_orphaned) {
    duty_.spec.when_orphaned();
  }
}

void Guard::Begin() {
  TakeGuardName();
  Check(prctl(PR_SET_CHILD_SUBREAPER, 1), "prctl");
  timer_ = MakeTimer();
  children_.Open();
  sigset_t watched;
  sigemptyset(&watched);
  sigaddset(&watched, SIGCHLD);
  sigaddset(&watched, SIGCONT);
  signals_.Reset(Check(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd"));
  // CONT also wakes a guard that somebody has stopped. The socket alone would not do: a helper
  // process that zklock forked may hold a copy of its end.
  Check(prctl(PR_SET_PDEATHSIG, SIGCONT), "prctl");
  if (ZklockHasGone()) raise(SIGCONT);  // it died before that: its session is closed all the same

  link_ = ForkCommand(duty_.image, duty_.signals, duty_.page.command);
  command_ = duty_.page.command;
  // Only now: the command stays in zklock's session and process group. Outside of it a KILL or
  // STOP of the group spares the guard; and a session of its own, not just a group, so that it does
  // not keep the command's group from being orphaned (setpgid(2), stops from the terminal).
  setsid();
  Send(socket_.get(), {.kind = Message::Kind::kReady});
  LeaveWorkingDirectory();
  std::vector<int> kept = duty_.spec.kept_open;
  kept.insert(kept.end(),
              {socket_.get(), timer_.get(), signals_.get(), link_.get(), children_.fd()});
  KeepOnlyDescriptors(kept);
}

void Guard::Wait() {
  const TimePoint look = NextLook();
  SetTimer(timer_.get(), look);
  const bool is_watched = phase_ != Phase::kReady;
  if (is_watched) duty_.page.guard_looks_at.Set(look);
  std::array<pollfd, 4> polled = {{{is_orphaned_ ? -1 : socket_.get(), POLLIN, 0},
                                   {timer_.get(), POLLIN, 0},
                                   {signals_.get(), POLLIN, 0},
                                   {is_watched ? link_.get() : -1, POLLIN, 0}}};
  if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) ThrowErrno("poll");
  // Never sooner than promised: a guard that the host gives no time is not a dead one.
  if (is_watched) duty_.page.guard_looks_at.Set(std::max(look, BootClock::now() + kLongRound));

  signalfd_siginfo taken;
  while (read(signals_.get(), &taken, sizeof taken) > 0) {
  }
  is_orphaned_ = ZklockHasGone();  // after its CONT has been taken, lest one be missed
}

// It may have been killed since we looked, and can no longer close its session. (When it ends by
// itself it has dismissed the guard before.)
bool Guard::ZklockHasGone() const { return is_orphaned_ || getppid() != duty_.zklock; }

void Guard::ReadExecResult() {
  if (!link_ || phase_ == Phase::kReady) return;
  int error = 0;
  const ssize_t size = recv(link_.get(), &error, sizeof error, MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  link_.Reset();
  if (size == static_cast<ssize_t>(sizeof error)) {
    if (!command_status_) {
      kill(command_, SIGKILL);  // it is in its _exit, unless somebody stopped it there
      waitpid(command_, nullptr, 0);
    }
    Send(socket_.get(), {.kind = Message::Kind::kExecFailed, .number = error});
    phase_ = Phase::kFinished;
    return;
  }
  // What had to be ended before we knew may have been stopped, and never have been executed.
  if (phase_ >= Phase::kStopping) return;
  is_executed_ = true;
  Send(socket_.get(), {.kind = Message::Kind::kStarted});
}

void Guard::ReadMessages() {
  for (;;) {
    const Received received = Receive(socket_.get());
    is_orphaned_ = is_orphaned_ || received.is_closed;
    if (!received.message) return;
    if (received.message->kind == Message::Kind::kBegin) BeginCommand();
    if (received.message->kind == Message::Kind::kForward) Forward(received.message->number);
  }
}

void Guard::BeginCommand() {
  phase_ = Phase::kRunning;
  if (BootClock::now() < protocol::StopTime(duty_.page.lease_end.Get(), duty_.page.grace.Get())) {
    LetGo(link_);
  } else {
    link_.Reset();  // zklock was stopped since the lock was its own: the command does not begin
  }
}

void Guard::Forward(int signal_number) {
  if (!command_status_) {
    kill(command_, signal_number);  // not yet reaped, so the pid is still the command's
  } else if (duty_.spec.descendants == Descendants::kWait) {
    // Once only, so the children first: those of one that ends would not be met where they were.
    std::vector<Descendant> all;
    WalkDescendants(getpid(), [&](const Descendant& process) {
      all.push_back(process);
      return true;
    });
    for (auto process = all.rbegin(); process != all.rend(); ++process) {
      SignalDescendant(*process, signal_number);
    }
  }
}

void Guard::Reap() {
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG | __WALL | WUNTRACED | WCONTINUED);
    if (pid > 0) {
      if (pid == command_) CommandChanged(status);
      continue;
    }
    has_children_ = !(pid < 0 && errno == ECHILD);
    return;
  }
}

void Guard::CommandChanged(int wait_status) {
  stopped_by_ = WIFSTOPPED(wait_status) ? WSTOPSIG(wait_status) : 0;
  if (stopped_by_ != 0 && phase_ <= Phase::kRunning) {
    Send(socket_.get(), {.kind = Message::Kind::kStopped, .number = stopped_by_});
  }
  if (!WIFSTOPPED(wait_status) && !WIFCONTINUED(wait_status)) command_status_ = wait_status;
}

// zklock has stopped because the command had, and cannot see that this is over.
bool Guard::MustContinueZklock() const {
  return duty_.page.stops_likewise && stopped_by_ == 0 && !leaves_job_;
}

bool Guard::MustKill() const { return is_orphaned_ || duty_.page.order == Order::kKill; }

// Not only by zklock's word, which may be stopped.
TimePoint Guard::LeaseEnd() const {
  return is_executed_ && duty_.spec.outlives_lease ? kNever : duty_.page.lease_end.Get();
}

TimePoint Guard::NextLook() const {
  const TimePoint lease_end = LeaseEnd();
  if (phase_ <= Phase::kReported && MustContinueZklock()) return BootClock::now() + kStopRound;
  switch (phase_) {
    case Phase::kReady:
      return kNever;
    case Phase::kRunning:
    case Phase::kReported:
      return protocol::StopTime(lease_end, duty_.page.grace.Get());
    case Phase::kStopping:
      return std::min(BootClock::now() + kStopRound,
                      protocol::KillTime(stopped_at_, lease_end, duty_.page.grace.Get()));
    case Phase::kKilling:
    case Phase::kFinished:
      return BootClock::now() + (kill_rounds_ < kQuickKillRounds ? kKillRound : kSlowKillRound);
  }
  return kNever;
}

void Guard::Advance(TimePoint now) {
  if (MustContinueZklock() && !ZklockHasGone()) kill(duty_.zklock, SIGCONT);
  if (phase_ == Phase::kReady && MustKill()) BeginStopping(now);
  const TimePoint lease_end = LeaseEnd();
  if (phase_ == Phase::kRunning || phase_ == Phase::kReported) {
    lease_ran_out_ = now >= protocol::StopTime(lease_end, duty_.page.grace.Get());
    if (lease_ran_out_ || is_orphaned_ || duty_.page.order != Order::kGuard) BeginStopping(now);
  }
  if (phase_ == Phase::kRunning && command_status_) CommandEnded(now);
  if (phase_ == Phase::kStopping) {
    if (!has_children_) {
      Finish();
    } else if (MustKill() ||
               now >= protocol::KillTime(stopped_at_, lease_end, duty_.page.grace.Get())) {
      phase_ = Phase::kKilling;
    } else {
      stopper_.Round();
    }
  }
  if (phase_ == Phase::kKilling) Kill();
}

void Guard::CommandEnded(TimePoint now) {
  ReadExecResult();  // it may have failed, or have run and ended, since we looked
  if (phase_ == Phase::kFinished) return;
  if (has_children_ && duty_.spec.descendants == Descendants::kWait) return;
  if (has_children_ && duty_.spec.descendants == Descendants::kKill) return BeginStopping(now);

  // Orphans become this process's children: without any there is nobody left to look for.
  if (has_children_) {
    std::vector<Survivor> left;
    WalkDescendants(getpid(), [&](const Descendant& process) {
      if (!process.is_dead()) {
        left.push_back({process.pid, process.stat ? process.stat->name : "?"});
      }
      return true;
    });
    SendNamed(Message::Kind::kLeftBehind, left);
  }
  SendStatus(Message::Kind::kCommandEnded, false);
  phase_ = Phase::kReported;
}

void Guard::BeginStopping(TimePoint now) {
  phase_ = Phase::kStopping;
  stopped_at_ = now;
  // A shell continues the jobs that it knows as stopped, and shows their end then. One that only
  // its command was stopped in is nobody's to continue.
  leaves_job_ = stopped_by_ != 0 && stopped_by_ != SIGSTOP;
  duty_.page.is_ending = true;
}

// Without descriptors: the children of those that die become ours, so that all are reached, one
// generation in each round.
void Guard::KillChildren() const {
  for (const pid_t pid : children_.Read()) kill(pid, SIGKILL);
}

TreeKiller::Treatment Guard::TreatmentOf(const Descendant& process) const {
  const bool has_time = BootClock::now() < protocol::NestedGuardsUntil(killed_since_, LeaseEnd());
  return has_time && process.stat && IsGuard(*process.stat) ? TreeKiller::Treatment::kAwait
                                                            : TreeKiller::Treatment::kKill;
}

void Guard::Kill() {
  if (kill_rounds_ == 0) killed_since_ = BootClock::now();
  ++kill_rounds_;
  const bool only_survivors = killer_.Round();
  if (!killer_.is_complete()) KillChildren();
  Reap();
  if (has_children_ && !only_survivors) return;
  Finish();
}

void Guard::Finish() {
  ReadExecResult();
  SendNamed(Message::Kind::kSurvivor, killer_.survivors());
  SendStatus(Message::Kind::kTreeEnded, lease_ran_out_ || duty_.page.order != Order::kGuard);
  phase_ = Phase::kFinished;
}

void Guard::SendNamed(Message::Kind kind, const std::vector<Survivor>& processes) const {
  for (size_t i = 0; i < std::min(processes.size(), kMostNamed); ++i) {
    Message message{.kind = kind, .number = processes[i].pid};
    processes[i].name.copy(message.name.data(), message.name.size() - 1);
    Send(socket_.get(), message);
  }
}

void Guard::SendStatus(Message::Kind kind, bool by_order) const {
  // A command that survived has no status: the one it should have got.
  Send(socket_.get(),
       {.kind = kind, .number = command_status_.value_or(SIGKILL), .by_order = by_order});
}

void Guard::ReportFailure(const std::system_error& error) const {
  Message message{.kind = Message::Kind::kFailed, .number = error.code().value()};
  const std::string what = error.what();  // "operation: text"
  what.substr(0, what.find(':')).copy(message.name.data(), message.name.size() - 1);
  Send(socket_.get(), message);
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
    _exit(kExitInternal);  // zklock sees the socket's end, and ends the tree
  }
  _exit(kExitOk);
}

}  // namespace zklock::process
