#include "process/tree/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string_view>

#include "base/read_file.h"
#include "base/unique_fd.h"
#include "process/loop/system_error.h"
#include "process/tree/pidfd.h"

namespace zklock::process {

namespace {

using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;

std::string ProcPath(pid_t pid) { return "/proc/" + std::to_string(pid); }

void AppendPids(std::string_view text, std::vector<pid_t>& pids) {
  while (!text.empty()) {
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
    if (error == std::errc()) pids.push_back(pid);
    const size_t read = static_cast<size_t>(end - text.data());
    text.remove_prefix(std::min(text.size(), read + 1));  // including the space after it
  }
}

/// Reads the start of a file, without allocating memory. Returns an empty text and sets errno if it
/// cannot be read.
std::string_view ReadStart(const char* path, std::array<char, 1024>& buffer) {
  const UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  ssize_t size = -1;
  do {
    size = file ? read(file.get(), buffer.data(), buffer.size()) : -1;
  } while (size < 0 && errno == EINTR);
  return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

// The fields of /proc/PID/stat after the name, as numbered in proc(5).
constexpr size_t kFirstField = 3;
constexpr size_t kFieldsRead = 22 - kFirstField + 1;

/// Removes the first word from `text` and returns it; returns an empty one if there is none.
std::string_view TakeWord(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

}  // namespace

std::optional<uid_t> EffectiveUserOf(pid_t pid) {
  // Unlike its contents, the directory does not belong to root if the process is not dumpable: see
  // task_dump_owner() in the kernel.
  struct stat directory {};
  if (stat(ProcPath(pid).c_str(), &directory) != 0) return std::nullopt;
  return directory.st_uid;
}

std::optional<ProcessStat> ReadProcessStat(pid_t pid) {
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", pid);
  // Enough for the fields that are read, with a name of 64 bytes. A page would be one more page of
  // stack in each waiter and guard.
  std::array<char, 1024> buffer;  // NOLINT(*-member-init): the kernel fills it
  const std::string_view text = ReadStart(path.data(), buffer);
  // The text is "pid (name) state ppid ...". The name may contain anything, even parentheses and
  // spaces.
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  // Empty if the process has ended, perhaps during the read (ESRCH).
  if (open == std::string::npos || close == std::string::npos) return std::nullopt;

  ProcessStat stat{{pid, 0}, 0, std::string(text.substr(open + 1, close - open - 1)), '?', false};
  std::string_view rest = text;
  rest.remove_prefix(close + 1);
  std::array<std::string_view, kFieldsRead> fields;
  for (std::string_view& field : fields) field = TakeWord(rest);
  const auto number = [&fields](size_t field, auto& value) {
    const std::string_view word = fields[field - kFirstField];
    return std::from_chars(word.data(), word.data() + word.size(), value).ec == std::errc();
  };
  long threads = 0;
  if (!number(4, stat.parent) || !number(20, threads) || !number(22, stat.id.start_time)) {
    return std::nullopt;
  }
  if (const std::string_view state = fields[3 - kFirstField]; !state.empty()) {
    stat.state = state.front();
  }
  // A leader that has ended is a zombie while other threads of the process still run.
  stat.is_dead = (stat.state == 'Z' || stat.state == 'X') && threads <= 1;
  return stat;
}

unsigned long long ReadRunTime(pid_t pid) {
  unsigned long long time = 0;
  if (const std::optional<std::string> text = ReadFile(ProcPath(pid) + "/schedstat")) {
    std::from_chars(text->data(), text->data() + text->size(), time);
  }
  return time;
}

namespace {

/// Returns the name of the file that a link in /proc refers to, even if the file has been deleted
/// or replaced. On failure, returns none and sets errno.
std::optional<std::string> NameBehind(const std::string& link) {
  std::array<char, PATH_MAX> target{};
  const ssize_t size = readlink(link.c_str(), target.data(), target.size());
  if (size < 0) return std::nullopt;
  std::string_view name(target.data(), static_cast<size_t>(size));
  constexpr std::string_view kDeleted = " (deleted)";
  if (name.ends_with(kDeleted)) name.remove_suffix(kDeleted.size());
  return std::string(name.substr(name.rfind('/') + 1));
}

}  // namespace

bool Executes(pid_t pid, const std::string& file) {
  const std::string link = ProcPath(pid) + "/exe";
  struct stat executed {};
  struct stat wanted {};
  if (stat(link.c_str(), &executed) == 0 && stat(file.c_str(), &wanted) == 0 &&
      executed.st_dev == wanted.st_dev && executed.st_ino == wanted.st_ino) {
    return true;
  }
  if (EffectiveUserOf(pid) != std::optional(geteuid())) return false;
  // An upgrade replaces the file, so processes started before and after it execute different ones.
  const std::optional<std::string> name = NameBehind(link);
  // A process's link is hidden if its user may execute the file but not read it.
  if (!name) return errno == EACCES;
  return name == NameBehind(file).value_or(file.substr(file.rfind('/') + 1));
}

UniqueFd OpenChildren() {
  const std::string path = "/proc/self/task/" + std::to_string(syscall(SYS_gettid)) + "/children";
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) throw NoProcessTree(errno, std::generic_category(), "opening " + path);
  return file;
}

void RequireProcessTree() { (void)OpenChildren(); }

bool IsProcGone() { return access("/proc/self", F_OK) != 0; }

namespace {

bool IsThere(pid_t pid) { return pid > 0 && (kill(pid, 0) == 0 || errno == EPERM); }

/// Finds the children of a process that /proc hides (hidepid), by reading every process that it
/// shows.
std::vector<pid_t> VisibleChildrenOf(pid_t parent) {
  std::vector<pid_t> children;
  const Directory directory(opendir("/proc"), closedir);
  if (!directory) ThrowErrno("listing processes");
  while (const dirent* entry = readdir(directory.get())) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid <= 0) continue;
    errno = 0;
    const std::optional<ProcessStat> stat = ReadProcessStat(pid);
    if (!stat && IsShortage(errno)) ThrowErrno("listing processes");
    if (stat && stat->parent == parent) children.push_back(pid);
  }
  return children;
}

}  // namespace

