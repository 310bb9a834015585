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

/// A reservation as described by its znode.
struct Reserved {
  protocol::Reservation reservation;
  protocol::Mode mode = protocol::Mode::kExclusive;
  std::size_t take = 1;  ///< how many permits it has, according to its data
  std::string host{};    ///< the host on which it was made; may be empty
  std::string user{};    ///< the user who made it; may be empty
  std::string label{};
  /// When it was made and when it ends: time since 1970, by the servers' clock. Without `until`, it
  /// lasts until it is released.
  std::chrono::milliseconds since{};
  std::optional<std::chrono::milliseconds> until{};
  std::int64_t created_zxid = 0;  ///< of its znode
  std::int32_t version = 0;       ///< of the znode's data
  bool is_incomplete = false;     ///< one of its permits is gone: it has ended

  /// Returns `until`, or a time long past if it is incomplete.
  [[nodiscard]] std::optional<std::chrono::milliseconds> end() const {
    return is_incomplete ? std::chrono::milliseconds(0) : until;
  }
  /// Returns whether it may end before it is released, judging by one of its znodes.
  [[nodiscard]] bool MayEnd() const { return until || take > 1; }
};

/// Returns the reservation if the child `name` of a queue, with this data and metadata, is one. A
/// reservation is persistent, has a zklock name with `-reserve`, and has valid data whose token is
/// older than the znode. Anyone with permission to create znodes can forge all of that.
[[nodiscard]] std::optional<Reserved> FindReservation(std::string_view name,
                                                      const std::string& data,
                                                      const zookeeper::NodeStat& stat);

/// Returns whether the creation time of `own` shows that the reservation has ended. If `own` is
/// older than the reservation, its creation time shows nothing: the servers' clock may have been
/// set back in between.
[[nodiscard]] bool HadEnded(const Reserved& reserved, const Ticket& own);
/// Returns the latest time that the servers' clock may show at `moment` on our clock, judging by
/// the creation times of `own` and of the reservation.
[[nodiscard]] std::chrono::milliseconds LatestServerTimeAt(TimePoint moment,
                                                           const Reserved& reserved, Ticket own);

/// Returns the record of the reservation's release.
[[nodiscard]] protocol::ReleaseRecord RecordOf(std::string_view name, const Reserved& reserved);
/// Returns whether the reservation's release is recorded in LOCK's data. No record is left for a
/// reader's reservation, nor for one with other contenders before it in the queue: anyone who may
/// create children can forge such a reservation, and it has never been in force.
[[nodiscard]] bool LeavesRecord(const Reserved& reserved, bool was_first);

/// Returns the reservation as a run for the history, without its end.
[[nodiscard]] RunRecord RunOf(std::string_view name, const Reserved& reserved);

/// The prefix of the names of znodes that are created only to read the servers' clock.
inline constexpr char kStampPrefix[] = "zklock-clock-";

/// Returns the name of the znode that Store::Stamp() and Store::CreateAll() create and delete below
/// a LOCK. It contains the session's ID, so that no other znode has the same name. Anyone who makes
/// or releases reservations has the permissions on LOCK that the znode requires.
[[nodiscard]] std::string StampName(const zookeeper::Store& store);

/// Returns the data of the reservation that replaces our contender with the data `contender`.
[[nodiscard]] std::string FormatReservation(std::string_view contender,
                                            const protocol::ReservationRequest& request,
                                            std::int64_t token);
/// Returns `old`, the data of a reservation, with the duration, reason and label of `reserved`.
[[nodiscard]] std::string Rewritten(std::string_view old, const Reserved& reserved);

}  // namespace zklock::lock
