#include "process/tree_stopper.h"

#include <unistd.h>

#include <csignal>

namespace zklock::process {

void TreeStopper::Round() {
  const bool is_complete = WalkDescendants(getpid(), [&](const Descendant& process) {
    if (process.is_dead() || stopped_.count(process.id()) > 0) return true;
    if (SignalDescendant(process, stop_signal_) == SignalResult::kGone) return true;
    SignalDescendant(process, SIGCONT);  // a stopped one could not act on it
    stopped_.insert(process.id());
    return true;
  });
  if (!is_complete) StopChildren();
}

void TreeStopper::StopChildren() {
  for (const pid_t pid : children_.Read()) {
    const auto known = stopped_.lower_bound(ProcessId{pid, 0});
    if (known != stopped_.end() && known->pid == pid) continue;
    kill(pid, stop_signal_);
    kill(pid, SIGCONT);
    stopped_.insert(ProcessId{pid, 0});
  }
}

}  // namespace zklock::process