std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::vector<pid_t> children;
  const std::string tasks = ProcPath(pid) + "/task";
  const Directory directory(opendir(tasks.c_str()), closedir);
  if (!directory) {
    if (IsShortage(errno)) ThrowErrno("listing children");
    if (IsThere(pid)) children = VisibleChildrenOf(pid);  // another user's, which /proc hides
    return children;
  }
  while (const dirent* entry = readdir(directory.get())) {
    if (entry->d_name[0] == '.') continue;
    if (const auto text = ReadFile(tasks + "/" + entry->d_name + "/children")) {
      AppendPids(*text, children);
    } else if (IsShortage(errno)) {
      ThrowErrno("listing children");
    }
  }
  return children;
}

bool WalkDescendants(pid_t root, const std::function<bool(const Descendant&)>& visit) {
  struct Found {
    pid_t pid;
    pid_t parent;
  };
  std::vector<Found> to_visit;
  std::set<pid_t> seen;  // a process reparented during the walk may be listed twice
  bool is_complete = true;
  const auto add_children = [&](pid_t parent) {
    try {
      for (const pid_t child : ChildrenOf(parent)) {
        if (seen.insert(child).second) to_visit.push_back({child, parent});
      }
    } catch (const std::system_error&) {
      is_complete = false;  // the other processes are still visited
    } catch (const std::bad_alloc&) {
      is_complete = false;
    }
  };
  add_children(root);
  while (!to_visit.empty()) {
    const Found next = to_visit.back();
    to_visit.pop_back();
    Descendant process{next.pid, next.parent, ReadProcessStat(next.pid)};
    // If its parent has ended since it was listed, the process is now the child of another
    // ancestor, which the walk has already found.
    if (process.stat && (process.stat->parent == root || seen.count(process.stat->parent) > 0)) {
      process.parent = process.stat->parent;
    }
    try {
      if (visit(process) && !process.is_other()) add_children(process.pid);
    } catch (const std::bad_alloc&) {
      is_complete = false;
    }
  }
  return is_complete;
}

