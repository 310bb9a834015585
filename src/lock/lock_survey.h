#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "protocol/contender_name.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// The one of whom an entry waits for.
struct Predecessor {
  std::size_t position = 0;
  std::string name;
  friend bool operator==(const Predecessor&, const Predecessor&) = default;
};

/// One child of a LOCK whose name counts in its queue, or the znode `lock` of the simple lock.
struct QueueEntry {
  protocol::ContenderName name;
  std::string path{};     ///< on the servers
  bool readable = false;  ///< false: we may not read it; the rest is not known
  zookeeper::NodeStat stat{};
  std::string data{};                      ///< somebody else's bytes, cut
  std::optional<std::size_t> position{};   ///< from 1; none: no contender
  std::optional<Predecessor> waits_for{};  ///< none: it holds, or is no contender

  /// False for a znode that ends with no session: a lock below the lock, or a stranger's.
  [[nodiscard]] bool IsContender() const { return !readable || stat.ephemeral_owner != 0; }
};

/// What a LOCK is used as, told from its contenders' names.
enum class LockKind {
  kMutex,
  kReadWrite,
  kSimple,  ///< the one znode `lock`
};

/// One LOCK as it was found.
struct LockSurvey {
  std::string path;  ///< as the user knows it
  bool exists = true;
  zookeeper::NodeStat stat{};
  std::string data{};                 ///< the LOCK's own, cut: the release record
  std::vector<QueueEntry> entries{};  ///< in queue order, then who is no contender
  std::size_t held = 0;               ///< how many contenders hold, those not read included
  std::size_t waiting = 0;
  std::optional<LockKind> kind{};               ///< none where nobody queues to tell it
  std::vector<std::string> ignored_children{};  ///< names that do not count, sorted
  bool in_tree = false;                         ///< one of all below what was asked for

  [[nodiscard]] bool IsHeld() const { return held != 0; }
};

/// Is told what a survey finds as it comes. May not destroy the survey.
class SurveySink {
 public:
  virtual ~SurveySink() = default;
  /// The next LOCK, in the tree's order. Its entries follow; `held` and `waiting` count names, of
  /// which one or the other may turn out to be no contender.
  virtual void OnLock(const LockSurvey& lock) = 0;
  /// Its next one in queue order, then those that are no contenders.
  virtual void OnEntry(const QueueEntry& entry) = 0;
  /// No more of it. Now the counts are right.
  virtual void OnLockEnd(const LockSurvey& lock) = 0;
  /// All was told: when watching, until something changes.
  virtual void OnEnd() {}
  /// False while it can take no more: the survey asks no further until Resume().
  [[nodiscard]] virtual bool WantsMore() const { return true; }
};

}  // namespace zklock::lock
