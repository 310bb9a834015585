#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lock/data/outcome.h"
#include "lock/data/ticket.h"
#include "lock/operations/calls.h"

namespace zklock::lock {

/// Returns the reservation for `id` that holds `lock`; none if there is no such reservation, or if
/// it has reached its end by the servers' clock. If it returns none and `other` is not null, sets
/// `*other` to a reservation with another ID that holds `lock`, if there is one. Throws
/// OperationFailed.
[[nodiscard]] std::optional<ReservedLock> FindHeldReservation(
    Calls& calls, const LockName& lock, const std::string& id,
    std::optional<Reserved>* other = nullptr);

/// Searches the queue of `lock` for a contender with our `id` that is older than `own` and whose
/// run takes any of several LOCKs, including that of `own`. If there is one, returns the number of
/// contenders that wait in the queue; otherwise none. Throws OperationFailed.
[[nodiscard]] std::optional<std::size_t> CountWaitingAtEarlierPool(Calls& calls,
                                                                   const LockName& lock,
                                                                   const std::string& id,
                                                                   const Ticket& own);

/// Returns why a run in `mode` that takes `take` of `permits` permits (none: without --permits)
/// cannot use `reserved`, a reservation made for another use of the LOCK; none if it can. Throws
/// OperationFailed.
[[nodiscard]] std::optional<Unusable> FindOtherUse(Calls& calls, const ReservedLock& reserved,
                                                   protocol::Mode mode,
                                                   std::optional<std::size_t> permits,
                                                   std::size_t take);

struct Renewal {
  std::chrono::milliseconds lasts{};  ///< from now
  std::string reason{};               ///< replaces the reason of each reservation, unless empty
  std::string label{};                ///< likewise
};

/// Renews the reservations of one ID by the servers' clock, all in one transaction. None ends
/// earlier than before, none without an end gets one, and none lasts longer than
/// kLongestReservation in total. Returns the renewed reservations; none if any of them is gone or
/// has reached its end. Throws OperationFailed.
///
/// The transaction requires the versions that were read. If it succeeded but its reply was lost,
/// the retry extends the reservations again, by the time that has passed.
[[nodiscard]] std::optional<std::vector<ReservedLock>> RenewReservations(
    Calls& calls, const std::vector<ReservedLock>& reserved, const Renewal& renewal);

/// A reservation that ended after it was found, for example while a command was running under it.
struct Outlived {
  LockName lock;
  std::optional<Reserved> overdue{};  ///< it exists, but its end has passed; none: it is gone
};
/// Returns the reservations in `reserved` that are gone or have reached their ends by the servers'
/// clock. A later reservation for the same ID does not count. Throws OperationFailed.
[[nodiscard]] std::vector<Outlived> FindOutlived(Calls& calls, const std::vector<Ticket>& reserved);

}  // namespace zklock::lock
