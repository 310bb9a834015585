#include "process/tree/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <new>
#include <set>
#include <utility>

#include "base/read_file.h"
#include "base/text.h"
#include "process/loop/child.h"
#include "process/tree/guard_name.h"
#include "process/tree/identity.h"
#include "process/tree/process_tree.h"

namespace zklock::process {

namespace {

constexpr std::string_view kPrefix = "zklock-";
constexpr std::string_view kScope = ".scope";
constexpr std::size_t kUuidSize = 36;
// For the owner only: anyone who can open the directory can lock it and make it look in use.
constexpr mode_t kMode = 0700;

// Marks a cgroup whose processes may stay alive; see MarkAsLeft().
constexpr char kLeftMark[] = "user.zklock.left";

// How many times to try: before a new cgroup is locked, another zklock may mistake it for an orphan
// and remove it.
constexpr int kAttempts = 3;
// How long EndOrphans() waits for killed processes to end.
constexpr Duration kOrphanTime = std::chrono::milliseconds(1000);
// New processes may be forked while others are moved, so moving is repeated up to this many times.
constexpr int kMoveRounds = 100;
// More processes than this are not searched for guards of nested runs: killing a fork bomb at once
// matters more than closing a nested session early.
constexpr std::size_t kMostChecked = 1000;

/// Undoes the octal escapes of /proc/PID/mountinfo: a space, for example, is \040.
std::string Unescaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    int code = 0;
    if (text.front() == '\\' && text.size() >= 4 &&
        std::from_chars(text.data() + 1, text.data() + 4, code, 8).ptr == text.data() + 4) {
      result += static_cast<char>(code);
      text.remove_prefix(4);
    } else {
      result += text.front();
      text.remove_prefix(1);
    }
  }
  return result;
}

struct Mount {
  std::string root;  // the cgroup that is mounted
  std::string point;
  bool is_read_only = false;
};

/// Returns none if this line of mountinfo does not describe a cgroup v2 hierarchy.
std::optional<Mount> ParseMount(std::string_view line) {
  std::array<std::string_view, 6> fields;  // id, parent, device, root, mount point, options
  for (std::string_view& field : fields) field = TakeUntil(line, ' ');
  while (!line.empty() && TakeUntil(line, ' ') != "-") {
  }
  if (TakeUntil(line, ' ') != "cgroup2") return std::nullopt;
  TakeUntil(line, ' ');  // the source
  const bool is_read_only = fields[5].starts_with("ro") || line.starts_with("ro");
  return Mount{Unescaped(fields[3]), Unescaped(fields[4]), is_read_only};
}

/// Returns `path` with `root` removed from its beginning; none if it is neither `root` nor below
/// it.
std::optional<std::string> Below(const std::string& root, const std::string& path) {
  if (root == "/") return path == "/" ? "" : path;
  if (!path.starts_with(root)) return std::nullopt;
  const std::string rest = path.substr(root.size());
  if (!rest.empty() && rest.front() != '/') return std::nullopt;
  return rest;
}

bool HasMark(const std::string& directory, const char* attribute) {
  char value = 0;
  return getxattr(directory.c_str(), attribute, &value, sizeof value) == 1 && value == '1';
}

bool IsUnitName(std::string_view path) {
  return path.ends_with(".service") || path.ends_with(kScope) || path.ends_with(".slice");
}

/// Returns whether systemd runs this host, as sd_booted(3) does.
bool HasSystemd() {
  struct stat found {};
  return lstat("/run/systemd/system", &found) == 0 && S_ISDIR(found.st_mode);
}

/// Returns whether systemd has marked the cgroup, or one above it, as delegated. A unit below a
/// marked cgroup belongs to another manager, such as a user's, and needs a mark of its own.
bool IsDelegated(std::string directory, const std::string& mount_point) {
  for (;;) {
    if (HasMark(directory, "user.delegate") || HasMark(directory, "trusted.delegate")) return true;
    if (directory.size() <= mount_point.size() || IsUnitName(directory)) return false;
    directory.erase(directory.rfind('/'));
  }
}

std::string ParentOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

bool IsCgroupName(std::string_view name) {
  const auto is_uuid_character = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == '-';
  };
  if (name.size() != kPrefix.size() + kUuidSize || !name.starts_with(kPrefix)) return false;
  name.remove_prefix(kPrefix.size());
  return std::all_of(name.begin(), name.end(), is_uuid_character);
}

std::vector<std::string> SubdirectoriesOf(const std::string& path) {
  std::vector<std::string> found;
  DIR* const directory = opendir(path.c_str());
  if (directory == nullptr) return found;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
      found.push_back(path + "/" + entry->d_name);
    }
  }
  closedir(directory);
  return found;
}

