#pragma once

#include <poll.h>

#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "process/tree/pidfd.h"
#include "process/tree/process_tree.h"
#include "protocol/nesting.h"

namespace zklock::process {

/// The connection of a nested run, in the process that holds its lock or in that process's guard.
/// The run's zklock and guard keep their end open until none of the run's processes is left. If
/// both are killed at the same time, the kernel closes that end a little before it kills the
/// command. Therefore the run names its command in advance (protocol::NestingCommand), and this
/// class waits for the command as well.
///
/// That message is never removed from the socket, so that every process with a copy of this end of
/// the connection can read it.
class RunConnection {
 public:
  explicit RunConnection(UniqueFd socket) : socket_(std::move(socket)) {}

  /// Tells the run to end. A command that has outlived its zklock and guard cannot be told; this
  /// object stops waiting for it after the time that the kernel may take to kill it.
  void End();
  /// Returns whether the run is over. Before Linux 5.3, ignores a command that has outlived its
  /// zklock and guard.
  [[nodiscard]] bool HasEnded();
  /// Returns what to poll, until wake(), to notice the run's end.
  [[nodiscard]] pollfd ToPoll() const;
  [[nodiscard]] TimePoint wake() const { return give_up_at_; }
  /// -1 once the other end is closed.
  [[nodiscard]] int socket() const { return socket_.get(); }
  /// The command, once it has outlived its zklock and guard.
  [[nodiscard]] const std::optional<ProcessId>& command() const { return command_; }

 private:
  void FindCommand(const protocol::NestingCommand& named);
  void Plan();

  UniqueFd socket_;
  std::optional<ProcessId> command_;
  std::optional<PidFd> process_;  // the command
  bool is_told_ = false;          // End()
  TimePoint give_up_at_ = kNever;
};

}  // namespace zklock::process
