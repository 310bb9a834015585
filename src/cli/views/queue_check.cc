#include "cli/views/queue_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <utility>

#include "cli/reports/report_reasons.h"
#include "cli/text/duration.h"
#include "cli/text/printable.h"

namespace zklock::cli {
namespace {

// Plugins print one line of a few hundred characters, which ends up in mails and text messages.
constexpr std::size_t kMostProblems = 3;
constexpr std::size_t kWidestPath = 120;
constexpr std::size_t kWidestText = 400;

/// Returns `text` on one line, with `|` escaped, because it would begin the performance data.
std::string OneLine(std::string_view text, std::size_t columns) {
  std::string line;
  for (const char letter : Printable(text, columns)) {
    line += letter == '|' ? std::string("\\x7c") : std::string(1, letter);
  }
  return line;
}

std::string_view StateWord(CheckState state) {
  constexpr std::array<std::string_view, 4> kWords = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};
  return kWords.at(static_cast<std::size_t>(state));
}

/// Returns how bad a state is. A known problem matters more than an unknown state.
int Severity(CheckState state) {
  constexpr std::array<int, 4> kSeverities = {0, 2, 3, 1};
  return kSeverities.at(static_cast<std::size_t>(state));
}

std::string Span(std::int64_t milliseconds) {
  return FormatDuration(std::chrono::milliseconds(milliseconds));
}

/// The limit that `value` exceeds.
struct Exceeded {
  CheckState state;
  std::int64_t limit;
};
std::optional<Exceeded> Exceeds(std::int64_t value, const CheckLimit& limit) {
  if (value > limit.critical) return Exceeded{CheckState::kCritical, limit.critical};
  if (limit.warning && value > *limit.warning) {
    return Exceeded{CheckState::kWarning, *limit.warning};
  }
  return std::nullopt;
}

// Texts about `oldest`, which has been in its state for `span`.
using Oldest = QueueTimes::Oldest;
std::string By(const Oldest& oldest) {
  return oldest.contender.empty() ? "" : " by " + oldest.contender;
}
std::string HeldText(const Oldest& oldest, const std::string& span) {
  return fmt::format("held for {}{}", span, By(oldest));
}
std::string ReservedText(const Oldest& oldest, const std::string& span) {
  return fmt::format("reserved {} ago for {}", span, oldest.contender);
}
std::string WaitText(const Oldest& oldest, const std::string& span) {
  return fmt::format("one has waited for {}{}", span, By(oldest));
}

CheckResult ResultOf(CheckState state, const std::string& text, const std::string& data) {
  return {state,
          fmt::format("{} - {}{}{}\n", StateWord(state), text, data.empty() ? "" : " | ", data)};
}

}  // namespace

CheckResult UnknownCheck(std::string_view why) {
  return ResultOf(CheckState::kUnknown, OneLine(why, kWidestText), "");
}

void QueueCheck::Largest::Take(std::int64_t more) { value = std::max(value.value_or(0), more); }

void QueueCheck::OnLock(const lock::LockSurvey& lock) {
  times_.emplace(lock);
  deadlocks_.BeginLock(lock.path);
  path_ = OneLine(lock.path, kWidestPath);
  has_unread_ = false;
  blocking_.clear();
}

void QueueCheck::OnEntry(const lock::QueueEntry& entry) {
  const ContenderView view = times_->Add(entry);
  if (blocking_.empty()) blocking_ = view.blocking;
  deadlocks_.Add(view);
  has_unread_ = has_unread_ || !view.readable;
  if (!view.overdue || !view.Holds()) return;
  const std::string why =
      view.reserved->is_incomplete
          ? "has lost a permit"
          : "is overdue by " + Span(MillisecondsSince(view.reserved->until->count(), now_ms_));
  Add(CheckState::kWarning, fmt::format("{}: the reservation {} {}", path_,
                                        OneLine(view.reserved->reservation.id, kWidestPath), why));
}

