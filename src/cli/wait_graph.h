#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/queue_view.h"

namespace zklock::cli {

/// Who cannot go on before somebody else has, over several LOCKs.
struct WaitEdge {
  enum class Reason {
    kQueue,   ///< waits for its predecessor
    kPermit,  ///< waits for this one or any other to which such an edge leads from it
    kNested,  ///< holds, and its command runs this contender of another LOCK
    kSet,     ///< holds, and waits itself for another LOCK of its set
  };
  std::size_t from = 0;
  std::size_t to = 0;
  Reason reason = Reason::kQueue;
  friend bool operator==(const WaitEdge&, const WaitEdge&) = default;
};

/// The edges among `contenders`, by their indices. Their predecessors are found by path; whose
/// command runs whom is what they say of themselves: that they run under a contender (`under`), or
/// the same process of the same host (a set of LOCKs).
[[nodiscard]] std::vector<WaitEdge> FindWaits(const std::vector<const ContenderView*>& contenders);

/// For each contender the circle that it is in, from 1; 0: none. Only of those that can never go on
/// by themselves: who waits for any of several is in one if all of these are stuck too.
[[nodiscard]] std::vector<std::size_t> FindCircles(std::size_t contenders,
                                                   const std::vector<WaitEdge>& edges);

}  // namespace zklock::cli
