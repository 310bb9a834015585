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

/// The path of a command's cgroup, or why it has none. Empty if none was requested.
using Containment = std::variant<std::monostate, std::string, NoCgroup>;

/// The command under its guard, as zklock sees it:  zklock -- guard -- command -- its descendants.
///
/// This class forks the guard, which forks the command. The command is not executed before Begin(),
/// so both forks can happen before the lock is acquired. The guard ends the whole tree when told
/// to, when the lease is about to end, or when zklock is gone. Once it has reported the end, the
/// whole tree is gone, except for processes that could not be signalled, and descendants left
/// behind by a command that ended by itself.
///
/// The guard outlives the tree. Until the destructor dismisses it, it is ready to close the session
/// (CommandSpec::when_orphaned) when zklock and the nested runs have ended.
///
/// If the guard dies or misses a deadline (GuardWatch), zklock ends the tree itself. All children
/// of this process that did not exist at Prepare() then count as part of the tree.
///
/// With CommandSpec::cgroup_parent, the command starts in a cgroup of its own. The destructor moves
/// processes that the command left behind to the parent, then removes the cgroup.
class Supervisor final : public EventSource {
 public:
  /// Forks the guard, which forks the command and prepares everything that is possible without the
  /// lock. Makes this process a subreaper permanently. `signals` has the mask and dispositions to
  /// restore in the command. Descriptors 0 to 2 must be open (ReserveStandardStreams). All
  /// descriptors of this process stay open in the command until it begins. Throws std::system_error
  /// on failure (fork fails, or /proc is not readable).
  static std::unique_ptr<Supervisor> Prepare(const CommandSpec& command, const Signals& signals);
  /// If the command has not ended, kills the whole tree and waits until it is gone. Dismisses the
  /// guard, unless LeaveGuard() was called.
  ~Supervisor() override;
  /// Leaves the guard running, so that it closes the session after this object or this process has
  /// ended.
  void LeaveGuard();

  /// Before Await(): waits at most this long until the command is forked and the guard has left
  /// this process's session and process group. Returns false if that did not happen in time or the
  /// guard failed; then destroy this object.
  [[nodiscard]] bool AwaitForks(Duration patience);
  /// Before Begin(): whether the guard is alive; faster than IsIntact().
  [[nodiscard]] bool IsGuarded() const;
  /// Before Begin(): whether neither the guard nor the command has been killed since it was forked.
  [[nodiscard]] bool IsIntact() const;
  /// Must be called once, before Begin(): waits until the command is forked. A signal sent to the
  /// process group after that ends the command as it begins; an earlier one does not reach it.
  /// `lease_end`: when the lease ends, initially. Throws std::system_error if a system call of the
  /// guard failed, and CgroupUnavailable if the command requires a cgroup and has none.
  void Await(TimePoint lease_end, Duration grace);
  /// Executes the command; `environment` (NAME=VALUE) is its complete environment. Returns at once;
  /// the result arrives through the caller's event loop. Otherwise a command that is suspended at
  /// this moment, for example by Ctrl-Z, would keep zklock from handling signals and sending
  /// heartbeats. If the lease's stop time has passed, the command is not executed, and counts as
  /// ended for that reason.
  void Begin(const std::vector<std::string>& environment);

  /// Moves the end of the lease, forward or back, and sets the grace between the stop signal and
  /// KILL. The command is terminated accordingly, immediately if the stop time has passed.
  void SetLease(TimePoint lease_end, Duration grace);
  /// Sends a signal to the command itself or, once it has ended, to all processes that
  /// Descendants::kWait waits for.
  void Forward(int signal_number);
  /// Likewise, but skips processes in this process's group: the terminal has already signalled
  /// them.
  void ForwardFromTerminal(int signal_number);
  /// Call this before reading the signals that have arrived; then read all of them.
  void ReadsSignals();
  /// Whether a signal's `sender` is the command itself, or its guard, which continues zklock after
  /// SuspendWithCommand(). Signals from them must not be forwarded to the command.
  [[nodiscard]] bool IsFromCommand(pid_t sender) const;
  /// Whether a signal that a terminal sends to this process's group reaches the command as well,
  /// that is, whether the command has neither ended nor left the group, as timeout(1) and setsid(1)
  /// do.
  [[nodiscard]] bool IsInOurGroup() const;
  /// Returns the signal that suspended the command, once for each suspension; none if the command
  /// has been continued already or the tree is being terminated.
  [[nodiscard]] std::optional<int> TakeSuspension();
  /// Suspends this process with the signal that suspended the command, until either of them is
  /// continued or the command has ended. If the kernel does not suspend this process
  /// (Signals::SuspendSelf), or something continues only this process, the command stays suspended.
  /// If a shell has suspended the job and the guard ends the command with its lease, the job stays
  /// suspended until `fg`, which then shows how it ended.
  void SuspendWithCommand(const Signals& signals, int signal_number);
  /// Must be called before a nested run is admitted on `connection` (NestingServer): if this
  /// process is killed, the guard then does not close the session before that run has ended.
  void AddNestedRun(int connection);
  /// Ends the whole tree now: the stop signal, then KILL after the grace or shortly before the
  /// lease's end, whichever is first. Idempotent. After the tree has ended, only records the cause.
  void End(EndCause cause);
  /// Records that the lock is lost, without ending the tree (--on-lost warn). If something else
  /// ends the tree, processes that could not be signalled are not waited for.
  void RecordLoss();

  /// Whether the command was executed: false if it was too late, or if its guard died first.
  [[nodiscard]] bool has_started() const;
  /// Why the tree had to end: the first cause, given to End() or found by the guard or by this
  /// object. None if the command has not ended yet, or ended by itself.
  [[nodiscard]] std::optional<EndCause> cause() const;
  /// When the run reaches CommandSpec::max_run; kNever if it has not begun or has no limit.
  [[nodiscard]] TimePoint run_end() const;
  /// Whether the tree has been sent the stop signal.
  [[nodiscard]] bool has_sent_stop() const;
  /// What keeps the lock held if the wait is long: processes that the command left behind
  /// (Descendants::kWait), or that had to end but could not be signalled.
  struct Awaited {
    Survivor process;
    int more = 0;  ///< how many others there are
    bool is_survivor = false;
  };
  /// Each report is returned only once.
  [[nodiscard]] std::optional<Awaited> TakeAwaited();
  /// Whether the command had already ended by itself when the tree had to end.
  [[nodiscard]] bool had_ended() const;
  /// Null unless the command's execve has failed; in that case, none of its processes is left.
  [[nodiscard]] const ExecFailed* exec_failed() const;
  /// Null until the command (and, if it was terminated, its whole tree) has been reaped.
  [[nodiscard]] const Ended* ended() const;
  /// Whether either of these two is not null.
  [[nodiscard]] bool is_over() const { return exec_failed() != nullptr || ended() != nullptr; }
  /// Valid after Await().
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
