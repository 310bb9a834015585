#include "process/guard/supervisor.h"

#include <poll.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <new>
#include <system_error>
#include <utility>
#include <variant>

#include "process/guard/guard_link.h"
#include "process/guard/guard_process.h"
#include "process/guard/guard_watch.h"
#include "process/guard/takeover.h"
#include "process/loop/system_error.h"
#include "process/tree/process_tree.h"

namespace zklock::process {

namespace {

using std::chrono::milliseconds;

// How long the destructor waits for the guard to kill the tree before zklock does so itself.
constexpr Duration kAbandonTime = milliseconds(2000);

// Returns a timeout for poll(2) of at most an hour; the caller then polls again.
int MillisecondsUntil(TimePoint moment) {
  const Duration span =
      std::clamp(moment - BootClock::now(), Duration::zero(), Duration(std::chrono::hours(1)));
  return static_cast<int>(std::chrono::ceil<milliseconds>(span).count());
}

/// Returns null if the command gets no cgroup.
std::unique_ptr<Cgroup> MakeCgroup(const CommandSpec& command, Containment& containment) {
  if (command.cgroup_parent.empty()) return nullptr;
  auto made = Cgroup::Make(command.cgroup_parent);
  if (auto* none = std::get_if<NoCgroup>(&made)) {
    containment = std::move(*none);
    return nullptr;
  }
  auto& cgroup = std::get<std::unique_ptr<Cgroup>>(made);
  containment = cgroup->path();
  return std::move(cgroup);
}

}  // namespace

struct Supervisor::State {
  /// The command's progress.
  enum class Progress { kForking, kForked, kStarted };

  /// The guard is in charge of the tree. -> TakenOver, or a result
  struct Guarded {
    std::vector<Survivor> survivors;
    std::vector<Survivor> left_behind;
  };
  /// zklock ends the tree itself. -> Ended
  struct TakenOver {
    TakenOver(const GuardProcess& guard, const UniqueFd& children, Outsiders outsiders,
              Cgroup* cgroup, bool was_slow)
        // If the guard has reaped the command, another child may have its pid.
        : takeover(guard.pid(), guard.page().command_is_reaped ? 0 : guard.page().command.load(),
                   children, std::move(outsiders), cgroup),
          guard_was_slow(was_slow) {}
    TakeOver takeover;
    const bool guard_was_slow;
    bool reports_survivors = true;  // false once `awaited` has named one
  };
  // The results: ExecFailed; std::system_error, if the guard could not be set up; Ended.

  const bool outlives_lease;
  const bool requires_cgroup;
  const Duration max_run;
  const UniqueFd children = OpenChildren();  // for TakenOver
  Containment containment;
  std::unique_ptr<Cgroup> cgroup;
  Outsiders outsiders;
  GuardProcess guard;

  std::variant<Guarded, TakenOver, ExecFailed, std::system_error, Ended> phase;
  Progress progress = Progress::kForking;
  bool has_lease = false;                 // set by Await()
  bool leaves_guard = false;              // set by LeaveGuard()
  bool command_was_reaped = false;        // by the time signals were last read
  bool command_may_send = true;           // the signals now being read
  std::optional<Awaited> awaited;         // until TakeAwaited()
  std::optional<TimePoint> ordered_at;    // when End() was called
  std::optional<TimePoint> shortened_at;  // reset once the guard has seen the shorter lease
  GuardWatch watch{[this] { return SeeGuard(guard.pid()); }};

  State(const CommandSpec& command, const Signals& signals);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void End(EndCause cause);
  void ReadMessages();
  void Handle(const Message& message);
  void SeeContainment();
  void CommandEnded(int wait_status);
  void TreeEnded(int wait_status);
  template <typename Result>
  void SettleByGuard(Result result);

