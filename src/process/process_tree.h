#pragma once

#include <sys/types.h>

#include <compare>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

namespace zklock::process {

/// Which process: a pid alone may have been used again.
struct ProcessId {
  pid_t pid = 0;
  unsigned long long start_time = 0;  ///< clock ticks since boot; 0: /proc does not show it
  friend auto operator<=>(const ProcessId&, const ProcessId&) = default;
};

/// What /proc/PID/stat says of a process.
struct ProcessStat {
  ProcessId id;
  pid_t parent = 0;
  std::string name;      ///< at most 15 characters
  char state = '?';      ///< of the main thread: R (runs or could run), S, D, T (stopped), Z
  bool is_dead = false;  ///< a zombie, all of its threads
};

/// None if there is no such process, or /proc does not show it (hidepid).
[[nodiscard]] std::optional<ProcessStat> ReadProcessStat(pid_t pid);

/// Nanoseconds of processor time that a process's main thread has got; 0 where that cannot be read.
[[nodiscard]] unsigned long long ReadRunTime(pid_t pid);

/// /proc is not there, or does not show what is needed.
class NoProcessTree : public std::system_error {
 public:
  using std::system_error::system_error;
};

/// Throws NoProcessTree unless /proc shows this process its own children: without that nothing
/// could be ended reliably.
void RequireProcessTree();

/// The children of all threads of a process, the unreaped ones among them; none of a process that
/// is not there. Complete for children that stay what they are while it reads; what changes
/// meanwhile is found by reading again. Of a process that /proc hides (hidepid), those of its
/// children that /proc shows. Throws std::system_error when /proc cannot be read for want
/// of descriptors or memory: nobody seen must not look like nobody there.
[[nodiscard]] std::vector<pid_t> ChildrenOf(pid_t pid);

/// One process met on a walk.
struct Descendant {
  pid_t pid = 0;
  pid_t parent = 0;
  std::optional<ProcessStat> stat;  ///< none where /proc does not show it
  [[nodiscard]] ProcessId id() const { return stat ? stat->id : ProcessId{pid, 0}; }
  [[nodiscard]] bool is_dead() const { return stat && stat->is_dead; }
};

/// Visits the descendants of `root`, each before its children are listed: one that `visit` has
/// killed cannot add any that the walk does not see, and orphans turn up as children of the
/// subreaper on the next walk. `visit` returns whether to go on to its children. False when some
/// children could not be listed for want of descriptors or memory.
bool WalkDescendants(pid_t root, const std::function<bool(const Descendant&)>& visit);

enum class SignalResult {
  kSent,
  kGone,     ///< it has ended, or is no longer where the walk met it: the next walk knows
  kRefused,  ///< it runs as another user
};

/// Signals a process met on a walk, and no other that got its pid meanwhile.
SignalResult SignalDescendant(const Descendant& process, int signal_number);

/// A process that could not be signalled, or was left behind.
struct Survivor {
  pid_t pid = 0;
  std::string name;
  friend bool operator==(const Survivor&, const Survivor&) = default;
};

/// Kills the descendants of `root`, this process, round after round.
class TreeKiller {
 public:
  /// What to do with a process that was met.
  enum class Treatment {
    kKill,
    kAwait,  ///< it will end by itself; what is below it is killed
    kLeave,  ///< left alone, and what is below it
  };
  TreeKiller(pid_t root, std::function<Treatment(const Descendant&)> treatment);

  /// Sends KILL to every one that is to get it. True once nothing is alive but the survivors and
  /// what is left alone. To be called again some milliseconds later, or when a child has ended,
  /// until then.
  bool Round();

  /// False where some children could not be listed in the last round, for want of descriptors or
  /// memory.
  [[nodiscard]] bool is_complete() const { return is_complete_; }
  /// Those that could not be signalled in the last round.
  [[nodiscard]] const std::vector<Survivor>& survivors() const { return survivors_; }

 private:
  pid_t root_;
  std::function<Treatment(const Descendant&)> treatment_;
  std::set<ProcessId> dead_;  // seen so in earlier rounds
  std::vector<Survivor> survivors_;
  bool is_complete_ = true;
};

}  // namespace zklock::process
