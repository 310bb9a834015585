#include "process/nesting/run_connection.h"

#include <sys/socket.h>

#include "process/nesting/nesting_socket.h"

namespace zklock::process {
namespace {

// Far longer than the kernel takes to kill a command whose guard has died, unless the command hangs
// in the kernel or has gained other privileges through its execve.
constexpr Duration kKillTime = std::chrono::seconds(2);

}  // namespace

void RunConnection::End() {
  shutdown(socket_.get(), SHUT_WR);
  is_told_ = true;
  Plan();
}

bool RunConnection::HasEnded() {
  if (socket_) {
    pollfd polled{socket_.get(), POLLRDHUP, 0};
    if (poll(&polled, 1, 0) != 1) return false;
    const auto named = protocol::ParseNestingCommand(PeekText(socket_.get()));
    socket_.Reset();  // before FindCommand(), to free a descriptor for it
    if (named) FindCommand(*named);
  }
  return !process_ || process_->HasEnded() || BootClock::now() >= give_up_at_;
}

/// A run that lies about its command only keeps the lock held longer, which it could also do by
/// keeping its connection open.
void RunConnection::FindCommand(const protocol::NestingCommand& named) {
  const ProcessId id{static_cast<pid_t>(named.pid), named.start_time};
  auto process = PidFd::Open(id.pid);
  if (!process || process->fd() < 0) return;
  // A process that /proc does not show is assumed to be the command: waiting for another process is
  // safe.
  const auto stat = ReadProcessStat(id.pid);
  if (stat && stat->id != id) return;
  process_ = std::move(process);
  command_ = id;
  Plan();
}

void RunConnection::Plan() {
  if (is_told_ && process_ && give_up_at_ == kNever) give_up_at_ = BootClock::now() + kKillTime;
}

pollfd RunConnection::ToPoll() const {
  if (socket_) return {socket_.get(), POLLRDHUP, 0};
  return {process_ ? process_->fd() : -1, POLLIN, 0};
}

}  // namespace zklock::process
