#pragma once

#include <string>
#include <variant>

#include "base/clock.h"
#include "lock/acquire/attempt.h"
#include "lock/acquire/session_proof.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// The last step: now that all contenders ahead of us are gone, proves that ours exists and that
/// the lease suffices to start a command.
class ProofPart final : public AcquirePart {
 public:
  ProofPart(Attempt& attempt, SessionProof& proof) : attempt_(attempt), proof_(proof) {}

  // As in AcquireSteps.
  void Confirm(const std::string& record_of);
  void TakeTurn();

  /// Returns when to confirm again to get a longer lease; kNever unless one is awaited.
  [[nodiscard]] TimePoint due() const;
  void ConfirmAgain();

  void Leave() override { state_ = NotAtWork{}; }
  [[nodiscard]] bool IsWaiting() const override {
    return std::holds_alternative<AwaitingLease>(state_);
  }

 private:
  struct NotAtWork {};
  /// A read of LOCK's data is under way, and so is the proof of the session, unless the lease in
  /// hand is enough.
  struct Confirming {
    std::string record_of{};
    Proof proof = Proof::kNone;
    /// When this state began, if it followed AwaitingLease; otherwise kNever.
    TimePoint round_began = kNever;
  };
  /// It is our turn, but the lease is too short to start anything.
  struct AwaitingLease {
    TimePoint confirm_at;
  };

  void OnConfirmed(const zookeeper::GetReply& reply);
  void CheckForNewer();

  Attempt& attempt_;
  SessionProof& proof_;
  std::variant<NotAtWork, Confirming, AwaitingLease> state_;
};

}  // namespace zklock::lock
