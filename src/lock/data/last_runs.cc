#include "lock/data/last_runs.h"

#include <string>
#include <string_view>

#include "protocol/release_record.h"

namespace zklock::lock {

using zookeeper::GetReply;

LastRuns LastRunsIn(const RunIntervals& intervals, const GetReply& lock, const GetReply& last_run,
                    const GetReply& last_start) {
  const auto unknown = [](std::string_view child) {
    return Unusable{.why = Unusable::Why::kRecordUnknown, .child = std::string(child)};
  };
  LastRuns last;
  if (intervals.since_success) {
    const auto kept = protocol::ParseLastRunData(last_run.data);
    const auto data = protocol::ParseLockData(lock.data);
    if (!kept || last_run.stat.ephemeral_owner != 0) {
      last.unknown = unknown(protocol::kLastRunChild);
    }
    last.success = protocol::NewestSuccess(kept ? kept->success : std::nullopt,
                                           data ? data->last_release : std::nullopt,
                                           protocol::ServerTime(lock.stat.modified_ms));
  }
  if (intervals.since_start) {
    last.start = protocol::ParseStartRecord(last_start.data);
    last.started = std::chrono::milliseconds(last_start.stat.modified_ms);
    // An administrator may have created it empty, to set its ACL.
    const bool is_valid = last.start || last_start.data.empty();
    if (!is_valid || last_start.stat.ephemeral_owner != 0) {
      last.unknown = unknown(protocol::kLastStartChild);
    }
  }
  return last;
}

std::optional<TooSoon> FindTooSoon(const RunIntervals& intervals, const LastRuns& last,
                                   std::chrono::milliseconds now) {
  const auto& [since_success, since_start] = intervals;
  if (since_success && last.success && now - last.success->began < *since_success) {
    return TooSoon{false, last.success->host, now - last.success->began, *since_success};
  }
  if (since_start && last.start && now - last.started < *since_start) {
    return TooSoon{true, last.start->host, now - last.started, *since_start};
  }
  return std::nullopt;
}

}  // namespace zklock::lock
