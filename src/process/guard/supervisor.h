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

/// The path of a command's cgroup, or why there is none. Empty if none was requested.
using Containment = std::variant<std::monostate, std::string, NoCgroup>;

/// The command under its guard, as zklock sees it:  zklock -- guard -- command -- its descendants.
///
/// This class forks the guard, which forks the command. The command is not executed before Begin(),
/// so both forks can happen before the lock is acquired. The guard ends the whole tree when told
/// to, when the lease is about to end, or when zklock is gone. Once the guard has reported the end,
/// the whole tree is gone, except for processes that could not be signalled, and descendants left
/// behind by a command that ended by itself.
///
/// The guard outlives the tree. Until the destructor dismisses the guard, it is ready to close the
/// session (CommandSpec::when_orphaned) once zklock and the nested runs have ended.
///
/// If the guard dies or misses a deadline (GuardWatch), zklock ends the tree itself. All children
/// that this process has gained since Prepare() then count as part of the tree.
///
/// With CommandSpec::cgroup_parent, the command starts in a cgroup of its own. The destructor moves
/// processes that the command left behind to the parent, then removes the cgroup.
class Supervisor final : public EventSource {
 public:
  /// Forks the guard, which forks the command and prepares everything that is possible without the
  /// lock. Makes this process a subreaper permanently. `signals` contains the mask and dispositions
  /// to restore in the command. Descriptors 0 to 2 must be open (ReserveStandardStreams). The
  /// command keeps all descriptors of this process open until it begins. Throws std::system_error
  /// on failure (fork fails, or /proc is not readable).
  static std::unique_ptr<Supervisor> Prepare(const CommandSpec& command, const Signals& signals);
  /// If the command has not ended, kills the whole tree and waits until it is gone. Dismisses the
  /// guard, unless LeaveGuard() was called.
  ~Supervisor() override;
  /// Leaves the guard running, so that it closes the session after this object or this process has
  /// ended.
  void LeaveGuard();

  /// Waits up to `patience` until the command is forked and the guard has left this process's
  /// session and process group. Returns false if that did not happen in time or the guard failed;
  /// then destroy this object. For use before Await().
  [[nodiscard]] bool AwaitForks(Duration patience);
  /// Returns whether the guard is alive; faster than IsIntact(). For use before Begin().
  [[nodiscard]] bool IsGuarded() const;
  /// Returns whether the guard and, once forked, the command are alive. For use before Begin().
  [[nodiscard]] bool IsIntact() const;
  /// Waits until the command is forked. Must be called once, before Begin(). A signal sent to the
  /// process group after that ends the command as it begins; an earlier one does not reach it.
  /// `lease_end`: the initial end of the lease. Throws std::system_error if a system call of the
  /// guard failed, and CgroupUnavailable if the command requires a cgroup and has none.
  void Await(TimePoint lease_end, Duration grace);
  /// Executes the command; `environment` (NAME=VALUE) is its complete environment. Returns at once;
  /// the result arrives through the caller's event loop. Waiting for a command that is suspended at
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
  /// Likewise, but skips processes in this process's group, which the terminal has already
  /// signalled.
  void ForwardFromTerminal(int signal_number);
  /// Must be called before the signals that have arrived are read; then read all of them.
  void ReadsSignals();
  /// Returns whether a signal's `sender` is the command itself, or its guard, which continues
  /// zklock after SuspendWithCommand(). Signals from them must not be forwarded to the command.
  [[nodiscard]] bool IsFromCommand(pid_t sender) const;
  /// Returns whether a signal from the terminal to this process's group also reaches the command,
  /// that is, whether the command has neither ended nor left the group, as timeout(1) and setsid(1)
  /// do.
  [[nodiscard]] bool IsInOurGroup() const;
  /// Returns the signal that suspended the command, once for each suspension; none if the command
  /// has been continued already or the tree is being terminated.
  [[nodiscard]] std::optional<int> TakeSuspension();
  /// Suspends this process with the signal that suspended the command, until either of them is
  /// continued or the command has ended. If the kernel does not suspend this process
  /// (Signals::SuspendSelf), or something continues only this process, the command stays suspended.
  /// If the job was suspended under a shell and the guard then ends the command with its lease, the
  /// job stays suspended until `fg`, which then shows how it ended.
  void SuspendWithCommand(const Signals& signals, int signal_number);
  /// Must be called before a nested run is admitted on `connection` (NestingServer): if this
  /// process is killed, the guard then does not close the session before that run has ended.
  void AddNestedRun(int connection);
  /// Ends the whole tree now: the stop signal, then KILL after the grace or shortly before the
  /// lease's end, whichever is first. Idempotent. After the tree has ended, only records the cause.
  void End(EndCause cause);
  /// Records that the lock is lost, without ending the tree (--on-lost warn). If something else
  /// ends the tree, nothing waits for processes that could not be signalled.
  void RecordLoss();

  /// Returns whether the command was executed; false if it was too late or its guard died first.
  [[nodiscard]] bool has_started() const;
  /// Returns why the tree had to end: the first cause, given to End() or found by the guard or by
  /// this object. Returns none if the command has not ended yet, or ended by itself.
  [[nodiscard]] std::optional<EndCause> cause() const;
  /// Returns when the run reaches CommandSpec::max_run; kNever if it has not begun or has no limit.
  [[nodiscard]] TimePoint run_end() const;
  /// Returns whether the stop signal has been sent to the tree.
  [[nodiscard]] bool has_sent_stop() const;
  /// What keeps the lock held during a long wait: processes that the command left behind
  /// (Descendants::kWait), or that had to end but could not be signalled.
  struct Awaited {
    Survivor process;
    int more = 0;  ///< how many others there are
    bool is_survivor = false;
  };
  /// Returns each report only once.
  [[nodiscard]] std::optional<Awaited> TakeAwaited();
  /// Returns whether the command had already ended by itself when the tree had to end.
  [[nodiscard]] bool had_ended() const;
  /// Returns null unless the command's execve failed; in that case, none of its processes is left.
  [[nodiscard]] const ExecFailed* exec_failed() const;
  /// Returns null until the command (and, if it was terminated, its whole tree) has been reaped.
  [[nodiscard]] const Ended* ended() const;
  /// Returns whether either of these two is not null.
  [[nodiscard]] bool is_over() const { return exec_failed() != nullptr || ended() != nullptr; }
  /// Returns the command's cgroup. Valid after Await().
  [[nodiscard]] const Containment& containment() const;
  /// Returns the command's pid, for messages.
  [[nodiscard]] pid_t command_pid() const;

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  struct State;
  explicit Supervisor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace zklock::process
