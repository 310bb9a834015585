#include "process/supervisor.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <set>
#include <system_error>
#include <utility>

#include "base/exit_status.h"
#include "base/unique_fd.h"
#include "process/command.h"
#include "process/guard.h"
#include "process/guard_link.h"
#include "process/guard_watch.h"
#include "process/shared_environment.h"
#include "process/shared_page.h"
#include "process/system_error.h"
#include "process/takeover.h"
#include "protocol/lease.h"

namespace zklock::process {

namespace {

using std::chrono::milliseconds;

// How long the destructor lets the guard kill the tree before it does so itself.
constexpr Duration kAbandonTime = milliseconds(2000);

// For poll, which is to be called again after an hour.
int MillisecondsUntil(TimePoint moment) {
  const Duration span =
      std::clamp(moment - BootClock::now(), Duration::zero(), Duration(std::chrono::hours(1)));
  return static_cast<int>(std::chrono::ceil<milliseconds>(span).count());
}

// Reaps a child that is about to end.
void WaitFor(pid_t child) {
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

int ShellStatus(int wait_status) {
  return WIFSIGNALED(wait_status) ? kExitSignalBase + WTERMSIG(wait_status)
                                  : WEXITSTATUS(wait_status);
}

/// The guard is in charge until it has reported the end, or there is a `takeover`. What comes of
/// it is one of `ended`, `exec_failed`, `start_error`.
struct Supervisor::State {
  SharedPage<GuardPage> page;
  SharedEnvironment environment;
  UniqueFd socket;  // closed when the guard has gone
  pid_t guard = 0;  // 0: taken over and reaped
  bool outlives_lease = false;
  Strangers strangers;

  bool is_awaited = false;
  bool is_ready = false;
  bool is_started = false;
  int stopped_by = 0;                     // what has stopped the command, until that is taken
  std::optional<TimePoint> ordered_at;    // End()
  std::optional<TimePoint> shortened_at;  // the lease; until the guard has planned for that
  GuardWatch watch{[this] { return SeeGuard(guard); }};
  std::optional<TakeOver> takeover;
  bool guard_was_slow = false;  // when the tree was taken over
  std::vector<Survivor> survivors;
  std::vector<Survivor> left_behind;

  std::optional<ExecFailed> exec_failed;
  std::optional<std::system_error> start_error;
  std::optional<Ended> ended;

  State() = default;
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void ForkGuard(const CommandSpec& spec, const Signals& signals);
  void Give(Order order);
  void ReadMessages();
  void Handle(const Message& message);
  void CommandEnded(int wait_status);
  void Dismiss();
  void Discard();

  [[nodiscard]] bool IsSettled() const { return ended || exec_failed || start_error; }
  [[nodiscard]] bool LeaseRanOut() const { return BootClock::now() >= StopTime(); }
  [[nodiscard]] TimePoint StopTime() const {
    return protocol::StopTime(page->lease_end.Get(), page->grace.Get());
  }
  [[nodiscard]] GuardTerms Terms() const;
  [[nodiscard]] TimePoint Wake() const;
  void WatchGuard(TimePoint now);
  void BeginTakeOver();
  void ContinueTakeOver();
  void Serve();
  void WaitOnce(TimePoint until);
};

void Supervisor::State::ForkGuard(const CommandSpec& spec, const Signals& signals) {
  const ExecImage image(spec.executable, spec.arguments, environment);
  GuardSocket ends = MakeGuardSocket();
  const GuardDuty duty{spec, image, signals, *page, getpid()};
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t pid = fork();
  if (pid == 0) {
    ends.zklock.Reset();
    RunGuard(duty, std::move(ends.guard));
  }
  const int error = errno;
  sigprocmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  guard = Check(pid, "fork");
  socket = std::move(ends.zklock);
  if (const auto stat = ReadProcessStat(guard)) strangers.tree_begins = stat->id.start_time;
}

// The page is what counts, since the socket may be full if the guard is stopped.
void Supervisor::State::Give(Order order) {
  if (page->order.load() >= order) return;
  page->order = order;
  ordered_at = BootClock::now();
  Send(socket.get(), {.kind = Message::Kind::kWake});
}

void Supervisor::State::ReadMessages() {
  while (!IsSettled() && !takeover && socket) {
    const Received received = Receive(socket.get());
    if (received.message) {
      Handle(*received.message);
    } else {
      if (received.is_closed) BeginTakeOver();
      return;
    }
  }
}

void Supervisor::State::Handle(const Message& message) {
  switch (message.kind) {
    case Message::Kind::kReady:
      is_ready = true;
      return;
    case Message::Kind::kStarted:
      is_started = true;
      if (outlives_lease) page->lease_end.Set(kNever);
      return;
    case Message::Kind::kStopped:
      stopped_by = message.number;
      return;
    case Message::Kind::kExecFailed:
      exec_failed = ExecFailed{message.number};
      return Dismiss();
    case Message::Kind::kFailed:
      if (page->command != 0) return BeginTakeOver();
      start_error.emplace(message.number, std::generic_category(), message.name.data());
      return Dismiss();
    case Message::Kind::kSurvivor:
      survivors.push_back({message.number, message.name.data()});
      return;
    case Message::Kind::kLeftBehind:
      left_behind.push_back({message.number, message.name.data()});
      return;
    case Message::Kind::kCommandEnded:
      return CommandEnded(message.number);
    case Message::Kind::kTreeEnded:
      ended = Ended{message.number, message.by_order != 0, false, survivors, {}};
      return Dismiss();
    case Message::Kind::kBegin:
    case Message::Kind::kWake:
    case Message::Kind::kForward:
      return;  // ours
  }
}

void Supervisor::State::CommandEnded(int wait_status) {
  // The end was ordered meanwhile, or the lease ran out before we read this: then the guard has to
  // end what the command left behind, and reports again.
  if (LeaseRanOut()) Give(Order::kEnd);
  if (ordered_at) return left_behind.clear();
  ended = Ended{wait_status, false, false, {}, left_behind};
  Dismiss();
}

// It has nothing left to do: KILL reaches it even if it is stopped. The next holder need not wait
// for the kernel to take it apart: it is reaped at the end, and the socket stays open until then:
// its end would tell the guard to kill what the command left behind.
void Supervisor::State::Dismiss() {
  if (guard != 0) kill(guard, SIGKILL);  // 0 would be our own process group
}

// The command dies with the guard, is ours then, and has no children yet. One that was stopped
// before its first instruction could not ask for that: it is killed. Where the guard has reaped it
// the pid is nobody's, or a stranger's.
void Supervisor::State::Discard() {
  Dismiss();
  WaitFor(std::exchange(guard, 0));
  const pid_t command = page->command;
  siginfo_t info;
  if (command == 0 ||
      waitid(P_PID, static_cast<id_t>(command), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
    return;
  }
  kill(command, SIGKILL);
  WaitFor(command);
}

Supervisor::State::~State() {
  if (IsSettled() && guard != 0) WaitFor(guard);  // otherwise not dismissed: it may live on
}

GuardTerms Supervisor::State::Terms() const {
  return {.looks_at = page->guard_looks_at.Get(),
          .lease_end = page->lease_end.Get(),
          .kill_after = page->grace.Get(),
          .ordered_at = ordered_at,
          .shortened_at = shortened_at,
          .is_ending = page->is_ending};
}

TimePoint Supervisor::State::Wake() const {
  if (IsSettled()) return kNever;
  if (takeover) return takeover->next_round();
  return watch.Wake(Terms());
}

void Supervisor::State::WatchGuard(TimePoint now) {
  if (page->guard_looks_at.Get() <= StopTime()) shortened_at.reset();
  switch (watch.Look(now, Terms())) {
    case GuardWatch::Verdict::kTrusted:
      return;
    case GuardWatch::Verdict::kSlow:
      guard_was_slow = true;
      return BeginTakeOver();
    case GuardWatch::Verdict::kHangs:
      return BeginTakeOver();
  }
}

void Supervisor::State::BeginTakeOver() {
  takeover.emplace(guard, page->command, strangers);  // kills the guard
  socket.Reset();
}

void Supervisor::State::ContinueTakeOver() {
  if (!takeover->Round(page->lease_end.Get())) return;
  guard = 0;
  const bool by_order = ordered_at || LeaseRanOut();
  ended = Ended{takeover->command_status(), by_order, !guard_was_slow, takeover->survivors(), {}};
}

void Supervisor::State::Serve() {
  if (IsSettled()) return;
  ReadMessages();
  if (!IsSettled() && !takeover) WatchGuard(BootClock::now());
  if (!IsSettled() && takeover) ContinueTakeOver();
}

// For the two moments without an event loop: the start and a hasty end.
void Supervisor::State::WaitOnce(TimePoint until) {
  pollfd polled{socket.get(), POLLIN, 0};
  poll(&polled, 1, MillisecondsUntil(std::min(Wake(), until)));
  Serve();
}

std::unique_ptr<Supervisor> Supervisor::Prepare(const CommandSpec& command,
                                                const Signals& signals) {
  RequireProcessTree();
  Check(prctl(PR_SET_CHILD_SUBREAPER, 1), "prctl");
  auto state = std::make_unique<State>();
  state->page->grace.Set(command.kill_after);
  state->outlives_lease = command.outlives_lease;
  state->strangers.children = OwnChildren();
  state->ForkGuard(command, signals);
  return std::unique_ptr<Supervisor>(new Supervisor(std::move(state)));
}

bool Supervisor::AwaitForks(Duration patience) {
  State& state = *state_;
  const TimePoint deadline = BootClock::now() + patience;
  while (!state.is_ready) {
    // Without a lease there is nothing yet to judge the guard by.
    pollfd polled{state.socket.get(), POLLIN, 0};
    poll(&polled, 1, MillisecondsUntil(deadline));
    const Received received = Receive(state.socket.get());
    if (received.message) state.Handle(*received.message);
    if (received.is_closed || state.IsSettled() || state.takeover) return false;
    if (!received.message && BootClock::now() >= deadline) return false;
  }
  return true;
}

void Supervisor::Await(TimePoint lease_end, Duration grace) {
  State& state = *state_;
  state.page->grace.Set(grace);
  state.page->lease_end.Set(lease_end);
  state.page->guard_looks_at.Set(state.StopTime());
  state.is_awaited = true;
  while (!state.is_ready && !state.IsSettled()) state.WaitOnce(kNever);
  if (state.start_error) throw *state.start_error;
}

void Supervisor::Begin(const std::vector<std::string>& environment) {
  State& state = *state_;
  if (state.environment.Set(environment)) {
    Send(state.socket.get(), {.kind = Message::Kind::kBegin});
  } else {
    state.Discard();
    state.exec_failed = ExecFailed{E2BIG};
  }
}

Supervisor::Supervisor(std::unique_ptr<State> state) : state_(std::move(state)) {}

Supervisor::~Supervisor() {
  State& state = *state_;
  if (!state.is_awaited) state.Discard();
  if (!state.is_awaited || state.IsSettled()) return;
  try {
    state.Give(Order::kKill);
    const TimePoint patience = BootClock::now() + kAbandonTime;
    while (!state.IsSettled()) {
      if (!state.takeover && BootClock::now() >= patience) state.BeginTakeOver();
      state.WaitOnce(state.takeover ? kNever : patience);
    }
  } catch (...) {
    // Nothing more can be done here. The socket closes: the guard ends the tree.
  }
}

void Supervisor::SetLease(TimePoint lease_end, Duration grace) {
  State& state = *state_;
  if (state.is_started && state.outlives_lease) return;
  const TimePoint stop = state.StopTime();
  // In this order the guard, if it looks in between, sees a stop time that is too early rather than
  // too late.
  if (lease_end < state.page->lease_end.Get()) state.page->lease_end.Set(lease_end);
  state.page->grace.Set(grace);
  state.page->lease_end.Set(lease_end);
  if (state.StopTime() >= stop) return;
  state.shortened_at = BootClock::now();
  Send(state.socket.get(), {.kind = Message::Kind::kWake});
}

void Supervisor::Forward(int signal_number) {
  Send(state_->socket.get(), {.kind = Message::Kind::kForward, .number = signal_number});
}

bool Supervisor::IsFromCommand(pid_t sender) const {
  return sender != 0 && (sender == state_->guard || sender == state_->page->command);
}

std::optional<int> Supervisor::TakeStop() {
  State& state = *state_;
  const int number = std::exchange(state.stopped_by, 0);
  if (number == 0 || state.IsSettled() || state.takeover || state.ordered_at ||
      state.page->is_ending) {
    return std::nullopt;
  }
  // It may have been continued with its group, this process in it, since the guard saw it stop.
  const auto stat = ReadProcessStat(state.page->command);
  if (stat && stat->state != 'T' && stat->state != 't') return std::nullopt;  // t: traced
  return number;
}

void Supervisor::StopLikewise(const Signals& signals, int signal_number) {
  GuardPage& page = *state_->page;
  page.stops_likewise = true;
  // The command may go on just now: the guard has to look again with the flag set.
  Send(state_->socket.get(), {.kind = Message::Kind::kWake});
  signals.StopSelf(signal_number);
  page.stops_likewise = false;
}

void Supervisor::End() { state_->Give(Order::kEnd); }

bool Supervisor::has_started() const { return state_->is_started; }

const std::optional<ExecFailed>& Supervisor::exec_failed() const { return state_->exec_failed; }

const std::optional<Ended>& Supervisor::ended() const { return state_->ended; }

pid_t Supervisor::command_pid() const { return state_->page->command; }

EventSource::Interest Supervisor::GetInterest() {
  if (state_->IsSettled()) return {};
  return {state_->socket.get(), POLLIN, state_->Wake()};
}

void Supervisor::OnReady(short /*revents*/) { state_->Serve(); }

}  // namespace zklock::process
