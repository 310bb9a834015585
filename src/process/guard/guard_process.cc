#include "process/guard/guard_process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "process/guard/command.h"
#include "process/guard/guard.h"
#include "process/loop/child.h"
#include "process/tree/process_tree.h"

namespace zklock::process {

GuardProcess::GuardProcess(const CommandSpec& command, const Signals& signals, Cgroup* cgroup) {
  page().lease.Set(TimePoint(), command.kill_after);
  const ExecImage image(command.executable, command.arguments, shared_->environment);
  GuardSocket ends = MakeGuardSocket();
  const GuardDuty duty{command, image, signals, page(), cgroup, getpid()};
  pid_ = ForkBlocked("fork");
  if (pid_ == 0) {
    ends.zklock.Reset();
    RunGuard(duty, std::move(ends.guard));
  }
  socket_ = std::move(ends.zklock);
  if (const auto stat = ReadProcessStat(pid_)) start_time_ = stat->id.start_time;
}

bool GuardProcess::HasEnded() const {
  siginfo_t info{};
  return pid_ == 0 ||
         waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid != 0;
}

// KILL ends the guard even if it is stopped. The socket stays open until the guard is dead: EOF
// would tell the guard to close the session.
void GuardProcess::Dismiss() {
  if (pid_ == 0) return;  // kill(0, ...) would signal this process's group
  kill(pid_, SIGKILL);
  WaitFor(std::exchange(pid_, 0));
}

// The command dies with the guard (PDEATHSIG), becomes a child of this process, and has no children
// yet. A command that was stopped before its prctl would survive, so it is killed here. If the
// guard has reaped it, the pid is unused or belongs to a process that is not a child of this one.
void GuardProcess::Discard() {
  Dismiss();
  const pid_t command = page().command;
  siginfo_t info;
  if (command == 0 ||
      waitid(P_PID, static_cast<id_t>(command), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
    return;
  }
  kill(command, SIGKILL);
  WaitFor(command);
}

}  // namespace zklock::process
