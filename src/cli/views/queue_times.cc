#include "cli/views/queue_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "cli/text/printable.h"
#include "protocol/run_records.h"

namespace zklock::cli {

KnownSuccess LastSuccessOf(const lock::LockSurvey& lock,
                           const std::optional<protocol::LastRelease>& last) {
  KnownSuccess known{.is_certain = lock.readable && !lock.last_run_refused};
  std::optional<protocol::LastSuccess> kept;
  if (lock.last_run) {
    if (const auto data = protocol::ParseLastRunData(*lock.last_run)) {
      kept = data->success;
    } else {
      known.is_certain = false;
    }
  }
  // A run begins before its success is recorded. A recorded begin after that is wrong, and would
  // prevent an alert for as long as it lies in the future.
  if (kept) {
    kept->began = std::min(kept->began, protocol::ServerTime(lock.last_run_stat.modified_ms));
  }
  std::optional<protocol::ReleaseRecord> record;
  if (last) record = last->record;
  const auto newest =
      protocol::NewestSuccess(kept, record, protocol::ServerTime(last ? last->written_ms : 0));
  if (newest) known.began_ms = newest->began.count();
  return known;
}

KnownRuns RunsOf(const lock::LockSurvey& lock, const std::optional<protocol::LastRelease>& last) {
  const auto history = DescribeHistory(lock);
  KnownRuns known{.is_certain = lock.readable && history.has_value()};
  if (history) {
    for (const RunView& view : history->runs) {
      const bool is_lost = view.state == RunState::kLost;
      const bool has_status = view.state == RunState::kEnded && view.run.status;
      if (is_lost) ++known.lost;
      if (!known.last && (is_lost || has_status)) known.last = view;
    }
  }
  // Later runs have larger tokens.
  const bool is_run = last && !last->record.is_reservation;
  if (is_run && (!known.last || last->record.token >= known.last->run.token)) {
    const protocol::ReleaseRecord& record = last->record;
    known.last = {.run = {.end = lock::RunRecord::End::kEnded,
                          .began = protocol::ServerTime(last->written_ms) - record.duration,
                          .duration = record.duration,
                          .status = record.status,
                          .host = record.host,
                          .token = record.token,
                          .mode = record.mode},
                  .state = RunState::kEnded};
  }
  return known;
}

ContenderView QueueTimes::Add(const lock::QueueEntry& entry) {
  ContenderView view = describer_.Describe(entry);
  if (view.state == ContenderState::kNoContender) return view;
  const bool is_reservation = view.state == ContenderState::kReserved;
  if (is_reservation) ++reservations_;
  Oldest& oldest = is_reservation ? reservation_ : view.Holds() ? holder_ : waiter_;
  if (!view.since_ms) {
    oldest.is_unknown = true;
  } else if (!oldest.since_ms || *view.since_ms < *oldest.since_ms) {
    oldest.since_ms = view.since_ms;
    const lock::ContenderData& data = view.data;
    const std::string name = view.reserved ? view.reserved->reservation.id
                             : data.host && data.pid
                                 ? fmt::format("pid {} on {}", *data.pid, *data.host)
                                 : data.host.value_or("");
    oldest.contender = Printable(name, kWidestForeign);
  }
  return view;
}

std::string SecondsText(std::int64_t milliseconds) {
  const bool is_negative = milliseconds < 0;
  const std::uint64_t size = is_negative ? 0 - static_cast<std::uint64_t>(milliseconds)
                                         : static_cast<std::uint64_t>(milliseconds);
  std::string text = fmt::format("{}{}", is_negative ? "-" : "", size / 1000);
  if (size % 1000 != 0) text += fmt::format(".{:03}", size % 1000);
  return text;
}

}  // namespace zklock::cli