void QueueCheck::OnLockEnd(const lock::LockSurvey& lock) {
  const auto waiting = static_cast<std::int64_t>(lock.waiting);
  ++locks_;
  if (!lock.exists && !limits_.age) missing_.push_back(path_);
  if (lock.held > times_->reservations()) ++locks_held_;
  if (times_->reservations() > 0) ++locks_reserved_;
  all_waiting_ += lock.waiting;

  JudgeTime(HeldText, limits_.held, times_->holder(), held_);
  if (times_->reservations() > 0) {
    JudgeTime(ReservedText, limits_.held, times_->reservation(), held_);
  }
  JudgeTime(WaitText, limits_.wait, times_->waiter(), wait_);
  waiting_.Take(waiting);
  if (limits_.waiting) {
    if (const auto exceeded = Exceeds(waiting, *limits_.waiting)) {
      Add(exceeded->state,
          fmt::format("{}: {} waiting (more than {})", path_, waiting, exceeded->limit));
    }
  }
  if (!blocking_.empty()) {
    Add(CheckState::kCritical,
        fmt::format("{}: {}", path_, OneLine(BlockedText(blocking_), kWidestText)));
  }
  if (lock.incompatible) {
    Add(CheckState::kCritical,
        fmt::format("{}: {}", path_, OneLine(OverlapText(*lock.incompatible), kWidestText)));
  }
  // The unread data may show a deadlock.
  if (has_unread_) Add(CheckState::kUnknown, path_ + ": a contender cannot be read");
  JudgeAge(lock);
  if (limits_.last_run) JudgeLastRun(lock);
}

void QueueCheck::JudgeTime(TimeText text, const std::optional<CheckLimit>& limit,
                           const QueueTimes::Oldest& oldest, Largest& largest) {
  if (oldest.is_unknown) {
    largest.is_unknown = true;
    if (limit) {
      Add(CheckState::kUnknown,
          fmt::format("{}: {}: a contender cannot be read", path_, text({}, "an unknown time")));
      has_unread_ = false;
    }
  }
  const std::int64_t span = oldest.since_ms ? MillisecondsSince(*oldest.since_ms, now_ms_) : 0;
  if (oldest.since_ms || !oldest.is_unknown) largest.Take(span);
  if (!limit) return;
  if (const auto exceeded = Exceeds(span, *limit)) {
    Add(exceeded->state,
        fmt::format("{}: {} (more than {})", path_, OneLine(text(oldest, Span(span)), kWidestPath),
                    Span(exceeded->limit)));
  }
}

void QueueCheck::JudgeAge(const lock::LockSurvey& lock) {
  const KnownSuccess success = LastSuccessOf(lock, times_->last_release());
  std::optional<std::int64_t> age;
  if (success.began_ms) age = MillisecondsSince(*success.began_ms, now_ms_);
  if (age) age_.Take(*age);
  if (!success.is_certain && !age) age_.is_unknown = true;

  std::string use = lock.exists ? "free" : "free (it does not exist)";
  const auto text = [this](TimeText of, const QueueTimes::Oldest& oldest) {
    return of(oldest, Span(MillisecondsSince(*oldest.since_ms, now_ms_)));
  };
  if (lock.held > times_->reservations()) {
    use = times_->holder().since_ms ? text(HeldText, times_->holder()) : "held";
  }
  if (times_->reservations() > 0) {
    const std::string reserved = text(ReservedText, times_->reservation());
    use = lock.held > times_->reservations() ? use + ", " + reserved : reserved;
  }
  if (lock.waiting != 0) use += fmt::format(", {} waiting", lock.waiting);
  if (age) use += fmt::format(", last success began {} ago", Span(*age));
  if (single_.empty()) single_ = fmt::format("{}: {}", path_, OneLine(use, kWidestText));

  if (!limits_.age) return;
  const auto exceeded = age ? Exceeds(*age, *limits_.age) : std::nullopt;
  if (age && !exceeded) return;
  if (!success.is_certain) {
    return Add(CheckState::kUnknown,
               fmt::format("{}: the record of its last success cannot be read", path_));
  }
  if (!age) {
    return Add(CheckState::kCritical, fmt::format("{}: no success is known{}", path_,
                                                  lock.exists ? "" : " (it does not exist)"));
  }
  Add(exceeded->state, fmt::format("{}: the last success began {} ago (more than {})", path_,
                                   Span(*age), Span(exceeded->limit)));
}

void QueueCheck::JudgeLastRun(const lock::LockSurvey& lock) {
  const KnownRuns runs = RunsOf(lock, times_->last_release());
  if (!runs.is_certain) {
    return Add(CheckState::kUnknown, fmt::format("{}: its runs cannot be read", path_));
  }
  if (!runs.last || !runs.last->IsBad()) return;
  const lock::RunRecord& run = runs.last->run;
  const bool is_lost = runs.last->state == RunState::kLost;
  const std::string end = is_lost ? "was lost" : fmt::format("failed with status {}", *run.status);
  const std::string host = run.host.empty() ? "" : " on " + OneLine(run.host, kWidestPath);
  Add(CheckState::kCritical,
      fmt::format("{}: the last recorded run {} (it began {} ago{})", path_, end,
                  Span(MillisecondsSince(run.began.count(), now_ms_)), host));
}

