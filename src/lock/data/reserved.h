#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "lock/data/run_history.h"
#include "lock/data/ticket.h"
#include "protocol/contender_name.h"
#include "protocol/release_record.h"
#include "protocol/reservation.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// A reservation as its znode shows it.
struct Reserved {
  protocol::Reservation reservation;
  protocol::Mode mode = protocol::Mode::kExclusive;
  std::size_t take = 1;  ///< how many permits it has, by its data
  std::string host{};    ///< on which it was made; may be empty
  std::string user{};    ///< likewise, who made it
  std::string label{};
  /// When it was made and when it ends, by the servers' clock, since 1970. Without an end, until it
  /// is released.
  std::chrono::milliseconds since{};
  std::optional<std::chrono::milliseconds> until{};
  std::int64_t created_zxid = 0;  ///< of its znode
  std::int32_t version = 0;       ///< of the znode's data
  bool is_incomplete = false;     ///< one of its permits is gone: it has ended

  /// Like `until`; long ago, if it is incomplete.
  [[nodiscard]] std::optional<std::chrono::milliseconds> end() const {
    return is_incomplete ? std::chrono::milliseconds(0) : until;
  }
  /// Whether it may end before it is released, as far as one of its znodes shows.
  [[nodiscard]] bool MayEnd() const { return until || take > 1; }
};

/// The reservation that the child `name` of a queue with this data and metadata is; none if it is
/// none. A reservation is persistent, has a name of zklock's with `-reserve`, and valid data whose
/// token is older than the znode. All that anyone with the right to create znodes can forge.
[[nodiscard]] std::optional<Reserved> FindReservation(std::string_view name,
                                                      const std::string& data,
                                                      const zookeeper::NodeStat& stat);

/// Whether the creation of `own` shows that it has ended. That of a contender from before the
/// reservation does not: the servers' clock may have been set back in between.
[[nodiscard]] bool HadEnded(const Reserved& reserved, const Ticket& own);
/// What the servers' clock shows at `moment` of our clock, at most, as far as the creation of `own`
/// and of the reservation show it.
[[nodiscard]] std::chrono::milliseconds LatestServerTimeAt(TimePoint moment,
                                                           const Reserved& reserved, Ticket own);

/// The record of its release.
[[nodiscard]] protocol::ReleaseRecord RecordOf(std::string_view name, const Reserved& reserved);
/// Whether its end is recorded in LOCK's data. Not of a reader, nor of one that others were before
/// in the queue: whoever may create children can forge a reservation there, which has never held.
[[nodiscard]] bool LeavesRecord(const Reserved& reserved, bool was_first);

/// The reservation as a run for the history, without its end.
[[nodiscard]] RunRecord RunOf(std::string_view name, const Reserved& reserved);

/// The znode in the LOCK `lock` with which Store::Stamp() asks for the servers' time. Whoever makes
/// and releases reservations has the rights in LOCK for it.
[[nodiscard]] std::string StampPath(const std::string& lock);

/// The data of the reservation that our contender, whose data is `contender`, becomes.
[[nodiscard]] std::string FormatReservation(std::string_view contender,
                                            const protocol::ReservationRequest& request,
                                            std::int64_t token);
/// The data of a reservation, `old`, with the time to last, the reason and the label of `reserved`.
[[nodiscard]] std::string Rewritten(std::string_view old, const Reserved& reserved);

}  // namespace zklock::lock
