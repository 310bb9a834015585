#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/end_cause.h"
#include "base/event_source.h"
#include "process/loop/signals.h"
#include "process/tree/cgroup.h"
#include "process/tree/command_spec.h"
#include "process/tree/ended.h"
#include "process/tree/executable.h"

namespace zklock::process {

/// The path of a command's cgroup, or why it has none. Empty if it was not to have one.
using Containment = std::variant<std::monostate, std::string, NoCgroup>;

/// The command under its guard, as zklock sees it:  zklock -- guard -- command -- its descendants.
///
/// The guard is forked here and forks the command, which is not executed before Begin(): both forks
/// can be done while the servers still decide about the lock. The guard ends the whole tree when
/// told to, when the lease is about to end, or when zklock is gone. Once it has reported the end,
/// nothing of the tree is left, except descendants that a command left behind that ended by itself.
///
/// The guard outlives the tree: until it is dismissed by the destructor, it closes the session
/// (CommandSpec::when_orphaned) when zklock and the nested runs have ended.
///
/// If the guard dies, or is too late with what it must do (GuardWatch), zklock ends the tree
/// itself. All children of this process that did not exist at Prepare() then count as part of the
/// tree.
///
/// With CommandSpec::cgroup_parent the command begins in a cgroup of its own. The destructor
/// removes it; processes that the command left behind are moved to the parent before.
class Supervisor final : public EventSource {
 public:
  /// Forks the guard, and through it the command, as far as this is possible without the lock.
  /// Makes this process a subreaper for good. `signals` has the mask and dispositions that the
  /// command gets back. Descriptors 0 to 2 must be open (ReserveStandardStreams). Everything this
  /// process has open stays open in the command until it begins. Throws std::system_error if the
  /// system refuses (fork, no readable /proc).
  static std::unique_ptr<Supervisor> Prepare(const CommandSpec& command, const Signals& signals);
  /// If the command has not ended: kills the whole tree and waits for its end. Dismisses the guard,
  /// unless LeaveGuard() was called.
  ~Supervisor() override;
  /// The guard is to close the session after this object, or this process, has ended.
  void LeaveGuard();

  /// Before Await(): waits, for this long at most, until the command is forked and the guard has
  /// left this process's session and process group. False if that did not happen, or something was
  /// refused: this object can then only be destroyed.
  [[nodiscard]] bool AwaitForks(Duration patience);
  /// Before Begin(): whether neither the guard nor the command has been killed since it was forked.
  [[nodiscard]] bool IsIntact() const;
  /// Once, before Begin(): waits until the command is forked. A signal that the process group gets
  /// after that ends the command as it begins; an earlier one has not reached it. `lease_end`: the
  /// first D (protocol: the lease). Throws std::system_error if the system refused the guard
  /// something.
  void Await(TimePoint lease_end, Duration grace);
  /// Lets the command be executed with `environment`: NAME=VALUE, all of it. The result shows in
  /// the caller's event loop: a command that is suspended at this moment, as by Ctrl-Z, must not
  /// keep zklock from its signals and heartbeats. After the stop time of its lease it does not
  /// begin, and has ended because of that.
  void Begin(const std::vector<std::string>& environment);

  /// Moves the lease's end, forward or back, and sets the grace between the stop signal and KILL.
  /// The command is ended accordingly, at once if the stop time has passed.
  void SetLease(TimePoint lease_end, Duration grace);
  /// Sends a signal to the command itself; once that has ended, to all processes that
  /// Descendants::kWait waits for.
  void Forward(int signal_number);
  /// Whether a signal's `sender` is the command itself, or its guard, which continues zklock after
  /// SuspendWithCommand(). Signals from them are not to be forwarded to the command.
  [[nodiscard]] bool IsFromCommand(pid_t sender) const;
  /// The signal that has suspended the command: once for each suspension, and none if the command
  /// has been continued already, or the tree is being ended.
  [[nodiscard]] std::optional<int> TakeSuspension();
  /// Suspends this process as that signal has suspended the command, until either of them is
  /// continued, or the command has ended. If the kernel does not suspend this process
  /// (Signals::SuspendSelf), or it is continued alone, the command stays suspended. A job that its
  /// shell has suspended stays so when its lease ends and the guard ends the command: `fg` shows
  /// that.
  void SuspendWithCommand(const Signals& signals, int signal_number);
  /// A nested run will be admitted on `connection` (NestingServer): if this process is killed, the
  /// guard does not close the session before that run has ended.
  void AddNestedRun(int connection);
  /// Ends the whole tree now: the stop signal, then KILL after the grace or shortly before the
  /// lease's end, whichever is first. Idempotent. After the end, only notes the cause.
  void End(EndCause cause);

  /// The command was executed. False for a command that was too late, or whose guard had died.
  [[nodiscard]] bool has_started() const;
  /// Why the tree had to end: the first cause, from End(), or found by the guard or this object
  /// itself. None: the command has not ended yet, or by itself.
  [[nodiscard]] std::optional<EndCause> cause() const;
  /// When the run has lasted for CommandSpec::max_run. kNever: it has not begun, or has no limit.
  [[nodiscard]] TimePoint run_end() const;
  /// The tree has been sent the stop signal.
  [[nodiscard]] bool has_sent_stop() const;
  /// The command has ended by itself, and what it left behind is waited for (Descendants::kWait):
  /// one of these processes, and how many there are besides. Once, and only of a wait that takes
  /// long.
  struct Awaited {
    Survivor process;
    int more = 0;
  };
  [[nodiscard]] std::optional<Awaited> TakeAwaited();
  /// When the tree had to end, the command had already ended by itself.
  [[nodiscard]] bool had_ended() const;
  /// Null until its execve has failed; nothing is left of it then.
  [[nodiscard]] const ExecFailed* exec_failed() const;
  /// Null until the command (and, if it was ended, its whole tree) has been reaped.
  [[nodiscard]] const Ended* ended() const;
  /// One of these two is not null.
  [[nodiscard]] bool is_over() const { return exec_failed() != nullptr || ended() != nullptr; }
  /// After Await().
  [[nodiscard]] const Containment& containment() const;
  /// The command's pid, for messages.
  [[nodiscard]] pid_t command_pid() const;

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  struct State;
  explicit Supervisor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace zklock::process
