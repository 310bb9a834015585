#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <optional>
#include <system_error>
#include <vector>

#include "base/end_cause.h"
#include "base/unique_fd.h"
#include "process/guard/shared_memory.h"
#include "process/tree/ended.h"

namespace zklock::process {

/// The page that zklock and the guard share, for data that must reach a process even if it is
/// stopped.
struct GuardPage {
  /// The lease's end and the grace. Written by zklock, for the first time before kBegin. If the end
  /// becomes earlier, zklock then sends kWake.
  SharedLease lease;
  /// When the tree must end, however long the lease lasts. Written by zklock before kBegin, and by
  /// the guard once the command is executed.
  SharedMoment run_end{kNever};
  /// The guard has seen the lease and any order, and promises to look again by this time. A guard
  /// that is late is suspected of hanging. Written by the guard, and by zklock when the command
  /// begins.
  SharedMoment guard_looks_at;
  /// Why the tree has to end: it gets the stop signal, then KILL after the grace. Written by either
  /// process.
  SharedCause cause;
  std::atomic<bool> must_kill{false};  ///< written by zklock, with a cause: send KILL at once
  std::atomic<bool> is_lost{false};  ///< written by zklock: the lock was lost, whatever `cause` is
  std::atomic<bool> is_ending{false};  ///< written by the guard: it is ending the tree
  std::atomic<bool> had_ended{false};  ///< written before is_ending: the command had already ended
  /// Written by the guard: it has sent the stop signal, or KILL, to the processes left in the tree.
  std::atomic<bool> sent_stop{false};
  std::atomic<bool> sent_kill{false};
  std::atomic<bool> was_refused{false};  ///< likewise: a process could not be signalled
  /// Written by the guard, with kWake: the signal that suspended the command. zklock reads it and
  /// sets it to 0.
  std::atomic<int> suspended_by{0};
  /// Written by zklock: it is suspending itself with the command. Once the command continues or has
  /// ended, the guard sends CONT to zklock repeatedly until this is false.
  std::atomic<bool> zklock_is_suspended{false};
  std::atomic<pid_t> command{0};  ///< its pid, written when it is forked
  /// Written by the guard: from then on, another process may get the command's pid.
  std::atomic<bool> command_is_reaped{false};
  /// Written by the command just before its execve: from then on, the command has begun, unless the
  /// guard reports that the execve failed.
  std::atomic<bool> executes{false};
  /// Written by the guard before kReady: the errno if the command could not enter its cgroup;
  /// otherwise 0.
  std::atomic<int> cgroup_error{0};
  /// Written by zklock: it has read the report that the command ended by itself. From then on, the
  /// end of the lease does not affect processes that the command left behind.
  std::atomic<bool> is_settled{false};
  /// Written by zklock: a nested run that the guard does not know of may hold the lock.
  std::atomic<bool> keeps_session{false};

  [[nodiscard]] bool IsLost() const {
    const auto first = cause.Get();
    return is_lost || (first && zklock::IsLoss(*first));
  }
};

/// One datagram between zklock and the guard.
struct Message {
  enum class Kind : int {
    kReady,  ///< the command is forked
    kBegin,  ///< to the guard: the command may run
    kWake,   ///< in both directions: look at the page
    /// to the guard: send `number` to the command. `more`: a process group that has already
    /// received it
    kForward,
    kNestedRun,   ///< to the guard, with a descriptor: the connection of a nested run
    kStarted,     ///< the command runs
    kExecFailed,  ///< `number`: errno of execve
    kFailed,      ///< `number`: errno, `name`: the operation. The guard exits
    kSurvivor,    ///< `number`: pid, `name`. Precedes kTreeEnded
    kLeftBehind,  ///< `number`: pid, `name`. Precedes kCommandEnded
    /// The command ended by itself a while ago, but processes that it left behind are still running
    /// (Descendants::kWait). `number`: pid of one of them, `name`, `more`
    kAwaited,
    /// Likewise, but the tree is being ended, and these processes could not be signalled.
    kAwaitedSurvivor,
    /// `number`: wait status of the command, which ended by itself. zklock may still order the
    /// guard to end processes that the command left behind.
    kCommandEnded,
    kTreeEnded,  ///< `number`: wait status. Only nested runs and survivors may be left
  };
  Kind kind{};
  int number = 0;
  int more = 0;  ///< how many other processes there are, unless stated otherwise above
  /// Null-terminated. Operations have the longest names; those of processes have at most 15
  /// characters.
  std::array<char, 24> name{};
};

/// The two ends, which are close-on-exec and do not block.
struct GuardSocket {
  UniqueFd zklock;
  UniqueFd guard;
};
/// Throws std::system_error.
[[nodiscard]] GuardSocket MakeGuardSocket();

/// Sends a message. Never blocks and never raises SIGPIPE. Returns false if the other end is closed
/// or its buffer is full.
bool Send(int socket, const Message& message);
/// Sends kNestedRun, with a copy of `connection`. Returns what Send() returns.
bool SendNestedRun(int socket, int connection);
/// Sends a message of this kind (kSurvivor, kLeftBehind) for each process, up to a limit.
void SendProcesses(int socket, Message::Kind kind, const std::vector<Survivor>& processes);
/// Sends kFailed.
void SendFailure(int socket, const std::system_error& error);

struct Received {
  std::optional<Message> message;  ///< none: nothing has arrived
  bool is_closed = false;          ///< the other end is closed, and all that it sent has been read
  UniqueFd connection{};           ///< from kNestedRun; none if no descriptor was left
};
[[nodiscard]] Received Receive(int socket);

}  // namespace zklock::process
