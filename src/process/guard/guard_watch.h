#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>

#include "base/clock.h"

namespace zklock::process {

/// What /proc shows about the guard at one moment.
struct GuardSighting {
  char state = '?';                 ///< as in ProcessStat
  unsigned long long run_time = 0;  ///< nanoseconds of CPU time it has used
};

/// Returns none if /proc does not show the guard.
[[nodiscard]] std::optional<GuardSighting> SeeGuard(pid_t guard);

/// What the guard is expected to do.
struct GuardTerms {
  TimePoint looks_at = kNever;          ///< the guard has promised to look again by then
  TimePoint lease_end = kNever;         ///< as zklock knows it
  Duration grace{};                     ///< between the stop signal and KILL
  std::optional<TimePoint> ordered_at;  ///< when the guard was given an order
  /// When the lease was shortened, if the guard has not yet promised to look in time for its new
  /// end.
  std::optional<TimePoint> shortened_at{};
  bool is_ending = false;  ///< the guard is carrying out the order
};

/// Finds out whether the guard hangs, that is, has not looked again by the time that it promised.
///
/// A late guard is first suspected. If it is still late after some time, it counts as hanging,
/// unless it is only slow, that is, ready to run but not scheduled. A slow guard has time until the
/// lease's stop time. After that, zklock takes over from it as well.
class GuardWatch {
 public:
  enum class Verdict {
    kTrusted,  ///< or only suspected: look again at Wake()
    kHangs,
    kSlow,  ///< and the lease leaves no more time
  };

  explicit GuardWatch(std::function<std::optional<GuardSighting>()> see) : see_(std::move(see)) {}

  Verdict Look(TimePoint now, const GuardTerms& terms);
  /// Returns when to look next.
  [[nodiscard]] TimePoint Wake(const GuardTerms& terms) const;

 private:
  struct Suspicion {
    TimePoint since;
    std::optional<GuardSighting> sighting;
  };

  [[nodiscard]] static TimePoint End(const Suspicion& suspicion, const GuardTerms& terms);

  std::function<std::optional<GuardSighting>()> see_;
  std::optional<Suspicion> suspicion_;
};

}  // namespace zklock::process
