#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "process/guard/guard_link.h"
#include "process/guard/shared_memory.h"
#include "process/loop/signals.h"
#include "process/tree/cgroup.h"
#include "process/tree/command_spec.h"

namespace zklock::process {

/// The guard as a child process of zklock. This class forks it, communicates with it through a
/// shared page and a socket, dismisses or discards it, and reaps it. guard.cc implements the guard
/// itself.
class GuardProcess {
 public:
  /// Forks the guard. `cgroup`: the command's; may be null. Throws std::system_error.
  GuardProcess(const CommandSpec& command, const Signals& signals, Cgroup* cgroup);
  GuardProcess(const GuardProcess&) = delete;
  GuardProcess& operator=(const GuardProcess&) = delete;

  [[nodiscard]] GuardPage& page() const { return shared_->page; }
  /// 0 once the guard has been reaped.
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Returns whether the guard has ended, for example because it was killed. It might not have been
  /// reaped yet.
  [[nodiscard]] bool HasEnded() const;
  /// When the guard started, in clock ticks since boot; 0 if /proc did not show it.
  [[nodiscard]] unsigned long long start_time() const { return start_time_; }

  /// Like SharedEnvironment::Set(). Must be called before kBegin is sent.
  [[nodiscard]] bool SetEnvironment(const std::vector<std::string>& environment) {
    return shared_->environment.Set(environment);
  }
  void Send(const Message& message) const { process::Send(socket_.get(), message); }
  /// Like process::SendNestedRun().
  [[nodiscard]] bool SendNestedRun(int connection) const {
    return process::SendNestedRun(socket_.get(), connection);
  }
  [[nodiscard]] Received Receive() const { return process::Receive(socket_.get()); }
  /// Readable when a message has arrived or the guard is gone; -1 after CloseSocket().
  [[nodiscard]] int socket() const { return socket_.get(); }
  void CloseSocket() { socket_.Reset(); }

  /// Kills and reaps a guard that has nothing left to do.
  void Dismiss();
  /// Kills and reaps the guard and a command that has not begun.
  void Discard();
  /// Must be called once the guard has been reaped elsewhere.
  void Forget() { pid_ = 0; }

 private:
  /// Page and environment share one mapping, since each mapping costs the kernel an inode, and
  /// every process a page fault.
  struct Shared {
    GuardPage page;
    SharedEnvironment environment;
  };

  SharedPage<Shared> shared_;
  UniqueFd socket_;
  pid_t pid_ = 0;
  unsigned long long start_time_ = 0;
};

}  // namespace zklock::process
