#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/event_source.h"
#include "process/executable.h"
#include "process/process_tree.h"
#include "process/signals.h"

namespace zklock::process {

/// What becomes of processes that outlive the command.
enum class Descendants {
  kLeave,  ///< left alone, and named in Ended
  kWait,   ///< the end is reported when they have ended too
  kKill,   ///< they are ended before the end is reported, as the whole tree would be
};

/// What to run, and how it is to be ended.
struct CommandSpec {
  std::string executable;              ///< from FindExecutable
  std::vector<std::string> arguments;  ///< argv, the name as the user typed it first
  int stop_signal = 15;                ///< what the tree gets first when it must end
  Duration kill_after{};               ///< between the stop signal and KILL, until SetLease()
  Descendants descendants = Descendants::kLeave;
  bool outlives_lease = false;  ///< once it is executed, the lease's end does not end it
  /// Stay open in the guard until the tree has ended, whatever becomes of zklock.
  std::vector<int> kept_open{};
  /// Run in the guard after zklock died unexpectedly and the tree has ended: closes the session.
  /// Not run when a process survived that could not be signalled: the lock must not go early.
  /// All signals are blocked, 0 to 2 are /dev/null, other descriptors closed; it must not throw.
  std::function<void()> when_orphaned;
};

/// How the command ended.
struct Ended {
  int wait_status = 0;                ///< as from waitpid, of the command itself; KILL's if unknown
  bool by_order = false;              ///< End() or the lease's end made it end
  bool guard_failed = false;          ///< the guard died or hung, so zklock ended the tree
  std::vector<Survivor> survivors;    ///< could not be signalled (another user's), run on
  std::vector<Survivor> left_behind;  ///< Descendants::kLeave: outlive the command
};

/// A wait status as shells show it: the exit status, or 128+N for signal N.
[[nodiscard]] int ShellStatus(int wait_status);

/// The command under its guard, as zklock sees it:  zklock -- guard -- command -- its descendants.
///
/// The guard is forked here and forks the command, which is executed when it begins: both forks can
/// be done while the servers still think about the lock. The guard ends the whole tree when told
/// to, when the lease's end comes near, or when zklock has gone. After its report of the command's
/// end nothing of the tree is left but, where the command ended by itself, descendants it left
/// behind.
///
/// If the guard dies, or does not do in time what it must (GuardWatch), zklock ends the tree
/// itself. Then all children of this process that were not there at Prepare() count as the tree's.
class Supervisor final : public EventSource {
 public:
  /// Forks the two, as far as they come without the lock. Throws std::system_error when the system
  /// refuses (fork, no readable /proc). Makes this process a subreaper for good. `signals` gives
  /// the mask and dispositions that the command gets back. Descriptors 0 to 2 must be taken
  /// (ReserveStandardStreams). What this process has open stays open in the command until it
  /// begins.
  static std::unique_ptr<Supervisor> Prepare(const CommandSpec& command, const Signals& signals);
  /// If the command has not ended: kills the whole tree and waits for that.
  ~Supervisor() override;

  /// Before Await(): waits, so long at most, until the command is forked and the guard has left our
  /// session and process group. False when it has not, or something was refused: this is good for
  /// nothing then but to be destroyed.
  [[nodiscard]] bool AwaitForks(Duration patience);
  /// Once, then Begin(): waits until the command is forked. A signal that the process group gets
  /// after that ends the command as it begins; one from before it has not got. `lease_end`: the
  /// first D (protocol: the lease). Throws std::system_error when the system has refused the guard
  /// something.
  void Await(TimePoint lease_end, Duration grace);
  /// Lets the command be executed, with `environment`: NAME=VALUE, all of it. What comes of it is
  /// told in the caller's loop: a command that is stopped just now, as by Ctrl-Z, must not keep
  /// zklock from its signals and heartbeats. After the stop time of its lease it does not begin,
  /// and has ended by order.
  void Begin(const std::vector<std::string>& environment);

  /// Moves the lease's end, forward or back, and sets the grace between the stop signal and KILL.
  /// The command is stopped accordingly, at once if it is late for that.
  void SetLease(TimePoint lease_end, Duration grace);
  /// Passes a signal on to the command itself; once that has ended, to all that
  /// Descendants::kWait waits for.
  void Forward(int signal_number);
  /// Whether `sender` of a signal is the command itself, or its guard, which continues zklock after
  /// StopLikewise(): what they send is not to be passed on to the command.
  [[nodiscard]] bool IsFromCommand(pid_t sender) const;
  /// The signal that has stopped the command: once for each stop, and none where the command goes
  /// on already, or the tree is being ended.
  [[nodiscard]] std::optional<int> TakeStop();
  /// Stops this process as that signal has stopped the command, until somebody continues either of
  /// them, or the command has ended. Where the kernel does not stop it (Signals::StopSelf), and
  /// when this process is continued alone, the command stays stopped. A job that its shell has
  /// stopped stays stopped when its lease ends and the guard ends its command: `fg` shows that.
  void StopLikewise(const Signals& signals, int signal_number);
  /// Ends the whole tree now: the stop signal, KILL after the grace or shortly before the lease's
  /// end, whichever is first. Idempotent.
  void End();

  /// The command was executed: not yet, not where it was too late for that, or the guard had died.
  [[nodiscard]] bool has_started() const;
  /// Set once its execve has failed; nothing of it is left.
  [[nodiscard]] const std::optional<ExecFailed>& exec_failed() const;
  /// Set once the command (and where it was ended, its whole tree) has been reaped.
  [[nodiscard]] const std::optional<Ended>& ended() const;
  /// One of these two.
  [[nodiscard]] bool is_over() const { return exec_failed() || ended(); }
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
