#pragma once

#include <string>

#include "lock/acquire/attempt.h"
#include "lock/acquire/session_proof.h"
#include "protocol/queue.h"

namespace zklock::lock {

/// Decides from `list` whether `own_name` may hold the lock, and if not, what it waits for.
[[nodiscard]] protocol::Decision MakeDecision(const AcquireRequest& request, const QueueList& list,
                                              std::string_view own_name);

/// Decides from a list of the queue, once everything that the decision depends on is known: how
/// LOCK is used, the number of permits, and the contenders with our ID.
class DecisionPart final : public AcquirePart {
 public:
  DecisionPart(Attempt& attempt, SessionProof& proof) : attempt_(attempt), proof_(proof) {}

  // As in AcquireSteps.
  void ListAgain();
  void CheckOwn();
  void DecideByNextList(Proof proof);
  void Decide(const protocol::Children& children) { DecideIfCompatible(children, Proof::kNone); }

 private:
  void ReadUse();
  void DecideIfCompatible(const protocol::Children& children, Proof proof);
  void FindRival(const QueueList& list, Proof proof);
  void DecideBy(const QueueList& list, Proof proof, const std::string& rival);
  [[nodiscard]] bool AgreeOnPermits(const protocol::Contenders& permits);

  Attempt& attempt_;
  SessionProof& proof_;
  int missing_ = 0;  ///< how many lists lacked our znode although it exists
  bool listed_for_strays_ = false;
};

}  // namespace zklock::lock
