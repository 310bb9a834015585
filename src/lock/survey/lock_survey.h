#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lock/data/reserved.h"
#include "protocol/contender_name.h"
#include "protocol/queue.h"
#include "protocol/run_records.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// The contender that an entry waits for.
struct Predecessor {
  std::size_t position = 0;
  std::string name;
  std::string path{};       ///< on the servers
  bool any_holder = false;  ///< for a semaphore: it is the first holder, but any release suffices
  friend bool operator==(const Predecessor&, const Predecessor&) = default;
};

/// One child of a LOCK whose name counts in its queue, or the znode `lock` of Dialect::kSimple. For
/// a semaphore: the permits of one run, or a child of the turnstile.
struct QueueEntry {
  protocol::ContenderName name;
  std::string path{};  ///< on the servers
  /// The paths of the other permits of its run (--take), after `path` in the queue.
  std::vector<std::string> more{};
  bool in_turnstile = false;  ///< for a semaphore: a child of the turnstile
  bool readable = false;  ///< false: we lack permission to read it, and everything below is unknown
  zookeeper::NodeStat stat{};
  std::string data{};                     ///< truncated; any bytes if another program wrote it
  std::optional<std::size_t> position{};  ///< counted from 1; none: not a contender
  /// None if it holds the lock or is not a contender, if a permit is free, or if LOCK is the
  /// `leases` of a semaphore.
  std::optional<Predecessor> waits_for{};
  std::optional<Reserved> reserved{};  ///< set if it is a reservation, which no session owns
  /// Its path below the LOCK, if it is not a contender and runs are refused because of it. Set when
  /// it is reported.
  std::string blocking{};
  /// For a permit whose contender is still in the turnstile: the name of its znode there.
  std::string turnstile_name{};
  /// When that znode was created, in ms since 1970; none if we lack permission to read it.
  std::optional<std::int64_t> turnstile_ms{};

  /// Returns false for a LOCK below this one, or another program's znode, which no session owns. A
  /// numbered name counts even if the znode is unreadable; a child named `lock` may itself be a
  /// LOCK.
  [[nodiscard]] bool IsContender() const {
    if (!readable) return name.full != protocol::kSimpleName;
    return stat.ephemeral_owner != 0 || reserved;
  }
  /// Returns whether it waits. Valid only for a contender that was reported.
  [[nodiscard]] bool Waits() const { return in_turnstile || waits_for.has_value(); }
};

/// How a LOCK is used, judging by the names of its contenders and children.
enum class LockKind {
  kMutex,
  kReadWrite,
  kSemaphore,
  kSimple,  ///< in Dialect::kSimple: the single znode `lock`
};

/// How many bytes of last-run's data are kept: one more than the maximum, so that larger data is
/// noticed.
inline constexpr std::size_t kMostLastRun = 16 * 1024 + 1;

/// One LOCK as a survey found it.
struct LockSurvey {
  std::string path;  ///< as shown to users
  bool exists = true;
  zookeeper::NodeStat stat{};
  bool readable = true;  ///< false: we lack permission to read its data
  std::string data{};    ///< the release record: the data of the LOCK itself, truncated
  /// The data of its child last-run, truncated to kMostLastRun bytes; may be any bytes. None if
  /// there is no such child, if it was not requested, or if we lack permission to read it.
  std::optional<std::string> last_run{};
  zookeeper::NodeStat last_run_stat{};  ///< with `last_run`
  bool last_run_refused = false;        ///< we lack permission to read it
  /// The last start of a run with --once-per, as recorded in the child last-start, and its time.
  /// None if there is no record, if it was not requested, or if we cannot read or parse it.
  std::optional<protocol::StartRecord> last_start{};
  protocol::ServerTime last_started{};
  /// Set for OnLockEnd(): the contenders in the queue whose runs have no end in `last_run`. Other
  /// runs without an end were lost.
  std::vector<std::string> running{};
  std::vector<QueueEntry> entries{};  ///< in queue order, then those that are not contenders
  std::size_t held = 0;  ///< how many contenders hold the lock, including those not read
  std::size_t waiting = 0;
  std::size_t used = 0;                         ///< for a semaphore: the permits of those that hold
  std::optional<LockKind> kind{};               ///< none if nothing shows the kind
  std::optional<std::size_t> permit_limit{};    ///< for a semaphore, if known
  std::vector<std::string> ignored_children{};  ///< children whose names do not count, sorted
  bool in_tree = false;                         ///< found while walking a tree
  /// Set for OnLockEnd(): a contender that cannot see one of zklock's, so both may hold the lock.
  std::optional<protocol::IncompatibleContender> incompatible{};

  [[nodiscard]] bool IsHeld() const { return held != 0; }
  [[nodiscard]] bool IsSemaphore() const { return kind == LockKind::kSemaphore; }
  /// Returns how many permits are free. (A program with another limit may have taken more permits
  /// than our limit allows.)
  [[nodiscard]] std::optional<std::size_t> FreePermits() const {
    if (!permit_limit) return std::nullopt;
    return *permit_limit - std::min(used, *permit_limit);
  }
};

/// Receives what a survey finds, as it finds it. A derived class overrides only what it needs. A
/// sink must not destroy the survey.
class SurveySink {
 public:
  virtual ~SurveySink() = default;
  /// Receives the next LOCK, in the tree's order. Its entries follow. `held` and `waiting` count
  /// names, some of which may turn out not to be contenders.
  virtual void OnLock(const LockSurvey& /*lock*/) {}
  /// Receives the LOCK's next entry: in queue order, then those that are not contenders.
  virtual void OnEntry(const QueueEntry& /*entry*/) {}
  /// Called when the LOCK is complete. The counts are now exact.
  virtual void OnLockEnd(const LockSurvey& /*lock*/) {}
  /// Called when the survey is complete. When watching, the survey starts again after a change.
  virtual void OnEnd() {}
  /// Returns false while the sink can accept no more: the survey then sends no requests until
  /// Resume().
  [[nodiscard]] virtual bool WantsMore() const { return true; }
};

}  // namespace zklock::lock
