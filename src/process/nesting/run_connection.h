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

/// The connection of a nested run, in the process that holds its lock or in that one's guard. The
/// zklock and the guard of the run keep their end open until nothing of it is left. If both are
/// killed at once, the kernel closes it a little before it kills the command: hence the run has
/// named its command (protocol::NestingCommand), and that is waited for as well.
///
/// Nobody takes that message from the socket, so that it is still there for each process that has a
/// copy of this end.
class RunConnection {
 public:
  explicit RunConnection(UniqueFd socket) : socket_(std::move(socket)) {}

  /// Tells the run to end. Nobody can tell that to a command that has outlived its zklock and
  /// guard: it is waited for no longer than the kernel takes to kill it.
  void End();
  /// Whether the run is over. Before Linux 5.3, no such command is waited for.
  [[nodiscard]] bool HasEnded();
  /// What to poll now for the end of the run, and until when.
  [[nodiscard]] pollfd ToPoll() const;
  [[nodiscard]] TimePoint wake() const { return give_up_at_; }
  /// -1 once the other end is closed.
  [[nodiscard]] int socket() const { return socket_.get(); }
  /// The command that has outlived its zklock and guard.
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
