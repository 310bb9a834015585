#pragma once

#include <string>
#include <variant>
#include <vector>

#include "lock/data/contender_data.h"
#include "lock/data/outcome.h"
#include "lock/data/ticket.h"
#include "lock/operations/calls.h"
#include "protocol/reservation.h"

namespace zklock::lock {

/// One of our contenders, which holds its lock.
struct HeldContender {
  Ticket ticket;
  std::string data;
};

/// Why no reservations were made.
struct NotReserved {
  enum class Why {
    kRemoved,       ///< a contender, or a reservation, was deleted
    kExpired,       ///< the session expired, and the contenders with it
    kAskedToLeave,  ///< see `request`
  };
  Why why = Why::kRemoved;
  ReleaseRequest request{};
};

/// Thrown when making the reservations has failed. `may_be_made`: some may exist, because an answer
/// from the servers was lost or a release failed; if false, none was made.
class ReservingFailed : public OperationFailed {
 public:
  ReservingFailed(OperationFailure failure, bool may_be_made)
      : OperationFailed(std::move(failure)), may_be_made_(may_be_made) {}
  [[nodiscard]] bool may_be_made() const { return may_be_made_; }

 private:
  bool may_be_made_;
};

/// Converts our own contenders, which hold their locks, into reservations: all or none of them, in
/// one transaction. Each keeps its name, and with it its place in the queue. Returns the
/// reservations, one for each contender, in the same order. Throws ReservingFailed.
///
/// `held`: at least one, all owned by the session of `calls`, in the order of the LOCKs' paths.
/// `also`: reservations for the same ID in other LOCKs, which must still exist. `passed`: our
/// contenders that are no longer needed, which the transaction deletes.
///
/// The transaction deletes the contenders, so it can succeed only while they exist, and it needs no
/// lease. After a lost reply, or in a new session, the znodes show whether it has succeeded: a
/// persistent znode with one of our names is the reservation. The version of its data is higher
/// than that of the contender's data, so a program that has read the contender cannot affect the
/// reservation by writing to or deleting the version that it read. If one of several is released
/// before we know that they were made, the others are also released.
[[nodiscard]] std::variant<std::vector<ReservedLock>, NotReserved> MakeReservations(
    Calls& calls, const std::vector<HeldContender>& held, const std::vector<ReservedLock>& also,
    const std::vector<std::string>& passed, const protocol::ReservationRequest& request);

}  // namespace zklock::lock
