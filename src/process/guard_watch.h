#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>

#include "base/clock.h"

namespace zklock::process {

/// What /proc shows of the guard at one moment.
struct GuardSighting {
  char state = '?';                 ///< as ProcessStat
  unsigned long long run_time = 0;  ///< nanoseconds of processor time that it has got
};

/// None when it cannot be seen.
[[nodiscard]] std::optional<GuardSighting> SeeGuard(pid_t guard);

/// What is expected of the guard.
struct GuardTerms {
  TimePoint looks_at = kNever;          ///< it has promised to look again by then
  TimePoint lease_end = kNever;         ///< as zklock knows it
  Duration kill_after{};                ///< the grace of the stop signal
  std::optional<TimePoint> ordered_at;  ///< it has got an order
  /// The lease's end has moved back, and it has not yet promised to look in time for that.
  std::optional<TimePoint> shortened_at{};
  bool is_ending = false;  ///< it is carrying out the order
};

/// Finds out whether the guard hangs, that is, does not look when it has promised to.
///
/// A guard that is late is suspected first. When the suspicion has lasted long enough, it hangs,
/// unless it is only slow: it could run, but the host gives it no time. A slow guard is waited for
/// as long as the lease has time. From the lease's stop time on a slow guard is given up like one
/// that hangs.
class GuardWatch {
 public:
  enum class Verdict {
    kTrusted,  ///< or suspected: look again at Wake()
    kHangs,
    kSlow,  ///< and the lease has no time left for that
  };

  explicit GuardWatch(std::function<std::optional<GuardSighting>()> see) : see_(std::move(see)) {}

  Verdict Look(TimePoint now, const GuardTerms& terms);
  /// When to look next.
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