UniqueFd OpenDirectory(const std::string& path) {
  return UniqueFd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

UniqueFd OpenIn(const UniqueFd& directory, const char* name, int mode) {
  return UniqueFd(openat(directory.get(), name, mode | O_CLOEXEC));
}

bool ReadPopulated(int events) {
  std::array<char, 256> buffer{};
  const ssize_t size = pread(events, buffer.data(), buffer.size(), 0);
  return size > 0 &&
         std::string_view(buffer.data(), static_cast<std::size_t>(size)).find("populated 1") !=
             std::string_view::npos;
}

bool WriteTo(int file, std::string_view text) {
  return write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

/// Returns the name that /proc/locks gives to a file.
std::string NameInLocks(const struct stat& file) {
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "%02x:%02x:%ju", major(file.st_dev), minor(file.st_dev),
                static_cast<std::uintmax_t>(file.st_ino));
  return name.data();
}

/// Returns the files that processes of this PID namespace have locked with flock(2), by the names
/// of NameInLocks(); empty if /proc does not show them.
std::set<std::string> LockedFiles() {
  const std::string text = ReadFile("/proc/locks").value_or("");
  std::set<std::string> files;
  std::string_view rest = text;
  while (!rest.empty()) {
    // 1: FLOCK  ADVISORY  READ 1234 00:1a:5678 0 EOF
    std::string_view line = TakeUntil(rest, '\n');
    std::array<std::string_view, 6> words;
    for (std::string_view& word : words) {
      while (line.starts_with(' ')) line.remove_prefix(1);
      word = TakeUntil(line, ' ');
    }
    if (words[1] == "FLOCK") files.emplace(words[5]);
  }
  return files;
}

/// A quick check before trying to lock a cgroup: if there are many runs, most cgroups are locked.
bool SeemsLocked(const std::string& path) {
  // Read only once, when the first cgroup is found: a run looks for orphans only once.
  static const std::set<std::string> kLocked = LockedFiles();
  struct stat file {};
  return stat(path.c_str(), &file) == 0 && kLocked.count(NameInLocks(file)) > 0;
}

/// Calls `visit` with `path` and the path of each cgroup below it, lower ones first. Skips cgroups
/// of other runs whose zklock or guard is alive: they are in use, even if still empty.
template <typename Visit>
void VisitSubtree(const std::string& path, const Visit& visit) {
  for (const std::string& below : SubdirectoriesOf(path)) {
    if (IsCgroupName(below.substr(below.rfind('/') + 1))) {
      const UniqueFd directory = OpenDirectory(below);
      if (!directory || flock(directory.get(), LOCK_EX | LOCK_NB) != 0) continue;
    }
    VisitSubtree(below, visit);
  }
  visit(path);
}

std::vector<pid_t> ProcessesIn(const std::string& path) {
  std::vector<pid_t> processes;
  const std::string text = ReadFile(path + "/cgroup.procs").value_or("");
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = TakeUntil(rest, '\n');
    pid_t pid = 0;
    std::from_chars(line.data(), line.data() + line.size(), pid);
    if (pid > 0) processes.push_back(pid);  // 0: in another PID namespace
  }
  return processes;
}

/// Returns the processes in the whole subtree.
std::vector<pid_t> AllProcessesIn(const std::string& path) {
  std::vector<pid_t> processes = ProcessesIn(path);
  for (const std::string& below : SubdirectoriesOf(path)) {
    for (const pid_t pid : AllProcessesIn(below)) processes.push_back(pid);
  }
  return processes;
}

/// Removes the empty cgroups of the subtree. Returns whether `path` is gone.
bool RemoveSubtree(const std::string& path) {
  bool is_gone = rmdir(path.c_str()) == 0 || errno == ENOENT;
  if (is_gone) return true;
  VisitSubtree(path, [&](const std::string& one) { is_gone = rmdir(one.c_str()) == 0; });
  return is_gone;
}

