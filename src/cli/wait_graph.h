#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/queue_view.h"

namespace zklock::cli {

/// One contender that cannot continue before another, possibly of another LOCK.
struct WaitEdge {
  enum class Reason {
    kQueue,   ///< `from` waits for its predecessor
    kPermit,  ///< `from` waits for any one of the contenders to which it has such edges
    kNested,  ///< `from` holds, and `to`, of another LOCK, runs under it
    kSet,     ///< `from` holds, and the same process waits as `to` for another LOCK of its set
  };
  std::size_t from = 0;
  std::size_t to = 0;
  Reason reason = Reason::kQueue;
  friend bool operator==(const WaitEdge&, const WaitEdge&) = default;
};

/// The edges among `contenders`, as indices. Predecessors are found by path. The other edges rely
/// on what contenders write about themselves: under which contender they run (`under`), and which
/// process they are (for a set of LOCKs).
[[nodiscard]] std::vector<WaitEdge> FindWaits(const std::vector<const ContenderView*>& contenders);

/// For each contender, the number of the cycle that contains it, from 1, or 0 if none does. Only
/// cycles that can never resolve count: a contender that waits for any of several is in one only if
/// all of those are stuck too.
[[nodiscard]] std::vector<std::size_t> FindCycles(std::size_t contenders,
                                                  const std::vector<WaitEdge>& edges);

}  // namespace zklock::cli
