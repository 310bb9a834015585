#include "process/guard/guarded_tree.h"

#include <unistd.h>

#include <csignal>

#include "process/guard/nested_run.h"
#include "process/transport/transport_helper.h"
#include "process/tree/guard_name.h"
#include "protocol/lease.h"

namespace zklock::process {

GuardedTree::GuardedTree(int stop_signal, Cgroup* cgroup)
    : stop_signal_(stop_signal),
      cgroup_(cgroup),
      killer_(getpid(), children_,
              [this](const Descendant& process) { return TreatmentOf(process); }) {}

void GuardedTree::Open() { children_ = OpenChildren(); }

std::vector<int> GuardedTree::descriptors() const {
  std::vector<int> all = {children_.get()};
  if (cgroup_ == nullptr) return all;
  for (const int descriptor : cgroup_->descriptors()) all.push_back(descriptor);
  return all;
}

void GuardedTree::MarkAsLeft() const {
  if (cgroup_ != nullptr) cgroup_->MarkAsLeft();
}

void GuardedTree::RemoveCgroup() const {
  if (cgroup_ != nullptr) cgroup_->Remove();
}

void GuardedTree::Forward(int signal_number, pid_t except_group) const {
  std::vector<Descendant> all;
  WalkDescendants(getpid(), [&](const Descendant& process) {
    if (process.stat && IsTransportHelper(*process.stat)) return false;
    all.push_back(process);
    return true;
  });
  // Children first, so that each process is signalled before its parent can end.
  for (auto process = all.rbegin(); process != all.rend(); ++process) {
    if (except_group != 0 && getpgid(process->pid) == except_group) continue;
    SignalDescendant(*process, signal_number);
  }
}

std::vector<Survivor> GuardedTree::Living() const {
  std::vector<Survivor> living;
  WalkDescendants(getpid(), [&](const Descendant& process) {
    // A guard is not counted: it may just be closing the session of a nested run that has ended.
    if (!process.is_dead() && !(process.stat && IsGuard(*process.stat))) {
      living.push_back({process.pid, process.stat ? process.stat->name : "?"});
    }
    return true;
  });
  return living;
}

bool GuardedTree::StopSignalRound() {
  bool has_sent = false;
  const bool is_complete = WalkDescendants(getpid(), [&](const Descendant& process) {
    if (process.is_dead() || signalled_.count(process.id()) > 0) return true;
    if (process.stat && IsTransportHelper(*process.stat)) return false;
    signalled_.insert(process.id());  // first: if this failed later, the signal would be sent again
    // A guard blocks all signals but KILL, which must be the last.
    const bool is_guard = process.stat && IsGuard(*process.stat);
    if (!is_guard) {
      const SignalResult result = SignalDescendant(process, stop_signal_);
      if (result == SignalResult::kGone) return true;
      has_sent = has_sent || result == SignalResult::kSent;
      was_refused_ = was_refused_ || result == SignalResult::kRefused;
    }
    SignalDescendant(process, SIGCONT);  // a stopped process could not act on the signal
    return true;
  });
  if (is_complete && !IsProcGone()) return has_sent;
  VisitChildren(children_, [&](pid_t pid) {
    const auto known = signalled_.lower_bound(ProcessId{pid, 0});
    if (known != signalled_.end() && known->pid == pid) return;
    signalled_.insert(ProcessId{pid, 0});
    has_sent = kill(pid, stop_signal_) == 0 || has_sent;
    kill(pid, SIGCONT);
  });
  return has_sent;
}

bool GuardedTree::KillRound(TimePoint lease_end, const std::function<void()>& reap) {
  if (killed_since_ == kNever) killed_since_ = BootClock::now();
  nested_guards_until_ = protocol::NestedGuardsUntil(killed_since_, lease_end);
  // Kill the cgroup first: this ends even a fork bomb, with which a walk may never catch up.
  if (cgroup_ != nullptr) {
    has_sent_kill_ = has_sent_kill_ || cgroup_->IsPopulated();
    cgroup_->Kill(nested_guards_until_);
    // If this process was starved of CPU time, a fork bomb may have left thousands of zombies: reap
    // them now.
    reap();
  }
  const bool only_survivors = killer_.Round();
  was_refused_ = was_refused_ || !killer_.survivors().empty();
  return only_survivors;
}

TreeKiller::Treatment GuardedTree::TreatmentOf(const Descendant& process) const {
  return TreatmentInTree(process, nested_guards_until_);
}

}  // namespace zklock::process