void MoveOut(const std::string& path) {
  const UniqueFd target(open((ParentOf(path) + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  if (!target) return;
  for (int round = 0; round < kMoveRounds; ++round) {
    bool has_moved = false;
    VisitSubtree(path, [&](const std::string& one) {
      for (const pid_t pid : ProcessesIn(one)) {
        if (WriteTo(target.get(), std::to_string(pid))) has_moved = true;
      }
    });
    if (!has_moved) return;
  }
}

/// Removes the cgroups of outer runs that have ended: such a run could not remove its cgroup while
/// a nested run's cgroup was below it.
void RemoveLeftParents(const std::string& path) {
  const std::string parent = ParentOf(path);
  if (!IsCgroupName(parent.substr(parent.rfind('/') + 1))) return;
  const UniqueFd directory = OpenDirectory(parent);
  if (!directory || flock(directory.get(), LOCK_EX | LOCK_NB) != 0) return;
  if (rmdir(parent.c_str()) == 0) RemoveLeftParents(parent);
}

void AwaitEmpty(int events, TimePoint deadline) {
  while (ReadPopulated(events) && BootClock::now() < deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - BootClock::now());
    pollfd polled{events, POLLPRI, 0};
    poll(&polled, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 1)));
  }
}

}  // namespace

std::string CgroupDirectory(std::string_view mounts, std::string_view cgroups,
                            std::string* mount_point) {
  std::string own;
  while (!cgroups.empty()) {
    const std::string_view line = TakeUntil(cgroups, '\n');
    if (line.starts_with("0::")) own = line.substr(3);
  }
  // "/../a" is outside this process's cgroup namespace; "/a (deleted)" has been removed.
  if (own.empty() || own.starts_with("/..") || own.ends_with(" (deleted)")) return "";
  std::string found;
  bool is_read_only = true;
  while (!mounts.empty()) {
    const auto mount = ParseMount(TakeUntil(mounts, '\n'));
    if (!mount) continue;
    const auto rest = Below(mount->root, own);
    if (!rest || (!found.empty() && mount->is_read_only && !is_read_only)) continue;
    found = mount->point + *rest;
    is_read_only = mount->is_read_only;
    if (mount_point != nullptr) *mount_point = mount->point;
  }
  return found;
}

std::variant<OwnCgroup, NoCgroup> FindOwnCgroup() {
  std::string mount_point;
  const std::string directory =
      CgroupDirectory(ReadFile("/proc/self/mountinfo").value_or(""),
                      ReadFile("/proc/self/cgroup").value_or(""), &mount_point);
  if (directory.empty()) return NoCgroup{.why = NoCgroup::Why::kNotMounted};
  return OwnCgroup{directory, !HasSystemd() || IsDelegated(directory, mount_point)};
}

std::optional<NoCgroup> FindObstacle(const std::string& parent) {
  using Why = NoCgroup::Why;
  const auto may_write = [](const std::string& path) {
    return faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
  };
  // The root of the hierarchy has neither cgroup.type nor cgroup.kill.
  const std::string type = ReadFile(parent + "/cgroup.type").value_or("");
  if (!type.empty()) {
    if (type != "domain\n") return NoCgroup{Why::kThreaded, parent, EOPNOTSUPP};
    if (access((parent + "/cgroup.kill").c_str(), F_OK) != 0 && errno == ENOENT) {
      return NoCgroup{Why::kOldKernel, parent, ENOENT};
    }
  }
  if (!may_write(parent)) return NoCgroup{Why::kNotCreated, parent, errno};
  // The kernel requires this permission to move a process below `parent` or to create one there.
  if (!may_write(parent + "/cgroup.procs")) return NoCgroup{Why::kNotEntered, parent, errno};
  return std::nullopt;
}

std::variant<std::unique_ptr<Cgroup>, NoCgroup> Cgroup::Make(const std::string& parent) {
  using Why = NoCgroup::Why;
  int last_error = EBUSY;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::string path = parent + "/" + std::string(kPrefix) + MakeUuid();
    if (mkdir(path.c_str(), kMode) != 0) return NoCgroup{Why::kNotCreated, parent, errno};
    UniqueFd directory = OpenDirectory(path);
    if (!directory) {
      const int error = errno;
      if (error == ENOENT) continue;  // removed as an orphan: see below
      rmdir(path.c_str());
      return NoCgroup{Why::kNotCreated, parent, error};
    }
    // Shared, because zklock and the guard hold the lock; an exclusive lock serves only to remove a
    // cgroup. Until the cgroup is locked, it looks like an orphan and may be removed as one.
    if (flock(directory.get(), LOCK_SH | LOCK_NB) != 0) {
      last_error = errno;
      rmdir(path.c_str());
      continue;
    }
    struct stat found {};
    if (stat(path.c_str(), &found) != 0) continue;

    std::unique_ptr<Cgroup> cgroup(new Cgroup(path, std::move(directory)));
    cgroup->events_ = OpenIn(cgroup->directory_, "cgroup.events", O_RDONLY);
    cgroup->kill_ = OpenIn(cgroup->directory_, "cgroup.kill", O_WRONLY);
    if (cgroup->kill_ && cgroup->events_) return cgroup;
    const int error = errno;
    return NoCgroup{error == ENOENT ? Why::kOldKernel : Why::kNotCreated, parent, error};
  }
  return NoCgroup{Why::kNotCreated, parent, last_error};
}

