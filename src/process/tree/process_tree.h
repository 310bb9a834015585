#pragma once

#include <sys/types.h>

#include <compare>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "process/tree/ended.h"

namespace zklock::process {

/// Identifies a process: a pid alone may have been reused.
struct ProcessId {
  pid_t pid = 0;
  unsigned long long start_time = 0;  ///< clock ticks since boot; 0 if /proc does not show it
  friend auto operator<=>(const ProcessId&, const ProcessId&) = default;
};

/// What /proc/PID/stat says about a process.
struct ProcessStat {
  ProcessId id;
  pid_t parent = 0;
  std::string name;      ///< at most 15 characters
  char state = '?';      ///< of the main thread: R (running or runnable), S, D, T (stopped), Z
  bool is_dead = false;  ///< all its threads have ended
};

/// None if there is no such process, or /proc does not show it (hidepid).
[[nodiscard]] std::optional<ProcessStat> ReadProcessStat(pid_t pid);

/// The effective user of a process. None if there is no such process, or /proc does not show it.
[[nodiscard]] std::optional<uid_t> EffectiveUserOf(pid_t pid);

/// Nanoseconds of processor time that a process's main thread has used; 0 if that cannot be read.
[[nodiscard]] unsigned long long ReadRunTime(pid_t pid);

/// Whether a process executes `file`.
[[nodiscard]] bool Executes(pid_t pid, const std::string& file);

/// /proc is not mounted, or does not show what is needed.
class NoProcessTree : public std::system_error {
 public:
  using std::system_error::system_error;
};

/// Throws NoProcessTree unless /proc shows this process its own children: without them no tree
/// could be ended reliably.
void RequireProcessTree();

/// The children of all threads of a process, including unreaped ones; none if the process does not
/// exist. Children that are forked or reparented during the call may be missed: call again. For a
/// process that /proc hides (hidepid), those children that /proc shows. Throws std::system_error if
/// /proc cannot be read for lack of descriptors or memory: that must not look like "no children".
[[nodiscard]] std::vector<pid_t> ChildrenOf(pid_t pid);

/// A process found by a walk.
struct Descendant {
  pid_t pid = 0;
  pid_t parent = 0;                 ///< another descendant, or the root
  std::optional<ProcessStat> stat;  ///< none if /proc does not show it
  [[nodiscard]] ProcessId id() const { return stat ? stat->id : ProcessId{pid, 0}; }
  [[nodiscard]] bool is_dead() const { return stat && stat->is_dead; }
  /// The descendant has ended since it was listed, and a process elsewhere has got its pid.
  [[nodiscard]] bool is_other() const { return stat && stat->parent != parent; }
};

/// Visits the descendants of `root`, each before its children are listed: a process that `visit`
/// has killed cannot fork children that the walk misses, and orphans are found as children of the
/// subreaper by the next walk. `visit` returns whether to walk its children. Returns false if some
/// children could not be listed for lack of descriptors or memory.
bool WalkDescendants(pid_t root, const std::function<bool(const Descendant&)>& visit);

enum class SignalResult {
  kSent,
  kGone,     ///< it has ended
  kRefused,  ///< it runs as another user
};

/// Signals a process found by a walk, and never another that got its pid meanwhile.
SignalResult SignalDescendant(const Descendant& process, int signal_number);

/// Kills the descendants of `root`, this process, round after round.
class TreeKiller {
 public:
  /// What to do with a process that was found.
  enum class Treatment {
    kKill,
    kAwait,      ///< it will end by itself; its descendants are killed
    kAwaitTree,  ///< it will end by itself, with its descendants
    kLeave,      ///< left alone, with its descendants
  };
  TreeKiller(pid_t root, std::function<Treatment(const Descendant&)> treatment);

  /// Sends KILL to every process with kKill. True once nothing is alive but the survivors and
  /// those left alone. Until then it is to be called again some milliseconds later, or when a child
  /// has ended.
  bool Round();

  /// False if some children could not be listed in the last round, for lack of descriptors or
  /// memory.
  [[nodiscard]] bool is_complete() const { return is_complete_; }
  /// The processes that could not be signalled in the last round.
  [[nodiscard]] const std::vector<Survivor>& survivors() const { return survivors_; }

 private:
  pid_t root_;
  std::function<Treatment(const Descendant&)> treatment_;
  std::set<ProcessId> dead_;  // as seen in earlier rounds
  std::vector<Survivor> survivors_;
  bool is_complete_ = true;
};

}  // namespace zklock::process
