#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lock/contender_data.h"
#include "lock/outcome.h"
#include "lock/server_operation.h"
#include "lock/ticket.h"
#include "protocol/reservation.h"

namespace zklock::lock {

/// Converts our own contenders, which hold, to reservations: all of them or none, in one
/// transaction. Each keeps its name, and with it the place in the queue.
///
/// The transaction deletes the contenders, so that it can only succeed while they exist, and needs
/// no lease. After a lost reply, or in a new session, the znodes show whether it has succeeded: a
/// persistent znode with one of our names is the reservation. The versions of its data are above
/// those of the contender's: whoever has read the contender, and writes or deletes what it has
/// read, does not hit the reservation. If one of several has been released before we know that they
/// are made, the others are released too.
class MakeReservations final : public ServerOperation {
 public:
  struct Held {
    Ticket ticket;
    std::string data;  ///< of the contender
  };
  enum class Result {
    kMade,
    kRemoved,       ///< a contender, or a reservation, was deleted
    kExpired,       ///< the session expired, and the contenders with it
    kAskedToLeave,  ///< see release_request()
  };

  /// `held`: at least one, of the store's session, by path of the LOCK. `also`: reservations of the
  /// same ID, in other LOCKs, which must still exist.
  MakeReservations(zookeeper::Store& store, const Clock& clock, std::vector<Held> held,
                   std::vector<ReservedLock> also, protocol::ReservationRequest request,
                   Duration connect_timeout);

  /// After success.
  [[nodiscard]] Result result() const { return result_; }
  /// After a failure: the reservations may have been made, since an answer of the servers was lost.
  [[nodiscard]] bool may_be_made() const { return may_be_made_; }
  /// After kMade: one for each ticket, in the same order.
  [[nodiscard]] const std::vector<ReservedLock>& made() const { return made_; }
  /// After kAskedToLeave.
  [[nodiscard]] const ReleaseRequest& release_request() const { return release_request_; }

  void OnExpired() override;

 protected:
  void Begin() override;

 private:
  void Read();
  void OnRead(std::size_t index, const zookeeper::GetReply& reply);
  void Judge();
  void Convert();
  void ReleaseRest();
  void End(Result result);

  const std::vector<Held> held_;
  const std::vector<ReservedLock> also_;
  const protocol::ReservationRequest request_;
  std::vector<zookeeper::GetReply> read_;  ///< of each contender, then of each of `also`
  std::vector<ReservedLock> made_;
  ReleaseRequest release_request_;
  Result result_ = Result::kMade;
  bool has_expired_ = false;  ///< a session that had the contenders
  bool was_sent_ = false;     ///< the conversion, at least once
  bool may_be_made_ = false;
};

}  // namespace zklock::lock
