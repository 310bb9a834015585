#include "process/guard/takeover.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "process/guard/nested_run.h"
#include "process/transport/transport_helper.h"
#include "protocol/lease.h"

namespace zklock::process {

namespace {

// Returns whether `pid` is no longer a child of this process. Until then, the pid cannot be reused.
bool Reap(pid_t pid, int* status) {
  const pid_t result = waitpid(pid, status, WNOHANG | __WALL);
  return result == pid || (result < 0 && errno == ECHILD);
}

}  // namespace

std::set<ProcessId> OwnChildren() {
  std::set<ProcessId> children;
  // Usually there are none, and this check is ten times as fast as reading /proc.
  siginfo_t info{};
  if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 && errno == ECHILD) {
    return children;
  }
  for (const pid_t pid : ChildrenOf(getpid())) {
    const auto stat = ReadProcessStat(pid);
    children.insert(stat ? stat->id : ProcessId{pid, 0});
  }
  return children;
}

bool Outsiders::Include(const ProcessId& id) const {
  if (id.start_time != 0) return children.count(id) > 0 || id.start_time < tree_begins;
  const auto found = children.lower_bound(id);
  return found != children.end() && found->pid == id.pid;
}

TakeOver::TakeOver(pid_t guard, pid_t command, const UniqueFd& children, Outsiders outsiders,
                   Cgroup* cgroup)
    : guard_(guard),
      command_(command),
      command_status_(SIGKILL),
      outsiders_(std::move(outsiders)),
      cgroup_(cgroup),
      began_(BootClock::now()),
      killer_(getpid(), children,
              [this](const Descendant& process) { return TreatmentOf(process); }),
      next_round_(began_) {
  kill(guard_, SIGKILL);
}

TreeKiller::Treatment TakeOver::TreatmentOf(const Descendant& process) const {
  using Treatment = TreeKiller::Treatment;
  if (outsiders_.Include(process.id()) || IsOwnHelper(process.pid)) return Treatment::kLeave;
  if (process.pid == guard_) return Treatment::kKill;
  return TreatmentInTree(process, nested_guards_until_);
}

bool TakeOver::Round(TimePoint lease_end) {
  nested_guards_until_ = protocol::NestedGuardsUntil(began_, lease_end);
  if (cgroup_ != nullptr) cgroup_->Kill(nested_guards_until_);
  const bool is_settled = killer_.Round();
  if (guard_ != 0 && Reap(guard_, nullptr)) guard_ = 0;
  // The command becomes a child of this process only once the guard is gone.
  if (guard_ == 0 && command_ != 0 && Reap(command_, &command_status_)) command_ = 0;
  next_round_ = BootClock::now() + killer_.pause();
  return is_settled && guard_ == 0 && (cgroup_ == nullptr || !cgroup_->IsPopulated());
}

}  // namespace zklock::process
