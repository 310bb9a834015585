#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "cli/text/queue_view.h"

namespace zklock::cli {

/// A contender that cannot proceed until another one does, perhaps in another LOCK's queue.
struct WaitEdge {
  enum class Reason {
    kQueue,   ///< `from` waits for its predecessor
    kPermit,  ///< `from` waits for permits, of which `to` holds some
    kNested,  ///< `from` holds a lock; `to` runs under it and queues for another
    kSet,     ///< `from` holds; the same process waits, as `to`, for another LOCK of its set
    kAny,     ///< `from` is a run that takes any one LOCK, and waits as `to` for this one
  };
  std::size_t from = 0;
  std::size_t to = 0;
  Reason reason = Reason::kQueue;
  std::size_t permits = 1;  ///< kPermit: how many `to` holds
  friend bool operator==(const WaitEdge&, const WaitEdge&) = default;
};

/// Nodes are numbers: first the contenders, then `not_found`, then each run that waits for any one
/// of several LOCKs.
struct WaitGraph {
  std::size_t nodes = 0;
  std::size_t not_found = 0;  ///< all LOCKs in which no contender of such a run was found
  std::vector<WaitEdge> edges{};
  /// For nodes that wait for permits: how many permits the others may still hold when the node
  /// continues. Missing if the number of permits is unknown; in that case, the end of any holder
  /// may be enough.
  std::map<std::size_t, std::size_t> most_held{};
};

/// Returns the graph of `contenders`; the node of each is its index. Predecessors are found by
/// path. The other edges rely on what contenders write about themselves: under which contender they
/// run (`under`), which process they are (for a set of LOCKs), and that they wait in other queues
/// too (`any`). Contenders with `any` belong to one run only if they have the same session, which
/// the servers report, so nobody can forge a way out for another run.
[[nodiscard]] WaitGraph FindWaits(const std::vector<const ContenderView*>& contenders);

/// For each node, the number of the cycle that contains it, from 1, or 0 if none does. Only cycles
/// that can never resolve count: a node that waits for any of several is in one only if all of
/// those are stuck too, and a node that waits for permits only if the stuck holders leave too few.
[[nodiscard]] std::vector<std::size_t> FindCycles(const WaitGraph& graph);

/// Contenders that can never continue, because they wait for each other.
struct Deadlock {
  struct Holder {
    std::string who;   ///< "web1:4242", or the program in parentheses if nothing else is known
    std::string lock;  ///< the path of the LOCK that it holds
    friend bool operator==(const Holder&, const Holder&) = default;
  };
  std::vector<Holder> holders;                    ///< each holder once
  std::map<std::string, std::size_t> contenders;  ///< how many there are, by the path of the LOCK

  /// Returns "web1:4242 holds /a, web2:77 holds /b; each waits for the other". Not printable: paths
  /// may contain any bytes.
  [[nodiscard]] std::string Text() const;
};

/// Finds the deadlocks among the contenders of several LOCKs. Keeps only what it needs of each
/// contender.
class DeadlockSearch {
 public:
  /// Call before adding the contenders of the LOCK with this path.
  void BeginLock(const std::string& path) { locks_.push_back(path); }
  void Add(const ContenderView& contender);
  [[nodiscard]] std::vector<Deadlock> Find() const;

 private:
  std::vector<std::string> locks_;
  std::vector<ContenderView> contenders_;
  std::vector<std::size_t> lock_of_;  ///< for each contender, the index of its LOCK in locks_
};

}  // namespace zklock::cli
