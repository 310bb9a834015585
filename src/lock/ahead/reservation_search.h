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

/// Searches the contenders of a queue for those with the ID that our request reserves for: the
/// reservation itself, or a contender of another zklock that is about to become it. Only names with
/// `-reserve` are read, and those of other IDs only once.
class ReservationSearch {
 public:
  /// What has our ID.
  struct Found {
    std::string name{};  ///< the contender; empty if there is none
    std::int64_t created_zxid = 0;
    std::vector<std::string> more{};     ///< its other permits
    std::optional<Reserved> reserved{};  ///< none: it is no reservation yet
    /// Nothing that excludes it is before it in the queue. Anyone who may create znodes can forge a
    /// reservation further back.
    bool holds = false;
    /// For each contender with our ID that takes any of several LOCKs (--any): the others.
    std::vector<std::string> pooled{};

    [[nodiscard]] bool IsInForce() const { return reserved && holds; }
  };

  /// Both outlive this.
  ReservationSearch(zookeeper::Store& store, const AcquireRequest& request)
      : store_(store), request_(request) {}

  /// Calls `done` once, perhaps before it returns; never after a lost reply. Of several with our ID
  /// the first reservation that holds is found, else the first contender. `own_name`: our
  /// contender, of which only those before it count; empty before we have joined.
  void Search(const protocol::Contenders& contenders, std::string_view own_name,
              const std::function<void(const Found& found)>& done);

 private:
  void Take(Found one, const zookeeper::GetReply& reply, std::vector<Found>& ours);
  [[nodiscard]] static Found FirstOf(std::vector<Found>& ours);

  zookeeper::Store& store_;
  const AcquireRequest& request_;
  std::set<std::string> others_;  ///< contenders of other IDs
  CallbackScope scope_;
};

}  // namespace zklock::lock