std::optional<NoCgroup> Cgroup::Probe(const std::string& parent) {
  const auto made = Make(parent);
  if (const auto* none = std::get_if<NoCgroup>(&made)) return *none;
  const Cgroup& cgroup = *std::get<std::unique_ptr<Cgroup>>(made);
  const pid_t child = ForkIntoCgroup(cgroup.directory());
  if (child == 0) _exit(0);
  const int error = errno;
  if (child < 0) return cgroup.NotEntered(error);
  WaitFor(child);
  return std::nullopt;
}

NoCgroup Cgroup::NotEntered(int error) const {
  // A domain without controllers refuses processes only if it is invalid, that is, below a threaded
  // cgroup.
  const bool is_threaded = error == EOPNOTSUPP;
  return {is_threaded ? NoCgroup::Why::kThreaded : NoCgroup::Why::kNotEntered, ParentOf(path_),
          error};
}

std::vector<int> Cgroup::descriptors() const {
  return {directory_.get(), kill_.get(), events_.get()};
}

bool Cgroup::IsPopulated() const { return can_kill_ && ReadPopulated(events_.get()); }

void Cgroup::Kill(TimePoint guards_until) {
  bool has_guards = false;
  try {
    has_guards = BootClock::now() < guards_until && HasGuards();
  } catch (const std::exception&) {  // for example, for lack of memory: kill anyway
  }
  if (!can_kill_ || has_guards) return;
  can_kill_ = WriteTo(kill_.get(), "1");
}

bool Cgroup::HasGuards() const {
  const std::vector<pid_t> processes = AllProcessesIn(path_);
  return processes.size() <= kMostChecked &&
         std::any_of(processes.begin(), processes.end(), [](pid_t pid) {
           if (!HasGuardName(pid)) return false;
           const auto stat = ReadProcessStat(pid);
           return stat && !stat->is_dead && IsGuard(*stat);
         });
}

void Cgroup::MarkAsLeft() const { fsetxattr(directory_.get(), kLeftMark, "1", 1, 0); }

void Cgroup::Remove() {
  if (is_removed_) return;
  try {
    is_removed_ = RemoveSubtree(path_);
    RemoveLeftParents(path_);
  } catch (const std::bad_alloc&) {
  }
}

void Cgroup::MoveOutAndRemove() {
  Remove();
  if (is_removed_) return;
  try {
    MoveOut(path_);
  } catch (const std::bad_alloc&) {
  }
  Remove();
}

pid_t ForkIntoCgroup(int directory) {
  clone_args arguments{};
  arguments.flags = CLONE_INTO_CGROUP;
  arguments.exit_signal = SIGCHLD;
  arguments.cgroup = static_cast<__u64>(directory);
  return static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
}

std::vector<std::string> OrphanParents(const std::string& parent) {
  std::vector<std::string> parents{parent};
  if (!parent.ends_with(kScope)) return parents;
  for (const std::string& path : SubdirectoriesOf(ParentOf(parent))) {
    if (path != parent && path.ends_with(kScope)) parents.push_back(path);
  }
  return parents;
}

std::vector<EndedOrphan> EndOrphans(const std::string& parent) {
  std::vector<EndedOrphan> ended;
  for (const std::string& path : SubdirectoriesOf(parent)) {
    if (!IsCgroupName(path.substr(path.rfind('/') + 1)) || SeemsLocked(path)) continue;
    const UniqueFd directory = OpenDirectory(path);
    if (!directory || flock(directory.get(), LOCK_EX | LOCK_NB) != 0) continue;  // it is in use
    const UniqueFd events = OpenIn(directory, "cgroup.events", O_RDONLY);
    if (HasMark(path, kLeftMark)) {
      MoveOut(path);
    } else if (ReadPopulated(events.get())) {
      const UniqueFd kill = OpenIn(directory, "cgroup.kill", O_WRONLY);
      if (!kill) continue;  // another user's
      // A threaded cgroup refuses the write.
      if (WriteTo(kill.get(), "1")) AwaitEmpty(events.get(), BootClock::now() + kOrphanTime);
      ended.push_back({path, !ReadPopulated(events.get())});
    }
    // This also removes the cgroups below it, except those of runs that are still alive.
    RemoveSubtree(path);
  }
  return ended;
}

}  // namespace zklock::process
