#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <optional>
#include <system_error>
#include <vector>

#include "base/unique_fd.h"
#include "process/guard/shared_lease.h"
#include "process/tree/ended.h"

namespace zklock::process {

/// The page that zklock and the guard share, for what must arrive even if the other is stopped.
struct GuardPage {
  /// The lease's end and the grace. Written by zklock, first before kBegin. If the end moves back,
  /// kWake follows.
  SharedLease lease;
  /// When the tree has to end, however long the lease lasts. Written by zklock before kBegin, and
  /// by the guard once the command is executed.
  SharedMoment run_end{kNever};
  /// Written by the guard, and by zklock as the command begins: the guard has seen the lease and
  /// the order, and will look (and move this) again at this moment at the latest. A guard that is
  /// later hangs.
  SharedMoment guard_looks_at;
  /// Written by either: the tree has to end, by the stop signal, and KILL after the grace.
  SharedCause cause;
  std::atomic<bool> must_kill{false};  ///< written by zklock, with a cause: KILL at once
  std::atomic<bool> is_ending{false};  ///< written by the guard: it is ending the tree
  std::atomic<bool> had_ended{false};  ///< written before is_ending: only descendants were left
  /// Written by the guard: it has sent the stop signal, or KILL, to what was left of the tree.
  std::atomic<bool> sent_stop{false};
  std::atomic<bool> sent_kill{false};
  /// Written by the guard, with kWake: the signal that suspended the command. zklock takes it, and
  /// leaves 0.
  std::atomic<int> suspended_by{0};
  /// Written by zklock: it suspends itself with the command. The guard continues it, again and
  /// again until this is false, once the command continues or has ended.
  std::atomic<bool> zklock_is_suspended{false};
  std::atomic<pid_t> command{0};  ///< written when it is forked
  /// Written by the guard before kReady: why the command is not in its cgroup. 0: it is.
  std::atomic<int> cgroup_error{0};
  /// Written by zklock: it has taken the report that the command ended by itself. From now on the
  /// lease ends nothing that the command left behind.
  std::atomic<bool> is_settled{false};
  /// Written by zklock: a nested run may hold the lock of which the guard does not know.
  std::atomic<bool> keeps_session{false};
};

/// One datagram between zklock and the guard.
struct Message {
  enum class Kind : int {
    kReady,       ///< the command is forked
    kBegin,       ///< to the guard: the command may run
    kWake,        ///< in both directions: look at the page
    kForward,     ///< to the guard: send `number` to the command
    kNestedRun,   ///< to the guard, with a descriptor: the connection of a nested run
    kStarted,     ///< the command runs
    kExecFailed,  ///< `number`: errno of execve
    kFailed,      ///< `number`: errno, `name`: the operation. The guard exits
    kSurvivor,    ///< `number`: pid, `name`. Precedes kTreeEnded
    kLeftBehind,  ///< `number`: pid, `name`. Precedes kCommandEnded
    /// The command has ended by itself a while ago, but not what it left behind
    /// (Descendants::kWait): `number`: pid of one of these processes, `name`, `more`
    kAwaited,
    /// `number`: wait status of the command, which ended by itself. zklock may still order the
    /// guard to end what the command left behind.
    kCommandEnded,
    kTreeEnded,  ///< `number`: wait status. Only nested runs may be left
  };
  Kind kind{};
  int number = 0;
  int more = 0;  ///< how many processes there are besides that one
  /// Null-terminated. The longest is an operation: those of a process have 15 characters at most.
  std::array<char, 24> name{};
};

/// Both ends are close-on-exec and do not block.
struct GuardSocket {
  UniqueFd zklock;
  UniqueFd guard;
};
/// Throws std::system_error.
[[nodiscard]] GuardSocket MakeGuardSocket();

/// Never blocks and never raises PIPE. False if the other end is closed, or its buffer is full.
bool Send(int socket, const Message& message);
/// kNestedRun, with a copy of `connection`. Returns as Send().
bool SendNestedRun(int socket, int connection);
/// A message of this kind (kSurvivor, kLeftBehind) for each process, up to a limit.
void SendProcesses(int socket, Message::Kind kind, const std::vector<Survivor>& processes);
/// kFailed.
void SendFailure(int socket, const std::system_error& error);

struct Received {
  std::optional<Message> message;  ///< none: nothing has arrived
  bool is_closed = false;          ///< the other end is closed, and everything it sent was read
  UniqueFd connection{};           ///< of kNestedRun; none if this process could get no descriptor
};
[[nodiscard]] Received Receive(int socket);

}  // namespace zklock::process
