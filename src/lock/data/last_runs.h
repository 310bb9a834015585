#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/clock.h"
#include "lock/data/outcome.h"
#include "protocol/run_records.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// How long ago the last run must have begun.
struct RunIntervals {
  std::optional<Duration> since_success{};  ///< --min-interval
  std::optional<Duration> since_start{};    ///< --once-per

  [[nodiscard]] bool IsEmpty() const { return !since_success && !since_start; }
};

/// The records in LOCK that --min-interval and --once-per depend on.
struct LastRuns {
  std::optional<protocol::LastSuccess> success;
  std::optional<protocol::StartRecord> start;
  std::chrono::milliseconds started{};  ///< when `start` was written, by the servers' clock
  std::optional<Unusable> unknown;      ///< why one of them is unknown
};

/// Returns those records that `intervals` depend on, from the answers to reads of LOCK and of its
/// children last-run and last-start. A child that does not exist has recorded nothing.
[[nodiscard]] LastRuns LastRunsIn(const RunIntervals& intervals, const zookeeper::GetReply& lock,
                                  const zookeeper::GetReply& last_run,
                                  const zookeeper::GetReply& last_start);

/// The run that another one would follow too soon.
struct TooSoon {
  bool is_start = false;  ///< it is the last start (--once-per), not the last success
  std::string host{};
  std::chrono::milliseconds ago{};
  Duration interval{};
};
/// Returns why a run at `now` would be too soon; none if it would not be. `now` should be the
/// servers' time.
[[nodiscard]] std::optional<TooSoon> FindTooSoon(const RunIntervals& intervals,
                                                 const LastRuns& last,
                                                 std::chrono::milliseconds now);

}  // namespace zklock::lock
