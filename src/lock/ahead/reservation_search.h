#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lock/data/acquire_request.h"
#include "lock/data/callback_scope.h"
#include "lock/data/outcome.h"
#include "protocol/queue.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// Searches the contenders of a queue for those with the ID of our request (--reserve): the
/// reservation itself, or another zklock's contender that is about to become one. Only contenders
/// with `-reserve` in their names are read, and those with other IDs only once.
class ReservationSearch {
 public:
  /// A reservation or a contender with our ID.
  struct Found {
    std::string name{};  ///< its name; empty if there is none
    std::int64_t created_zxid = 0;
    std::vector<std::string> more{};     ///< its other permits
    std::optional<Reserved> reserved{};  ///< none: it is not a reservation yet
    /// No contender that excludes it is before it in the queue. Anyone who may create znodes can
    /// forge a reservation further back.
    bool holds = false;
    /// For each contender with our ID that takes any of several LOCKs (--any): the other LOCKs.
    std::vector<std::string> pooled{};

    [[nodiscard]] bool IsInForce() const { return reserved && holds; }
  };

  /// Both must outlive this.
  ReservationSearch(zookeeper::Store& store, const AcquireRequest& request)
      : store_(store), request_(request) {}

  /// Calls `done` once, perhaps before returning; never after a lost reply. If several contenders
  /// have our ID, finds the first reservation that is in force, or the first contender if none is.
  /// `own_name`: our contender, if we have joined; only contenders before it count.
  void Search(const protocol::Contenders& contenders, std::string_view own_name,
              const std::function<void(const Found& found)>& done);

 private:
  void Take(Found one, const zookeeper::GetReply& reply, std::vector<Found>& ours);
  [[nodiscard]] static Found FirstOf(std::vector<Found>& ours);

  zookeeper::Store& store_;
  const AcquireRequest& request_;
  std::set<std::string> others_;  ///< contenders with other IDs
  CallbackScope scope_;
};

}  // namespace zklock::lock
