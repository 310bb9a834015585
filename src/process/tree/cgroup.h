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

/// Why a command gets no cgroup of its own.
struct NoCgroup {
  enum class Why {
    kNotMounted,    ///< no mounted hierarchy of version 2 shows this process's cgroup
    kNotDelegated,  ///< systemd owns `path`, the cgroup of this process
    kOldKernel,     ///< without cgroup.kill, which is in Linux 5.14
    kThreaded,      ///< `path`, the cgroup of this process, is threaded
    kNotCreated,    ///< below `path`: `error`
    kNotEntered,    ///< a process cannot be started in a cgroup below `path`: `error`
  };
  Why why{};
  std::string path{};
  int error = 0;  ///< an errno
};

/// A command that must have a cgroup has none.
class CgroupUnavailable : public std::system_error {
 public:
  explicit CgroupUnavailable(NoCgroup reason)
      : system_error(reason.error, std::generic_category(), "cgroup"), reason_(std::move(reason)) {}
  [[nodiscard]] const NoCgroup& reason() const { return reason_; }

 private:
  NoCgroup reason_;
};

/// The directory of a process's cgroup, by the texts of /proc/PID/mountinfo and /proc/PID/cgroup.
/// Empty if no mounted hierarchy of version 2 shows it. `mount_point`, if not null, gets that of
/// the hierarchy.
[[nodiscard]] std::string CgroupDirectory(std::string_view mounts, std::string_view cgroups,
                                          std::string* mount_point = nullptr);

/// The cgroup of this process.
struct OwnCgroup {
  std::string directory;
  /// Cgroups may be made below it: it is part of a delegated subtree, or the host has no systemd.
  bool is_delegated = false;
};
[[nodiscard]] std::variant<OwnCgroup, NoCgroup> FindOwnCgroup();

/// Why no command can have a cgroup below the directory `parent`, as far as that can be seen
/// without making one: a limit on the number of cgroups, for example, cannot.
[[nodiscard]] std::optional<NoCgroup> FindObstacle(const std::string& parent);

/// The cgroup (version 2) of one command: all its descendants are in it, unless they move
/// elsewhere, and the kernel kills it as a whole. No controller is enabled in it, so that limits
/// and accounting remain those of the parent. Its name is "zklock-" and a UUID.
///
/// zklock and its guard, which inherits the descriptors across fork, hold an flock(2) on the
/// directory. A cgroup without that lock is an orphan: both were killed. The next zklock that looks
/// below the same parent removes it.
///
/// A command can make its cgroup threaded; it can then no longer be killed as a whole, and counts
/// as not populated.
class Cgroup {
 public:
  /// Makes one below the directory `parent`.
  [[nodiscard]] static std::variant<std::unique_ptr<Cgroup>, NoCgroup> Make(
      const std::string& parent);
  /// Makes one, starts a process in it, and removes it. None if that works.
  [[nodiscard]] static std::optional<NoCgroup> Probe(const std::string& parent);
  /// As Remove(), which is a matter of the process that made it: the guard ends by _exit(2).
  ~Cgroup() { Remove(); }
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Of the directory, for CLONE_INTO_CGROUP.
  [[nodiscard]] int directory() const { return directory_.get(); }
  /// All that a process needs that keeps this object across fork.
  [[nodiscard]] std::vector<int> descriptors() const;
  /// What it means that ForkIntoCgroup() failed with `error`.
  [[nodiscard]] NoCgroup NotEntered(int error) const;

  /// Whether a process is alive in it, or in a cgroup below it.
  [[nodiscard]] bool IsPopulated() const;
  /// Kills all of them at once; but if guards of nested runs are among them, only once
  /// `guards_until` has passed.
  void Kill(TimePoint guards_until);

  /// The command has ended by itself: what is left may stay alive, and EndOrphans() spares it.
  void MarkAsLeft() const;
  /// Removes the cgroup and the empty cgroups below it. What is populated remains.
  void Remove();
  /// Moves its processes to the parent, then removes it. Nested runs keep their own cgroups.
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

/// As fork(2), but the child begins in the cgroup with this directory. Only async-signal-safe calls
/// are allowed in the child. -1 with errno if the kernel refuses.
[[nodiscard]] pid_t ForkIntoCgroup(int directory);

/// An orphan that was found, and what was done about it.
struct EndedOrphan {
  std::string path;
  bool is_gone = true;  ///< false: some of its processes have not ended after KILL
};
/// The directories in which earlier runs can have left orphans, for a run in `parent`: `parent`
/// itself, and if it is a scope of systemd, the scopes next to it, since each run may have its own.
[[nodiscard]] std::vector<std::string> OrphanParents(const std::string& parent);

/// Ends what zklocks that were killed together with their guards have left below `parent`: kills
/// their commands' processes, waits for their end, but not for long, and removes the cgroups.
/// Returns those that had processes to kill. Does not touch those of other users.
std::vector<EndedOrphan> EndOrphans(const std::string& parent);

}  // namespace zklock::process
