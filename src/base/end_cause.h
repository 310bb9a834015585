#pragma once

namespace zklock {

/// Why a run, or an owner's hold (--hold), ends. The code that ends it sets the cause; the first
/// cause counts. A table in cli/reports/end_reason.cc maps each cause to its consequences.
enum class EndCause : int {
  kItself,            ///< the command or the owner ended, or the owner released the lock
  kSignal,            ///< --hold: a signal told the keeper to end
  kGuardFailed,       ///< the guard was killed or hung, so zklock ended the command
  kReleaseRequested,  ///< another process asked for the release
  kRunTooLong,        ///< --max-run
  // The lock is lost:
  kRemoved,       ///< our contender was deleted
  kExpired,       ///< the servers ended the session
  kUnproven,      ///< the lease ended before it was proven again
  kShortSession,  ///< a server granted a session timeout too short for a lease
  kLeaseRanOut,   ///< the lease was about to end
  kOuter,         ///< the ancestor that held the lock released it, lost it or ended
  kAbandoned,     ///< zklock was killed or failed: nothing proves the lease any longer
};

/// Returns whether the run's lock is lost, so that there is no reason to keep the session.
[[nodiscard]] constexpr bool IsLoss(EndCause cause) { return cause >= EndCause::kRemoved; }

}  // namespace zklock
