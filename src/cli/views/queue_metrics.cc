#include "cli/views/queue_metrics.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace zklock::cli {
namespace {

struct Definition {
  std::string_view name;
  std::string_view help;
};

/// In the order of QueueMetrics::Metric.
constexpr std::array<Definition, 17> kDefinitions = {{
    {"zklock_held", "Whether any contender holds the lock, not counting reservations."},
    {"zklock_holders", "How many contenders hold the lock, not counting reservations."},
    {"zklock_waiting", "How many contenders wait for the lock."},
    {"zklock_permits", "How many permits the semaphore has."},
    {"zklock_permits_used", "How many permits of the semaphore are used; a run may take several."},
    {"zklock_held_seconds", "How long the oldest holder has held the lock, at most."},
    {"zklock_oldest_wait_seconds", "How long the oldest waiter has waited."},
    {"zklock_last_run_end_timestamp_seconds", "When the last recorded run under the lock ended."},
    {"zklock_last_run_duration_seconds", "How long the command of the last recorded run took."},
    {"zklock_last_run_status", "The exit status of the last recorded run, as a shell shows it."},
    {"zklock_last_run_lost", "Whether the last recorded run has no recorded end."},
    {"zklock_lost_runs", "How many of the runs in the history were lost."},
    {"zklock_last_success_timestamp_seconds", "When the last successful run under the lock began."},
    {"zklock_reserved", "For how many IDs the lock is reserved."},
    {"zklock_reservation_start_timestamp_seconds", "When the reservation was made."},
    {"zklock_reservation_end_timestamp_seconds", "When the reservation ends by itself."},
    {"zklock_deadlocked", "How many contenders of the lock are in a deadlock."},
}};

std::string Head(const Definition& metric) {
  return fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n", metric.name, metric.help);
}

}  // namespace

std::string EscapedLabel(std::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const auto character = DecodeUtf8(text);
    const std::string_view bytes = text.substr(0, character ? character->size : 1);
    text.remove_prefix(bytes.size());
    if (!character) {
      escaped += "\uFFFD";
    } else if (bytes == "\n") {
      escaped += "\\n";
    } else if (bytes == "\\" || bytes == "\"") {
      escaped.append("\\").append(bytes);
    } else {
      escaped += bytes;
    }
  }
  return escaped;
}

void QueueMetrics::Add(Metric metric, std::string_view value, std::string_view reservation) {
  std::string& samples = samples_.at(metric);
  samples.append(kDefinitions.at(metric).name).append("{lock=\"").append(label_).append("\"");
  if (!reservation.empty()) samples.append(",id=\"").append(reservation).append("\"");
  samples.append("} ").append(value).append("\n");
}

void QueueMetrics::OnLock(const lock::LockSurvey& lock) {
  times_.emplace(lock);
  deadlocks_.BeginLock(lock.path);
  locks_.push_back(lock.path);
  label_ = EscapedLabel(lock.path);
  reservations_.clear();
}

void QueueMetrics::OnEntry(const lock::QueueEntry& entry) {
  const ContenderView view = times_->Add(entry);
  deadlocks_.Add(view);
  if (view.state != ContenderState::kReserved) return;
  const std::string id = EscapedLabel(view.reserved->reservation.id);
  if (!reservations_.insert(id).second) return;
  Add(kReservationStart, SecondsText(view.reserved->since.count()), id);
  if (view.reserved->until) Add(kReservationEnd, SecondsText(view.reserved->until->count()), id);
}

void QueueMetrics::OnLockEnd(const lock::LockSurvey& lock) {
  const std::size_t holders = lock.held - std::min(times_->reservations(), lock.held);
  Add(kHeld, holders != 0 ? "1" : "0");
  Add(kHolders, std::to_string(holders));
  Add(kWaiting, std::to_string(lock.waiting));
  if (lock.permit_limit) Add(kPermits, std::to_string(*lock.permit_limit));
  if (lock.IsSemaphore()) Add(kPermitsUsed, std::to_string(lock.used));
  const auto add_time = [this](Metric metric, const QueueTimes::Oldest& oldest) {
    if (!oldest.since_ms && oldest.is_unknown) return;
    Add(metric, SecondsText(oldest.since_ms ? MillisecondsSince(*oldest.since_ms, now_ms_) : 0));
  };
  add_time(kHeldSeconds, times_->holder());
  add_time(kOldestWait, times_->waiter());
  const auto& last = times_->last_release();
  const KnownRuns runs = RunsOf(lock, last);
  if (runs.last) {
    const lock::RunRecord& run = runs.last->run;
    const bool is_lost = runs.last->state == RunState::kLost;
    Add(kLastRunLost, is_lost ? "1" : "0");
    if (!is_lost) Add(kLastRunStatus, std::to_string(*run.status));
    if (!is_lost && run.duration) {
      Add(kLastRunEnd, SecondsText((run.began + *run.duration).count()));
      Add(kLastRunDuration, SecondsText(run.duration->count()));
    }
  }
  if (runs.is_certain) Add(kLostRuns, std::to_string(runs.lost));
  const KnownSuccess success = LastSuccessOf(lock, last);
  if (success.began_ms) Add(kLastSuccess, SecondsText(*success.began_ms));
  Add(kReserved, std::to_string(reservations_.size()));
}

void QueueMetrics::OnEnd() {
  std::map<std::string, std::size_t> deadlocked;
  for (const Deadlock& deadlock : deadlocks_.Find()) {
    for (const auto& [lock, contenders] : deadlock.contenders) deadlocked[lock] += contenders;
  }
  for (const std::string& lock : locks_) {
    label_ = EscapedLabel(lock);
    Add(kDeadlocked, std::to_string(deadlocked[lock]));
  }
}

std::string QueueMetrics::Text(std::size_t unlistable) const {
  std::string text;
  for (std::size_t i = 0; i < kDefinitions.size(); ++i) {
    text += Head(kDefinitions.at(i)) + samples_.at(i);
  }
  constexpr Definition kUnlistable = {"zklock_unlistable_znodes",
                                      "Znodes that cannot be listed: locks there are missing."};
  text += Head(kUnlistable) + fmt::format("{} {}\n", kUnlistable.name, unlistable);
  return text;
}

}  // namespace zklock::cli
