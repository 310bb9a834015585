#include "process/guard/guard_watch.h"

#include <algorithm>

#include "process/tree/process_tree.h"
#include "protocol/lease.h"

namespace zklock::process {
namespace {

using std::chrono::milliseconds;

// How late the guard may be before it is suspected of hanging.
constexpr Duration kLateness = milliseconds(50);
// How soon the guard must begin to carry out an order, or look again after the lease was shortened.
constexpr Duration kOrderTime = milliseconds(100);
// zklock takes over from a suspected guard this long before the lease's end.
constexpr Duration kTakeOverMargin = milliseconds(150);
// How long a suspicion lasts. It starts when zklock notices that the guard is late: if both were
// stopped or suspended, the guard also gets time to wake up. zklock waits longest while the lease
// leaves time, less once there is an order to carry out, and least after the lease's stop time.
constexpr Duration kPatience = milliseconds(3000);
constexpr Duration kOrderPatience = milliseconds(1000);
constexpr Duration kLeastHaste = milliseconds(1000);
constexpr Duration kMostHaste = milliseconds(100);
constexpr Duration kLeastPatience = milliseconds(50);

TimePoint Deadline(const GuardTerms& terms) {
  if (terms.is_ending) return After(terms.looks_at, kLateness);
  TimePoint looks_at = terms.looks_at;
  if (terms.shortened_at) {
    const TimePoint stop = protocol::StopTime(terms.lease_end, terms.grace);
    looks_at = std::min(looks_at, std::max(stop, *terms.shortened_at + kOrderTime));
  }
  if (terms.ordered_at) looks_at = std::min(looks_at, *terms.ordered_at + kOrderTime);
  return After(looks_at, kLateness);
}

// Returns whether the guard is waiting for a processor, or has run since the first sighting.
bool IsSlow(const std::optional<GuardSighting>& before, const std::optional<GuardSighting>& now) {
  if (!before || !now) return false;
  switch (now->state) {
    case 'R':
      return true;
    case 'S':
    case 'D':
      return now->run_time != before->run_time;
    default:  // stopped, traced, dead
      return false;
  }
}

}  // namespace

std::optional<GuardSighting> SeeGuard(pid_t guard) {
  const std::optional<ProcessStat> stat = ReadProcessStat(guard);
  if (!stat) return std::nullopt;
  return GuardSighting{stat->state, ReadRunTime(guard)};
}

GuardWatch::Verdict GuardWatch::Look(TimePoint now, const GuardTerms& terms) {
  if (now < Deadline(terms)) {
    suspicion_.reset();
    return Verdict::kTrusted;
  }
  if (!suspicion_) {
    suspicion_ = Suspicion{now, see_()};
    return Verdict::kTrusted;
  }
  if (now < End(*suspicion_, terms)) return Verdict::kTrusted;
  const std::optional<GuardSighting> sighting = see_();
  if (!IsSlow(suspicion_->sighting, sighting)) return Verdict::kHangs;
  if (now >= protocol::StopTime(terms.lease_end, terms.grace)) return Verdict::kSlow;
  suspicion_ = Suspicion{now, sighting};
  return Verdict::kTrusted;
}

TimePoint GuardWatch::Wake(const GuardTerms& terms) const {
  return suspicion_ ? End(*suspicion_, terms) : Deadline(terms);
}

TimePoint GuardWatch::End(const Suspicion& suspicion, const GuardTerms& terms) {
  const TimePoint patient = suspicion.since + (terms.ordered_at ? kOrderPatience : kPatience);
  // Applies even if the stop time is still ahead, since it may pass while the suspicion lasts.
  const TimePoint hasty =
      After(std::max(protocol::StopTime(terms.lease_end, terms.grace), suspicion.since),
            std::clamp(terms.grace / 4, kMostHaste, kLeastHaste));
  return std::max(std::min({patient, hasty, terms.lease_end - kTakeOverMargin}),
                  suspicion.since + kLeastPatience);
}

}  // namespace zklock::process
