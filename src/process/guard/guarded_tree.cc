#include "process/guard/guarded_tree.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <sstream>
#include <string>

#include "process/guard/nested_run.h"
#include "process/loop/system_error.h"
#include "process/transport/transport_helper.h"
#include "process/tree/guard_name.h"
#include "protocol/lease.h"

namespace zklock::process {

GuardedTree::GuardedTree(int stop_signal, Cgroup* cgroup)
    : stop_signal_(stop_signal),
      cgroup_(cgroup),
      killer_(getpid(), [this](const Descendant& process) { return TreatmentOf(process); }) {}

void GuardedTree::Open() {
  children_.Reset(
      Check(open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC), "opening children"));
}

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

// Includes unreaped children. A child keeps its pid until this process reaps it; until then,
// kill(2) cannot reach another process.
std::vector<pid_t> GuardedTree::Children() const {
  Check(lseek(children_.get(), 0, SEEK_SET), "lseek");
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t size = read(children_.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (Check(size, "reading children") == 0) break;
    text.append(buffer.data(), static_cast<size_t>(size));
  }
  std::istringstream words(text);
  std::vector<pid_t> children;
  for (pid_t pid = 0; words >> pid;) children.push_back(pid);
  return children;
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

// The command may have unmounted /proc, or mounted something over it: a walk then finds nothing.
bool GuardedTree::IsBlind() { return access("/proc/self", F_OK) != 0; }

bool GuardedTree::StopSignalRound() {
  bool has_sent = false;
  const bool is_complete = WalkDescendants(getpid(), [&](const Descendant& process) {
    if (process.is_dead() || signalled_.count(process.id()) > 0) return true;
    if (process.stat && IsTransportHelper(*process.stat)) return false;
    // A guard blocks all signals but KILL, which must come last.
    const bool is_guard = process.stat && IsGuard(*process.stat);
    if (!is_guard) {
      const SignalResult result = SignalDescendant(process, stop_signal_);
      if (result == SignalResult::kGone) return true;
      has_sent = has_sent || result == SignalResult::kSent;
      was_refused_ = was_refused_ || result == SignalResult::kRefused;
    }
    SignalDescendant(process, SIGCONT);  // a stopped process could not act on the signal
    signalled_.insert(process.id());
    return true;
  });
  if (is_complete && !IsBlind()) return has_sent;
  for (const pid_t pid : Children()) {
    const auto known = signalled_.lower_bound(ProcessId{pid, 0});
    if (known != signalled_.end() && known->pid == pid) continue;
    has_sent = kill(pid, stop_signal_) == 0 || has_sent;
    kill(pid, SIGCONT);
    signalled_.insert(ProcessId{pid, 0});
  }
  return has_sent;
}

bool GuardedTree::KillRound(TimePoint lease_end, const std::function<void()>& reap) {
  if (killed_since_ == kNever) killed_since_ = BootClock::now();
  nested_guards_until_ = protocol::NestedGuardsUntil(killed_since_, lease_end);
  // The cgroup comes first: this ends even a fork bomb, which a walk may never catch up with.
  if (cgroup_ != nullptr) {
    has_sent_kill_ = has_sent_kill_ || cgroup_->IsPopulated();
    cgroup_->Kill(nested_guards_until_);
    // If this process was starved of CPU time, a fork bomb may have left thousands of zombies: reap
    // them now.
    reap();
  }
  const bool only_survivors = killer_.Round();
  was_refused_ = was_refused_ || !killer_.survivors().empty();
  const bool is_blind = IsBlind();
  if (!killer_.is_complete() || is_blind) {
    // When these die, their children become children of this process, a subreaper: each round
    // reaches one more generation.
    for (const pid_t pid : Children()) {
      has_sent_kill_ = kill(pid, SIGKILL) == 0 || has_sent_kill_;
    }
  }
  return only_survivors && (!is_blind || BootClock::now() >= lease_end);
}

TreeKiller::Treatment GuardedTree::TreatmentOf(const Descendant& process) const {
  return TreatmentInTree(process, nested_guards_until_);
}

}  // namespace zklock::process