SignalResult SignalDescendant(const Descendant& process, int signal_number) {
  const std::optional<PidFd> target = PidFd::Open(process.pid);
  if (!target) return SignalResult::kGone;
  // The descriptor refers to the process that has the pid now. Signal that process if it is still
  // the one that the walk found, even if its parent has changed. A process that /proc hides
  // (hidepid) cannot be checked, but pids are handed out in ascending order and wrap around: no
  // other process can have got this pid since the walk listed it.
  if (process.stat) {
    errno = 0;
    const std::optional<ProcessStat> stat = ReadProcessStat(process.pid);
    const bool is_unknown = !stat && IsShortage(errno);  // like a hidden one
    const bool is_same = stat ? stat->id == process.stat->id : is_unknown;
    if (process.is_other() || !is_same) return SignalResult::kGone;
  }
  switch (target->Signal(signal_number)) {
    case 0:
      return SignalResult::kSent;
    case EPERM:
      return SignalResult::kRefused;
    default:
      return SignalResult::kGone;
  }
}

namespace {

/// Returns whether `process` is an ended child of this process that /proc hides. Until it is
/// reaped, it can be signalled and looks alive.
bool IsHiddenZombie(const Descendant& process) {
  if (process.stat || process.parent != getpid()) return false;
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(process.pid), &info,
                WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 &&
         info.si_pid == process.pid;
}

}  // namespace

TreeKiller::TreeKiller(pid_t root, const UniqueFd& children,
                       std::function<Treatment(const Descendant&)> treatment)
    : root_(root), children_(children), treatment_(std::move(treatment)) {}

bool TreeKiller::Round() {
  // A process that ended during this walk may have left children to `root` after the children of
  // `root` were listed, and one that could not be signalled may have ended right afterwards. So a
  // round is final only if it finds no process to end, no newly dead process, and the same
  // survivors as the round before.
  ++rounds_;
  Findings found;
  bool is_complete = false;
  try {
    is_complete = WalkDescendants(
        root_, [&](const Descendant& process) { return TreatInWalk(process, found); });
  } catch (const std::bad_alloc&) {
  }
  if (!is_complete || IsProcGone()) {
    found = {};
    is_complete = TreatChildrenTwice(found);
  }
  const bool is_settled = is_complete && found.is_settled && found.survivors == survivors_;
  survivors_ = std::move(found.survivors);
  return is_settled;
}

/// Returns whether to treat the children of `process`.
bool TreeKiller::TreatInWalk(const Descendant& process, Findings& found) {
  const Treatment treatment = treatment_(process);
  if (treatment == Treatment::kLeave) return false;
  if (process.is_dead() || IsHiddenZombie(process)) {
    if (dead_.insert(process.id()).second) found.is_settled = false;
  } else {
    TreatLiving(process, treatment, found);
  }
  return treatment != Treatment::kAwaitTree;
}

/// Returns how many of the children are dead; none if not all could be treated.
std::optional<int> TreeKiller::TreatChildren(Findings& found) {
  int dead = 0;
  bool is_complete = true;
  const bool was_read = VisitChildren(children_, [&](pid_t pid) {
    try {
      const Descendant process{pid, root_, ReadProcessStat(pid)};
      const Treatment treatment = treatment_(process);
      if (treatment == Treatment::kLeave) return;
      if (process.is_dead() || IsHiddenZombie(process)) {
        ++dead;
      } else {
        TreatLiving(process, treatment, found);
      }
    } catch (const std::bad_alloc&) {
      is_complete = false;
    }
  });
  return was_read && is_complete ? std::optional(dead) : std::nullopt;
}

/// Returns whether all children were treated. If all are dead, there are no other descendants; but
/// a child that ended after it was listed may have left children to `root`. The second pass finds
/// these or, if they have ended too, more dead children than the first.
bool TreeKiller::TreatChildrenTwice(Findings& found) {
  const std::optional<int> dead = TreatChildren(found);
  if (!dead || !found.is_settled) return false;
  found.survivors.clear();
  return TreatChildren(found) == dead;
}

void TreeKiller::TreatLiving(const Descendant& process, Treatment treatment, Findings& found) {
  const SignalResult result =
      treatment == Treatment::kKill ? SignalDescendant(process, SIGKILL) : SignalResult::kGone;
  has_sent_ = has_sent_ || result == SignalResult::kSent;
  if (result == SignalResult::kRefused) {
    found.survivors.push_back({process.pid, process.stat ? process.stat->name : "?"});
  } else {
    found.is_settled = false;
  }
}

Duration TreeKiller::pause() const {
  // A process that has survived 100 KILLs is waiting for a disk or a network: check less often.
  return std::chrono::milliseconds(rounds_ < 100 ? 5 : 100);
}

}  // namespace zklock::process
