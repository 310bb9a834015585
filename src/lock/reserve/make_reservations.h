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

/// A contender of ours that holds.
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

/// Making the reservations has failed. `may_be_made`: some may exist, since an answer from the
/// servers was lost or a release failed; otherwise none was made.
class ReservingFailed : public OperationFailed {
 public:
  ReservingFailed(OperationFailure failure, bool may_be_made)
      : OperationFailed(std::move(failure)), may_be_made_(may_be_made) {}
  [[nodiscard]] bool may_be_made() const { return may_be_made_; }

 private:
  bool may_be_made_;
};

/// Converts our own contenders, which hold, to reservations: all of them or none, in one
/// transaction. Each keeps its name, and with it the place in the queue. Returns the reservations,
/// one for each contender, in the same order. Throws ReservingFailed.
///
/// `held`: at least one, all of the session of `calls`, in the order of the LOCKs' paths. `also`:
/// reservations for the same ID in other LOCKs, which must still exist. `passed`: our contenders in
/// LOCKs that are no longer needed, which the transaction deletes.
///
/// The transaction deletes the contenders, so it can only succeed while they exist, and needs no
/// lease. After a lost reply, or in a new session, the znodes show whether it has succeeded: a
/// persistent znode with one of our names is the reservation. The version of its data is higher
/// than that of the contender's data: whoever has read the contender, and then writes or deletes
/// the version that it has read, does not hit the reservation. If one of several has been released
/// before we know that they were made, the others are released too.
[[nodiscard]] std::variant<std::vector<ReservedLock>, NotReserved> MakeReservations(
    Calls& calls, const std::vector<HeldContender>& held, const std::vector<ReservedLock>& also,
    const std::vector<std::string>& passed, const protocol::ReservationRequest& request);

}  // namespace zklock::lock