void QueueCheck::EndPath(const std::string& path, const std::vector<std::string>& unlistable) {
  if (!unlistable.empty()) {
    const std::size_t more = unlistable.size() - 1;
    const std::string others = more == 0 ? "" : fmt::format(" and {} more", more);
    AddUnknown(fmt::format("not authorised to list {}{}",
                           Printable(unlistable.front(), kWidestPath), others));
  } else if (locks_ == locks_before_) {
    const lock::LockSurvey free{.path = path};
    OnLock(free);
    OnLockEnd(free);
  }
  locks_before_ = locks_;
}

void QueueCheck::AddUnknown(std::string_view why) {
  Add(CheckState::kUnknown, OneLine(why, kWidestText));
}

std::string QueueCheck::Summary() const {
  if (locks_ == 1) return single_;
  const std::string reserved =
      locks_reserved_ == 0 ? "" : fmt::format(", {} reserved", locks_reserved_);
  return fmt::format("{} locks, {} held{}, {} waiting", locks_, locks_held_, reserved,
                     all_waiting_);
}

/// Returns "; /jobs/typo does not exist", since a name may be misspelt. For a single LOCK, the
/// summary says so.
std::string QueueCheck::Missing() const {
  std::string text;
  for (std::size_t i = 0; i < std::min(missing_.size(), kMostProblems); ++i) {
    text += (i == 0 ? "; " : ", ") + missing_[i];
  }
  if (missing_.size() > kMostProblems) {
    text += fmt::format(" and {} more", missing_.size() - kMostProblems);
  }
  return text + (missing_.empty()       ? ""
                 : missing_.size() == 1 ? " does not exist"
                                        : " do not exist");
}

std::string QueueCheck::PerformanceData() const {
  std::string text;
  const auto add = [&](std::string_view label, const Largest& largest,
                       const std::optional<CheckLimit>& limit, bool is_time) {
    const auto number = [&](std::int64_t value) {
      return is_time ? SecondsText(value) : std::to_string(value);
    };
    if (!largest.value && !largest.is_unknown) return;
    const std::string value =
        largest.value ? number(*largest.value) + (is_time ? "s" : "") : std::string("U");
    const std::string warning = limit && limit->warning ? number(*limit->warning) : "";
    const std::string critical = limit ? number(limit->critical) : "";
    text +=
        fmt::format("{}'{}'={};{};{};0;", text.empty() ? "" : " ", label, value, warning, critical);
  };
  add("held", held_, limits_.held, true);
  add("wait", wait_, limits_.wait, true);
  add("waiting", waiting_, limits_.waiting, false);
  add("age", age_, limits_.age, true);
  add("locks", {.value = static_cast<std::int64_t>(locks_)}, std::nullopt, false);
  return text;
}

CheckResult QueueCheck::Result() const {
  const std::string data = locks_ == 0 ? "" : PerformanceData();
  // Deadlocks first: they do not end by themselves.
  std::vector<Problem> worst_first;
  for (const Deadlock& deadlock : deadlocks_.Find()) {
    worst_first.push_back(
        {CheckState::kCritical, OneLine("deadlock: " + deadlock.Text(), kWidestText)});
  }
  worst_first.insert(worst_first.end(), problems_.begin(), problems_.end());
  if (worst_first.empty()) {
    return ResultOf(CheckState::kOk, Summary() + (locks_ == 1 ? "" : Missing()), data);
  }
  std::stable_sort(worst_first.begin(), worst_first.end(), [](const Problem& a, const Problem& b) {
    return Severity(a.state) > Severity(b.state);
  });
  std::string text;
  for (std::size_t i = 0; i < std::min(worst_first.size(), kMostProblems); ++i) {
    text += (i == 0 ? "" : "; ") + worst_first[i].text;
  }
  if (worst_first.size() > kMostProblems) {
    text += fmt::format("; and {} more", worst_first.size() - kMostProblems);
  }
  return ResultOf(worst_first.front().state, text + Missing(), data);
}

}  // namespace zklock::cli
