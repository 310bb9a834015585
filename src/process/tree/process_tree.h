#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <compare>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "process/tree/ended.h"

namespace zklock::process {

/// Identifies a process. A pid alone does not, since it may be reused.
struct ProcessId {
  pid_t pid = 0;
  unsigned long long start_time = 0;  ///< clock ticks since boot; 0 if /proc does not show it
  friend auto operator<=>(const ProcessId&, const ProcessId&) = default;
};

/// Data about a process from /proc/PID/stat.
struct ProcessStat {
  ProcessId id;
  pid_t parent = 0;
  std::string name;      ///< at most 15 characters
  char state = '?';      ///< of the main thread: R (running or runnable), S, D, T (stopped), Z
  bool is_dead = false;  ///< all its threads have ended
};

/// Returns none if there is no such process, or /proc does not show it (hidepid). Allocates no
/// memory: a guard must be able to end the tree even if none is left.
[[nodiscard]] std::optional<ProcessStat> ReadProcessStat(pid_t pid);

/// Returns the effective user of a process; none if it does not exist, or /proc does not show it.
[[nodiscard]] std::optional<uid_t> EffectiveUserOf(pid_t pid);

/// Returns the CPU time, in ns, that a process's main thread has used; 0 if that cannot be read.
[[nodiscard]] unsigned long long ReadRunTime(pid_t pid);

/// Returns whether a process executes `file` or, as this process's effective user, another version
/// of it: a file of the same name, or one that this user lacks permission to read.
[[nodiscard]] bool Executes(pid_t pid, const std::string& file);

/// Thrown if /proc is not mounted or does not show the necessary data.
class NoProcessTree : public std::system_error {
 public:
  using std::system_error::system_error;
};

/// Throws NoProcessTree unless /proc shows this process its own children: without them, zklock
/// could not end a tree reliably.
void RequireProcessTree();

/// Returns whether /proc is gone: the command may have unmounted it, or mounted something over it.
/// A walk then finds nothing.
[[nodiscard]] bool IsProcGone();

/// Opens the list of this process's children, for TreeKiller. Throws NoProcessTree.
[[nodiscard]] UniqueFd OpenChildren();

/// Calls `visit` with each child of this process, including unreaped ones. A child keeps its pid
/// until it is reaped. `children`: from OpenChildren(). Reading it needs no descriptor and no
/// memory, and works even if /proc is gone. Children that are reparented during the call may be
/// missed. Returns false if the list cannot be read.
template <typename Visit>
bool VisitChildren(const UniqueFd& children, const Visit& visit);

/// Returns the children of all threads of a process, including unreaped ones; none if the process
/// does not exist. Children that are forked or reparented during the call may be missed: call
/// again. For a process that /proc hides (hidepid), returns those of its children that /proc shows.
/// Throws std::system_error if /proc cannot be read for lack of descriptors or memory: that must
/// not look like "no children".
[[nodiscard]] std::vector<pid_t> ChildrenOf(pid_t pid);

/// A process found by a walk.
struct Descendant {
  pid_t pid = 0;
  pid_t parent = 0;                 ///< another descendant, or the root
  std::optional<ProcessStat> stat;  ///< none if /proc does not show it
  [[nodiscard]] ProcessId id() const { return stat ? stat->id : ProcessId{pid, 0}; }
  [[nodiscard]] bool is_dead() const { return stat && stat->is_dead; }
  /// Whether the descendant has ended since it was listed and its pid now belongs to an unrelated
  /// process.
  [[nodiscard]] bool is_other() const { return stat && stat->parent != parent; }
};

/// Visits the descendants of `root`, each before its children are listed, so that a process that
/// `visit` has killed cannot fork children that the walk misses. Orphans become children of the
/// subreaper, where the next walk finds them. `visit` returns whether to visit the process's
/// children. Returns false if some children could not be listed for lack of descriptors or memory,
/// or `visit` threw std::bad_alloc.
bool WalkDescendants(pid_t root, const std::function<bool(const Descendant&)>& visit);

enum class SignalResult {
  kSent,
  kGone,     ///< the process has ended
  kRefused,  ///< this process lacks permission
};

/// Signals a process found by a walk, but never another process that has since got its pid.
SignalResult SignalDescendant(const Descendant& process, int signal_number);

/// Kills the descendants of `root`, which is this process, in rounds. Each round walks the tree.
///
/// If a walk is not possible, because /proc is gone or the system lacks descriptors or memory, a
/// round kills the children of this process. When they die, their children become children of this
/// process, a subreaper: each round reaches one more generation, but not the descendants of a
/// process that cannot be signalled.
class TreeKiller {
 public:
  /// What to do with a process that a round finds.
  enum class Treatment {
    kKill,
    kAwait,      ///< it will end by itself; its descendants are killed
    kAwaitTree,  ///< it will end by itself, with its descendants
    kLeave,      ///< left alone, with its descendants
  };
  /// `children`: from OpenChildren(); must be open before the first round.
  TreeKiller(pid_t root, const UniqueFd& children,
             std::function<Treatment(const Descendant&)> treatment);

  /// Sends KILL to every process with kKill. Returns true once only survivors and processes with
  /// kLeave are still alive. Until then, call it again after a few milliseconds, or when a child
  /// has ended. Does not throw std::bad_alloc.
  bool Round();

  /// Returns how long to wait before the next round.
  [[nodiscard]] Duration pause() const;
  /// Whether KILL was sent to any process that could be signalled.
  [[nodiscard]] bool has_sent() const { return has_sent_; }

  /// The processes that could not be signalled in the last round.
  [[nodiscard]] const std::vector<Survivor>& survivors() const { return survivors_; }

 private:
  /// What a round has found.
  struct Findings {
    bool is_settled = true;
    std::vector<Survivor> survivors;
  };
  bool TreatInWalk(const Descendant& process, Findings& found);
  std::optional<int> TreatChildren(Findings& found);
  bool TreatChildrenTwice(Findings& found);
  void TreatLiving(const Descendant& process, Treatment treatment, Findings& found);

  pid_t root_;
  const UniqueFd& children_;
  std::function<Treatment(const Descendant&)> treatment_;
  std::set<ProcessId> dead_;  // found dead in earlier rounds
  std::vector<Survivor> survivors_;
  int rounds_ = 0;
  bool has_sent_ = false;
};

template <typename Visit>
bool VisitChildren(const UniqueFd& children, const Visit& visit) {
  if (lseek(children.get(), 0, SEEK_SET) != 0) return false;
  std::array<char, 4096> buffer{};
  pid_t pid = 0;
  for (;;) {
    const ssize_t size = read(children.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return size == 0;
    for (const char c : std::string_view(buffer.data(), static_cast<std::size_t>(size))) {
      if (c >= '0' && c <= '9') {
        pid = pid * 10 + (c - '0');
      } else if (pid != 0) {  // each pid is followed by a space
        visit(std::exchange(pid, 0));
      }
    }
  }
}

}  // namespace zklock::process