  [[nodiscard]] bool IsGuarded() const { return std::holds_alternative<Guarded>(phase); }
  [[nodiscard]] bool IsSettled() const {
    return !IsGuarded() && !std::holds_alternative<TakenOver>(phase);
  }
  [[nodiscard]] bool LeaseRanOut() const { return BootClock::now() >= lease().StopTime(); }
  [[nodiscard]] SharedLease& lease() const { return guard.page().lease; }
  [[nodiscard]] GuardTerms Terms() const;
  [[nodiscard]] TimePoint Wake() const;
  void WatchGuard(TimePoint now);
  void BeginTakeOver(bool guard_was_slow = false);
  void ContinueTakeOver();
  void Serve();
  void WaitOnce(TimePoint until);
};

Supervisor::State::State(const CommandSpec& command, const Signals& signals)
    : outlives_lease(command.outlives_lease),
      requires_cgroup(command.requires_cgroup),
      max_run(command.max_run),
      cgroup(MakeCgroup(command, containment)),
      outsiders{.children = OwnChildren()},
      guard(command, signals, cgroup.get()) {
  outsiders.tree_begins = guard.start_time();
}

// Writes to the page, since the socket may be full if the guard is stopped.
void Supervisor::State::End(EndCause cause) {
  guard.page().cause.Set(cause);
  if (IsLoss(cause)) guard.page().is_lost = true;
  if (ordered_at || IsSettled()) return;
  ordered_at = BootClock::now();
  guard.Send({.kind = Message::Kind::kWake});
}

void Supervisor::State::ReadMessages() {
  while (IsGuarded()) {
    const Received received = guard.Receive();
    if (received.message) {
      Handle(*received.message);
    } else {
      if (received.is_closed) BeginTakeOver();
      return;
    }
  }
}

void Supervisor::State::Handle(const Message& message) {
  auto& guarded = std::get<Guarded>(phase);
  switch (message.kind) {
    case Message::Kind::kReady:
      progress = Progress::kForked;
      return SeeContainment();
    case Message::Kind::kStarted:
      progress = Progress::kStarted;
      if (outlives_lease) lease().Set(kNever, lease().grace());
      return;
    case Message::Kind::kExecFailed:
      return SettleByGuard(ExecFailed{message.number});
    case Message::Kind::kFailed:
      if (guard.page().command != 0) return BeginTakeOver();
      return SettleByGuard(
          std::system_error(message.number, std::generic_category(), message.name.data()));
    case Message::Kind::kSurvivor:
      guarded.survivors.push_back({message.number, message.name.data()});
      return;
    case Message::Kind::kLeftBehind:
      guarded.left_behind.push_back({message.number, message.name.data()});
      return;
    case Message::Kind::kAwaited:
    case Message::Kind::kAwaitedSurvivor:
      awaited = Awaited{{message.number, message.name.data()},
                        message.more,
                        message.kind == Message::Kind::kAwaitedSurvivor};
      return;
    case Message::Kind::kCommandEnded:
      return CommandEnded(message.number);
    case Message::Kind::kTreeEnded:
      return TreeEnded(message.number);
    case Message::Kind::kWake:   // Serve() and its callers look at the page
    case Message::Kind::kBegin:  // only zklock sends this and the following kinds
    case Message::Kind::kForward:
    case Message::Kind::kNestedRun:
      return;
  }
}

void Supervisor::State::SeeContainment() {
  const int error = guard.page().cgroup_error;
  if (!cgroup || error == 0) return;
  containment = cgroup->NotEntered(error);
  cgroup.reset();  // the guard has removed it
}

void Supervisor::State::CommandEnded(int wait_status) {
  // If the end was ordered in the meantime, or the lease ran out before this was read, the guard
  // must end the processes that the command left behind, and will report again.
  if (LeaseRanOut()) End(EndCause::kLeaseRanOut);
  auto& left_behind = std::get<Guarded>(phase).left_behind;
  if (ordered_at) return left_behind.clear();
  SettleByGuard(Ended{.wait_status = wait_status, .left_behind = std::move(left_behind)});
}

void Supervisor::State::TreeEnded(int wait_status) {
  const GuardPage& page = guard.page();
  const bool had_to_end = page.cause.Get().has_value();
  SettleByGuard(
      Ended{.wait_status = wait_status,
            .survivors = std::move(std::get<Guarded>(phase).survivors),
            .got_stop = had_to_end && page.sent_stop,
            .got_kill = had_to_end && page.sent_kill,
            .was_refused = had_to_end && page.was_refused && !page.sent_stop && !page.sent_kill});
}

/// Records the result. The guard then only has to close the session if this process dies.
template <typename Result>
void Supervisor::State::SettleByGuard(Result result) {
  guard.page().is_settled = true;
  phase.emplace<Result>(std::move(result));
}

Supervisor::State::~State() {
  if (IsSettled() && !leaves_guard) guard.Dismiss();  // otherwise it lives on
  const auto* ended = std::get_if<Ended>(&phase);
  if (cgroup && ended != nullptr && ended->survivors.empty()) cgroup->MoveOutAndRemove();
}

GuardTerms Supervisor::State::Terms() const {
  return {.looks_at = guard.page().guard_looks_at.Get(),
          .lease_end = lease().end(),
          .grace = lease().grace(),
          .ordered_at = ordered_at,
          .shortened_at = shortened_at,
          .is_ending = guard.page().is_ending};
}

TimePoint Supervisor::State::Wake() const {
  if (IsSettled()) return kNever;
  if (const auto* taken = std::get_if<TakenOver>(&phase)) return taken->takeover.next_round();
  return watch.Wake(Terms());
}

void Supervisor::State::WatchGuard(TimePoint now) {
  if (guard.page().guard_looks_at.Get() <= lease().StopTime()) shortened_at.reset();
  switch (watch.Look(now, Terms())) {
    case GuardWatch::Verdict::kTrusted:
      return;
    case GuardWatch::Verdict::kSlow:
      return BeginTakeOver(true);
    case GuardWatch::Verdict::kHangs:
      return BeginTakeOver();
  }
}

void Supervisor::State::BeginTakeOver(bool guard_was_slow) {
  const bool is_too_long = BootClock::now() >= guard.page().run_end.Get();
  guard.page().cause.Set(LeaseRanOut() ? EndCause::kLeaseRanOut
                         : is_too_long ? EndCause::kRunTooLong
                                       : EndCause::kGuardFailed);
  // Kills the guard. Does not throw.
  phase.emplace<TakenOver>(guard, children, std::move(outsiders), cgroup.get(), guard_was_slow);
  guard.CloseSocket();
}

void Supervisor::State::ContinueTakeOver() {
  auto& [takeover, guard_was_slow, reports_survivors] = std::get<TakenOver>(phase);
  if (!takeover.Round(lease().end())) return;
  const std::vector<Survivor>& survivors = takeover.survivors();
  const GuardPage& page = guard.page();
  if (!survivors.empty() && !page.must_kill && !page.IsLost() && BootClock::now() < lease().end()) {
    if (std::exchange(reports_survivors, false)) {
      awaited = Awaited{survivors.front(), static_cast<int>(survivors.size()) - 1, true};
    }
    return;
  }
  const bool got_stop = guard.page().sent_stop;
  guard.Forget();
  Ended ended{.wait_status = takeover.command_status(),
              .guard_failed = !guard_was_slow,
              .survivors = survivors,
              .got_stop = got_stop,
              .got_kill = true};
  phase.emplace<Ended>(std::move(ended));
}

void Supervisor::State::Serve() {
  ReadMessages();
  if (IsGuarded()) WatchGuard(BootClock::now());
  if (std::holds_alternative<TakenOver>(phase)) ContinueTakeOver();
}

// For use without an event loop: at the start and in the destructor.
void Supervisor::State::WaitOnce(TimePoint until) {
  pollfd polled{guard.socket(), POLLIN, 0};
  poll(&polled, 1, MillisecondsUntil(std::min(Wake(), until)));
  Serve();
}

std::unique_ptr<Supervisor> Supervisor::Prepare(const CommandSpec& command,
                                                const Signals& signals) {
  RequireProcessTree();
  Check(prctl(PR_SET_CHILD_SUBREAPER, 1), "prctl");
  return std::unique_ptr<Supervisor>(new Supervisor(std::make_unique<State>(command, signals)));
}

bool Supervisor::AwaitForks(Duration patience) {
  State& state = *state_;
  const TimePoint deadline = BootClock::now() + patience;
  while (state.progress == State::Progress::kForking) {
    // There is no lease yet, so the guard cannot have broken a promise.
    pollfd polled{state.guard.socket(), POLLIN, 0};
    poll(&polled, 1, MillisecondsUntil(deadline));
    const Received received = state.guard.Receive();
    if (received.message) state.Handle(*received.message);
    if (received.is_closed || !state.IsGuarded()) return false;
    if (!received.message && BootClock::now() >= deadline) return false;
  }
  return true;
}

bool Supervisor::IsGuarded() const { return !state_->guard.HasEnded(); }

bool Supervisor::IsIntact() const {
  const GuardProcess& guard = state_->guard;
  const pid_t command = guard.page().command;
  if (guard.HasEnded()) return false;
  if (command == 0) return true;  // not forked yet
  // If the guard has reaped the command, the pid may belong to another process.
  const auto stat = ReadProcessStat(command);
  return stat && !stat->is_dead && stat->parent == guard.pid();
}

void Supervisor::Await(TimePoint lease_end, Duration grace) {
  State& state = *state_;
  state.lease().Set(lease_end, grace);
  state.guard.page().guard_looks_at.Set(state.lease().StopTime());
  state.has_lease = true;
  while (state.progress == State::Progress::kForking && !state.IsSettled()) state.WaitOnce(kNever);
  if (const auto* error = std::get_if<std::system_error>(&state.phase)) throw *error;
  const auto* none = std::get_if<NoCgroup>(&state.containment);
  if (none == nullptr || !state.requires_cgroup) return;
  state.has_lease = false;  // the destructor discards the command
  throw CgroupUnavailable(*none);
}

void Supervisor::Begin(const std::vector<std::string>& environment) {
  State& state = *state_;
  if (state.guard.SetEnvironment(environment)) {
    // The guard updates run_end once it notices the execution, but it may hang before that.
    GuardPage& page = state.guard.page();
    page.run_end.Set(After(BootClock::now(), state.max_run));
    page.guard_looks_at.Set(std::min(state.lease().StopTime(), page.run_end.Get()));
    state.guard.Send({.kind = Message::Kind::kBegin});
    // The guard has promised nothing yet, and may be stopped.
    if (state.IsGuarded()) kill(state.guard.pid(), SIGCONT);
  } else {
    state.guard.Discard();
    state.phase.emplace<ExecFailed>(ExecFailed{E2BIG});
  }
}

Supervisor::Supervisor(std::unique_ptr<State> state) : state_(std::move(state)) {}

Supervisor::~Supervisor() {
  State& state = *state_;
  if (!state.has_lease && !state.leaves_guard) state.guard.Discard();
  if (!state.has_lease || state.IsSettled()) return;
  try {
    state.guard.page().must_kill = true;
    state.ordered_at.reset();
    state.End(EndCause::kAbandoned);
    const TimePoint patience = BootClock::now() + kAbandonTime;
    while (!state.IsSettled()) {
      if (state.IsGuarded() && BootClock::now() >= patience) state.BeginTakeOver();
      try {
        state.WaitOnce(state.IsGuarded() ? patience : kNever);
      } catch (const std::bad_alloc&) {
        // Try again: the tree must be gone before the lock can be released.
        poll(nullptr, 0, 1);
      }
    }
  } catch (...) {
    // Nothing more can be done here. The socket closes, and the guard ends the tree.
  }
}

void Supervisor::SetLease(TimePoint lease_end, Duration grace) {
  State& state = *state_;
  if (state.progress == State::Progress::kStarted && state.outlives_lease) return;
  if (!state.lease().Set(lease_end, grace)) return;
  state.shortened_at = BootClock::now();
  state.guard.Send({.kind = Message::Kind::kWake});
  // A stopped guard would not look before the old time. Once the tree is not guarded, the pid may
  // be 0, and kill() would signal this process's group.
  if (state.IsGuarded()) kill(state.guard.pid(), SIGCONT);
}

void Supervisor::Forward(int signal_number) {
  state_->guard.Send({.kind = Message::Kind::kForward, .number = signal_number});
}

void Supervisor::ForwardFromTerminal(int signal_number) {
  state_->guard.Send({.kind = Message::Kind::kForward, .number = signal_number, .more = getpgrp()});
}

void Supervisor::AddNestedRun(int connection) {
  // The guard may be stopped, and its socket full.
  if (!state_->guard.SendNestedRun(connection)) state_->guard.page().keeps_session = true;
}

void Supervisor::LeaveGuard() { state_->leaves_guard = true; }

// A signal that the command sent may still be unread when the command is reaped. Once it has been
// read, later signals with that pid are from another process.
void Supervisor::ReadsSignals() {
  state_->command_may_send = !state_->command_was_reaped;
  state_->command_was_reaped = state_->guard.page().command_is_reaped;
}

bool Supervisor::IsFromCommand(pid_t sender) const {
  const GuardProcess& guard = state_->guard;
  if (sender == 0) return false;
  return sender == guard.pid() || (state_->command_may_send && sender == guard.page().command);
}

bool Supervisor::IsInOurGroup() const {
  const GuardPage& page = state_->guard.page();
  return !page.command_is_reaped && getpgid(page.command) == getpgrp();
}

std::optional<int> Supervisor::TakeSuspension() {
  State& state = *state_;
  const int number = state.guard.page().suspended_by.exchange(0);
  if (number == 0 || !state.IsGuarded() || state.ordered_at || state.guard.page().is_ending) {
    return std::nullopt;
  }
  // The command may have been continued since then, together with its process group, to which this
  // process also belongs.
  const auto stat = ReadProcessStat(state.guard.page().command);
  if (stat && stat->state != 'T' && stat->state != 't') return std::nullopt;  // t: traced
  return number;
}

void Supervisor::SuspendWithCommand(const Signals& signals, int signal_number) {
  GuardPage& page = state_->guard.page();
  page.zklock_is_suspended = true;
  // The command may be continued at this moment: the guard must look again with the flag set.
  state_->guard.Send({.kind = Message::Kind::kWake});
  signals.SuspendSelf(signal_number);
  page.zklock_is_suspended = false;
}

void Supervisor::End(EndCause cause) { state_->End(cause); }

void Supervisor::RecordLoss() { state_->guard.page().is_lost = true; }

std::optional<EndCause> Supervisor::cause() const { return state_->guard.page().cause.Get(); }

const Containment& Supervisor::containment() const { return state_->containment; }

TimePoint Supervisor::run_end() const { return state_->guard.page().run_end.Get(); }

bool Supervisor::has_sent_stop() const { return state_->guard.page().sent_stop; }

std::optional<Supervisor::Awaited> Supervisor::TakeAwaited() {
  return std::exchange(state_->awaited, std::nullopt);
}

bool Supervisor::had_ended() const { return state_->guard.page().had_ended; }

bool Supervisor::has_started() const {
  // A command that has to end at once may be dead before the guard has reported its start.
  return state_->progress == State::Progress::kStarted ||
         (ended() != nullptr && state_->guard.page().executes);
}

const ExecFailed* Supervisor::exec_failed() const {
  return std::get_if<ExecFailed>(&state_->phase);
}

const Ended* Supervisor::ended() const { return std::get_if<Ended>(&state_->phase); }

pid_t Supervisor::command_pid() const { return state_->guard.page().command; }

EventSource::Interest Supervisor::GetInterest() {
  if (state_->IsSettled()) return {};
  return {.fd = state_->guard.socket(), .events = POLLIN, .wake = state_->Wake()};
}

void Supervisor::OnReady(short /*revents*/) { state_->Serve(); }

}  // namespace zklock::process
