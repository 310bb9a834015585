#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace zklock::process {

/// The reason why a command gets no cgroup of its own.
struct NoCgroup {
  enum class Why {
    kNotMounted,    ///< no mounted cgroup v2 hierarchy shows this process's cgroup
    kNotDelegated,  ///< systemd owns `path`, the cgroup of this process
    kOldKernel,     ///< no cgroup.kill, which exists since Linux 5.14
    kThreaded,      ///< `path`, the cgroup of this process, is threaded
    kNotCreated,    ///< creating a cgroup below `path` failed with `error`
    kNotEntered,    ///< starting a process in a cgroup below `path` failed with `error`
  };
  Why why{};
  std::string path{};
  int error = 0;  ///< an errno
};

/// Thrown if a command that requires a cgroup cannot get one.
class CgroupUnavailable : public std::system_error {
 public:
  explicit CgroupUnavailable(NoCgroup reason)
      : system_error(reason.error, std::generic_category(), "cgroup"), reason_(std::move(reason)) {}
  [[nodiscard]] const NoCgroup& reason() const { return reason_; }

 private:
  NoCgroup reason_;
};

/// Returns the directory of a process's cgroup, given the contents of /proc/PID/mountinfo and
/// /proc/PID/cgroup; empty if no mounted cgroup v2 hierarchy shows it. If `mount_point` is not
/// null, it is set to the hierarchy's mount point.
[[nodiscard]] std::string CgroupDirectory(std::string_view mounts, std::string_view cgroups,
                                          std::string* mount_point = nullptr);

/// The cgroup of this process.
struct OwnCgroup {
  std::string directory;
  /// Whether cgroups may be created below it, that is, it is part of a delegated subtree, or the
  /// host has no systemd.
  bool is_delegated = false;
};
[[nodiscard]] std::variant<OwnCgroup, NoCgroup> FindOwnCgroup();

/// Returns why no command can have a cgroup below the directory `parent`; none if no reason is
/// found. Creates no cgroup, so it does not notice, for example, a limit on the number of cgroups.
[[nodiscard]] std::optional<NoCgroup> FindObstacle(const std::string& parent);

/// The cgroup (version 2) of one command. It contains all descendants of the command, unless they
/// move elsewhere, and the kernel can kill it as a whole. No controller is enabled in it, so limits
/// and accounting remain those of the parent. Its name is "zklock-" followed by a UUID.
///
/// zklock and its guard, which inherits the descriptors across fork, hold an flock(2) on the
/// directory. A cgroup without that lock is an orphan: both were killed. The next zklock that looks
/// below the same parent removes the cgroup.
///
/// A command can make its cgroup threaded. The cgroup then can no longer be killed as a whole and
/// counts as not populated.
class Cgroup {
 public:
  /// Creates a cgroup below the directory `parent`.
  [[nodiscard]] static std::variant<std::unique_ptr<Cgroup>, NoCgroup> Make(
      const std::string& parent);
  /// Creates a cgroup, starts a process in it, and removes the cgroup. Returns none if that works.
  [[nodiscard]] static std::optional<NoCgroup> Probe(const std::string& parent);
  /// Calls Remove(). Runs only in the process that created the cgroup, because the guard ends with
  /// _exit(2).
  ~Cgroup() { Remove(); }
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// The directory's descriptor, for CLONE_INTO_CGROUP.
  [[nodiscard]] int directory() const { return directory_.get(); }
  /// Returns all descriptors that a process must keep open to use this object after a fork.
  [[nodiscard]] std::vector<int> descriptors() const;
  /// Returns the reason to report if ForkIntoCgroup() failed with `error`.
  [[nodiscard]] NoCgroup NotEntered(int error) const;

  /// Returns whether a process is alive in this cgroup or in one below it.
  [[nodiscard]] bool IsPopulated() const;
  /// Kills all these processes at once. If guards of nested runs are among them, does nothing until
  /// `guards_until`.
  void Kill(TimePoint guards_until);

  /// Records that the command has ended by itself: the remaining processes may stay alive, and
  /// EndOrphans() spares them.
  void MarkAsLeft() const;
  /// Removes the cgroup and those below it, except populated ones. Like MoveOutAndRemove(), gives
  /// up if memory runs out.
  void Remove();
  /// Moves the cgroup's processes to its parent, then removes it. Nested runs keep their own
  /// cgroups.
  void MoveOutAndRemove();

 private:
  Cgroup(std::string path, UniqueFd directory)
      : path_(std::move(path)), directory_(std::move(directory)) {}
  [[nodiscard]] bool HasGuards() const;

  std::string path_;
  UniqueFd directory_;
  UniqueFd kill_;    // cgroup.kill
  UniqueFd events_;  // cgroup.events
  bool can_kill_ = true;
  bool is_removed_ = false;
};

/// Like fork(2), but the child starts in the cgroup with this directory. The child may make only
/// async-signal-safe calls. Returns -1 and sets errno if the kernel refuses.
[[nodiscard]] pid_t ForkIntoCgroup(int directory);

/// An orphan that EndOrphans() found, and the outcome.
struct EndedOrphan {
  std::string path;
  bool is_gone = true;  ///< false: some of its processes did not end after KILL
};
/// Returns the directories in which a run in `parent` looks for orphans of earlier runs: `parent`
/// itself and, if it is a systemd scope, its sibling scopes, since each run may have its own.
[[nodiscard]] std::vector<std::string> OrphanParents(const std::string& parent);

/// Cleans up below `parent` after zklocks that were killed together with their guards: kills their
/// commands' processes, waits briefly for them to end, and removes the cgroups. Returns the cgroups
/// that had processes to kill. Leaves other users' cgroups alone.
std::vector<EndedOrphan> EndOrphans(const std::string& parent);

}  // namespace zklock::process
