#pragma once

#include <string>
#include <vector>

#include "lock/acquire/attempt.h"
#include "lock/acquire/lock_creation.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// Joins the queue: creates our contender, and finds it again if the reply was lost.
class JoinPart final : public AcquirePart {
 public:
  explicit JoinPart(Attempt& attempt)
      : attempt_(attempt), creation_(attempt.store, attempt.request) {}

  /// Joins over the connection of a new session.
  void Begin();
  /// Checks, over another connection of the same session, whether our contender still exists, or
  /// whether its create succeeded.
  void Rejoin();
  // As in AcquireSteps.
  void Join();
  void AdoptOrJoin(const std::vector<std::string>& names, const zookeeper::GetReply& reply);

  /// Returns whether the create of our contender is under way.
  [[nodiscard]] bool IsCreating() const { return is_creating_ && attempt_.contender.may_exist(); }

  void Leave() override { is_creating_ = false; }

 private:
  void TakeGiven();
  void FindOwnReservation();
  void LookOrJoin();
  void EnterQueue();
  void OnCreated(const zookeeper::CreateReply& reply);
  void OnOtherZnode();
  void CreateLock();
  void FindLostCreate();
  void ReadCandidates(const std::vector<std::string>& names);
  void ReadCreated(const std::vector<std::string>& names);

  Attempt& attempt_;
  LockCreation creation_;
  bool is_creating_ = false;
};

}  // namespace zklock::lock
