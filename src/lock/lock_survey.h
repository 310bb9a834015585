#pragma once

#include <algorithm>
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
  std::string path{};       ///< on the servers
  bool any_holder = false;  ///< for a permit: the first holder, and any other will do
  friend bool operator==(const Predecessor&, const Predecessor&) = default;
};

/// One child of a LOCK whose name counts in its queue, or the znode `lock` of the simple lock. Of a
/// semaphore a permit, or a child of its turnstile.
struct QueueEntry {
  protocol::ContenderName name;
  std::string path{};         ///< on the servers
  bool in_turnstile = false;  ///< of a semaphore: it has no permit
  bool readable = false;      ///< false: we may not read it; the rest is not known
  zookeeper::NodeStat stat{};
  std::string data{};                      ///< somebody else's bytes, cut
  std::optional<std::size_t> position{};   ///< from 1; none: no contender
  std::optional<Predecessor> waits_for{};  ///< none: it holds, is no contender, or a permit is free
  /// Of a permit: the contender's other znode, in the turnstile, while it has both.
  std::string turnstile_name{};

  /// False for a znode that ends with no session: a lock below the lock, or an incompatible
  /// contender's.
  [[nodiscard]] bool IsContender() const { return !readable || stat.ephemeral_owner != 0; }
  /// Of a contender that has been told.
  [[nodiscard]] bool Waits() const { return in_turnstile || waits_for.has_value(); }
};

/// What a LOCK is used as, told from the names of its contenders, or its children.
enum class LockKind {
  kMutex,
  kReadWrite,
  kSemaphore,
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
  std::optional<LockKind> kind{};               ///< none where nothing tells it
  std::optional<std::size_t> permit_limit{};    ///< of a semaphore, where it says so
  std::vector<std::string> ignored_children{};  ///< names that do not count, sorted
  bool in_tree = false;                         ///< one of all below what was asked for

  [[nodiscard]] bool IsHeld() const { return held != 0; }
  [[nodiscard]] bool IsSemaphore() const { return kind == LockKind::kSemaphore; }
  /// How many permits nobody has; a program that thinks of another number may have taken more.
  [[nodiscard]] std::optional<std::size_t> FreePermits() const {
    if (!permit_limit) return std::nullopt;
    return *permit_limit - std::min(held, *permit_limit);
  }
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
