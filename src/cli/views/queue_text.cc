#include "cli/views/queue_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "cli/reports/report_reasons.h"
#include "cli/text/duration.h"
#include "cli/text/history_view.h"
#include "cli/text/printable.h"
#include "protocol/lock_path.h"
#include "protocol/run_records.h"

namespace zklock::cli {
namespace {

constexpr std::string_view kNotKnown = "-";
constexpr std::string_view kDeadlock = "deadlock: these wait for each other";
constexpr std::size_t kMostIgnored = 8;
constexpr std::size_t kPage = 64;
// The most lines about contenders that were asked to leave; neighbours in the queue share a line.
constexpr std::size_t kMostAsked = 3;
// Room for the reason for a reservation, which matters more than any other column but the state.
constexpr std::size_t kLeastReason = 48;
// Room for "any of 3: " and the beginning of the command.
constexpr std::size_t kLeastAny = 16;
constexpr std::size_t kMostRuns = 3;
using enum Column::Align;

std::string OrDash(const std::optional<std::string>& text) {
  return text && !text->empty() ? *text : std::string(kNotKnown);
}

std::string OrDash(const std::optional<bool>& answer) {
  return answer ? (*answer ? "yes" : "no") : std::string(kNotKnown);
}

template <typename Number>
std::string OrDash(const std::optional<Number>& number) {
  return number ? std::to_string(*number) : std::string(kNotKnown);
}

Tone ToneOf(const ContenderView& contender) {
  switch (contender.state) {
    case ContenderState::kHeld:
      return Tone::kHeld;
    case ContenderState::kReserved:
      return contender.overdue ? Tone::kBad : Tone::kHeld;
    case ContenderState::kWaiting:
      return Tone::kWaiting;
    case ContenderState::kNoContender:
      break;
  }
  return Tone::kFaint;
}

/// Returns the command, or the program that created the contender; for a reservation, its purpose.
std::string CommandText(const ContenderView& contender, bool with_year) {
  if (contender.state == ContenderState::kNoContender) return "";
  const lock::ContenderData& data = contender.data;
  std::string text = data.command.value_or("");
  if (contender.reserved) {
    text = ReservationText(*contender.reserved, contender.overdue, with_year);
  } else if (!data.reserve.empty()) {
    // There is usually no command; the purpose of the reservation matters more.
    const std::string reason = data.reserve_reason.empty() ? "" : ": " + data.reserve_reason;
    text = fmt::format("to reserve for {}{}{}", data.reserve, reason,
                       text.empty() ? "" : " (" + text + ")");
  } else if (text.empty()) {
    text = fmt::format("({}{})", ProgramName(contender),
                       contender.readable ? "" : "; no permission to read");
  }
  // First, because the rest of the cell may be cut.
  if (contender.IsAny()) text = fmt::format("any of {}: {}", data.any.size() + 1, text);
  return text;
}

/// Returns "host:pid command [label]"; unknown parts are left out. For a reservation, "reserved: "
/// and its purpose.
std::string HolderText(const ContenderView& contender, bool with_year) {
  std::string command = CommandText(contender, with_year);
  const auto& label = contender.data.label;
  if (label && !label->empty()) command += fmt::format(" [{}]", *label);
  if (contender.reserved) return fmt::format("{}: {}", StateName(contender.state), command);
  const std::string holder = HostAndPid(contender);
  return holder + (holder.empty() ? "" : " ") + command;
}

Table MakeQueueTable(const lock::LockSurvey& lock, const ViewStyle& style) {
  // What an operator needs at three in the morning: who, where, since when, doing what.
  const std::size_t digits = std::to_string(lock.held + lock.waiting).size();
  std::vector<Column> columns{{.title = "POS", .align = kRight, .expect = digits, .dispensable = 3},
                              {.title = "STATE"},
                              {.title = "MODE", .dispensable = 5},
                              {.title = "HOST", .most = kWidestName, .least = 8, .dispensable = 1},
                              {.title = "FOR", .align = kRight, .dispensable = 2},
                              {.title = "LABEL", .least = 10, .dispensable = 4},
                              {.title = "USER", .most = kWidestName, .least = 6, .dispensable = 8},
                              {.title = "PID", .align = kRight, .dispensable = 6},
                              {.title = "SINCE", .align = kRight, .dispensable = 7},
                              {.title = "TOKEN", .align = kRight, .dispensable = 9},
                              {.title = "COMMAND", .least = 8}};
  if (style.with_names) {
    if (style.rows != 0) columns.back().dispensable = 1;
    columns.push_back({.title = "CONTAINED", .dispensable = 10});
    // On a screen each row is one line: see FitRows().
    if (style.rows == 0) columns.push_back({.title = "CONTENDER", .own_line = true});
    if (style.rows != 0) columns.push_back({.title = "CONTENDER", .least = 24});
  }
  return {std::move(columns), style.width, style.colours};
}

Table MakeTreeTable(const ViewStyle& style) {
  return {{{.title = "LOCK", .least = 12},
           {.title = "HELD BY", .least = 12},
           {.title = "WAITING", .align = kRight, .dispensable = 1},
           {.title = "SINCE", .align = kRight, .dispensable = 2}},
          style.width,
          style.colours};
}

std::string Ignored(const std::vector<std::string>& children) {
  std::string text = "not in the queue: ";
  for (std::size_t i = 0; i < std::min(children.size(), kMostIgnored); ++i) {
    text += (i == 0 ? "" : ", ") + Printable(children[i], kWidestName);
  }
  if (children.size() > kMostIgnored) {
    text += fmt::format(" and {} more", children.size() - kMostIgnored);
  }
  return text;
}

/// Returns "held by 1, 2 waiting", "reserved, 2 waiting" or "held by 1, reserved by 1, 0 waiting".
/// `reserved`: how many of the holders are reservations. `are_permits`: the znode is a semaphore's
/// `leases`, which contains the permits but does not show which of them are held.
std::string Use(const lock::LockSurvey& lock, std::size_t reserved, bool are_permits) {
  if (are_permits) {
    return fmt::format("permits; see zklock inspect {}", protocol::ParentOf(lock.path));
  }
  if (!lock.exists) return "free (it does not exist)";
  if (lock.IsSemaphore() && lock.held + lock.waiting != 0) {
    const auto free = lock.FreePermits();
    return PermitsInUse(lock) + (free ? fmt::format(", {} free", *free) : "") +
           fmt::format(", {} waiting", lock.waiting);
  }
  if (lock.IsHeld()) {
    const std::size_t holders = lock.held - std::min(reserved, lock.held);
    std::string use = holders > 0 ? fmt::format("held by {}, ", holders) : "";
    if (reserved == 1 && holders == 0) {
      use = "reserved, ";
    } else if (reserved > 0) {
      use += fmt::format("reserved by {}, ", reserved);
    }
    return use + fmt::format("{} waiting", lock.waiting);
  }
  if (!lock.permit_limit) return "free";
  return fmt::format("free, {} permit{}", *lock.permit_limit, *lock.permit_limit == 1 ? "" : "s");
}

}  // namespace

/// Sums up who waits for whom in as few lines as possible.
class QueueText::Waits {
 public:
  /// `most_groups`: how many groups to keep, if more than `most_lines`.
  Waits(std::size_t most_lines, std::size_t most_groups)
      : most_(most_lines), most_groups_(std::max(most_lines, most_groups)) {}

  void Add(std::size_t position, std::size_t predecessor) {
    if (!groups_.empty()) {
      Group& last = groups_.back();
      const bool follows = position == last.last + 1;
      const bool in_turn = predecessor == position - 1;
      if (follows && predecessor == last.predecessor) {
        ++last.last;
        last.same = true;
        return;
      }
      const bool is_chain = !last.same && last.predecessor == last.first - 1;
      if (follows && in_turn && is_chain) {
        ++last.last;
        return;
      }
      if (follows && is_chain && predecessor == last.last - 1) {
        // The end of the chain and this contender have the same predecessor.
        --last.last;
        return Begin({position - 1, position, predecessor, true});
      }
    }
    Begin({position, position, predecessor, false});
  }

  /// Adds a contender that waits for `take` of the permits that the first `holders` contenders
  /// hold.
  void AddForPermits(std::size_t position, std::size_t take, std::size_t holders) {
    if (holders <= 1) return Add(position, 1);
    for_permits_ = {position, take, holders};
  }

  /// Returns the lines about the contenders up to the position `last`.
  [[nodiscard]] std::vector<std::string> Lines(std::size_t last) const {
    std::vector<std::string> lines;
    if (for_permits_ && for_permits_->position <= last) {
      lines.push_back(fmt::format("{} waits for {} of 1 to {}", for_permits_->position,
                                  for_permits_->take == 1 ? "any" : "one or more",
                                  for_permits_->holders));
    }
    const std::size_t shown = static_cast<std::size_t>(
        std::count_if(groups_.begin(), groups_.end(),
                      [last](const Group& group) { return group.first <= last; }));
    for (std::size_t i = 0; i < std::min(shown, most_); ++i) {
      Group group = groups_[i];
      group.last = std::min(group.last, last);
      if (group.first == group.last) {
        lines.push_back(fmt::format("{} waits for {}", group.first, group.predecessor));
      } else if (group.same) {
        lines.push_back(
            fmt::format("{} to {} wait for {}", group.first, group.last, group.predecessor));
      } else {
        lines.push_back(
            fmt::format("{} to {} wait, each for the one before it", group.first, group.last));
      }
    }
    const std::size_t count = shown < groups_.size() ? shown : count_;
    if (count > most_) {
      lines.push_back(
          fmt::format("and so on, {} times more; --json lists everyone", count - most_));
    }
    return lines;
  }

 private:
  /// The contenders `first` to `last` all wait for the same one, or each for the one before it.
  struct Group {
    std::size_t first;
    std::size_t last;
    std::size_t predecessor;  ///< of the first
    bool same;
  };

  void Begin(const Group& group) {
    ++count_;
    if (groups_.size() > most_groups_) groups_.pop_back();
    groups_.push_back(group);
  }

  std::vector<Group> groups_;  // at most one more than `most_groups_`; that one is not printed
  std::size_t count_ = 0;
  struct ForPermits {
    std::size_t position;
    std::size_t take;
    std::size_t holders;
  };
  std::optional<ForPermits> for_permits_;
  const std::size_t most_;
  const std::size_t most_groups_;
};

std::string DeadlocksText(const std::vector<Deadlock>& deadlocks, const ViewStyle& style) {
  const std::size_t width = style.width == 0 ? std::string::npos : style.width;
  std::string text;
  for (const Deadlock& deadlock : deadlocks) {
    text += "\n" + Paint(Tone::kBad, kDeadlock, style.colours) + "\n";
    for (const auto& [who, lock] : deadlock.holders) {
      text += Printable(fmt::format("  {} holds {}", who, lock), width) + "\n";
    }
  }
  return text;
}

QueueText::QueueText(std::string path, ViewStyle style, TextOutput out)
    : path_(std::move(path)), style_(style), next_style_(style), out_(std::move(out)) {}

QueueText::~QueueText() = default;

void QueueText::OnLock(const lock::LockSurvey& lock) {
  if (!std::exchange(found_, true)) {
    style_ = next_style_;
    locks_ = shown_ = reservations_ = 0;
    oldest_ms_.reset();
    deadlocks_ = {};
  }
  lock_ = lock;
  describer_.emplace(lock);
  first_.reset();
  now_ms_ = style_.now_ms.value_or(MillisecondsNow());
  if (lock.in_tree) {
    deadlocks_.BeginLock(lock.path);
    if (!table_) table_.emplace(MakeTreeTable(style_));
    return;
  }
  table_.emplace(MakeQueueTable(lock, style_));
  shown_ = 0;
  begun_ = false;
  holders_ = reserved_ = 0;
  are_permits_ = false;
  asked_.clear();
  blocking_.clear();
  waits_ = std::make_unique<Waits>(style_.most_waits, style_.rows);
}

void QueueText::OnEntry(const lock::QueueEntry& entry) {
  const ContenderView contender = describer_->Describe(entry);
  if (lock_.in_tree) {
    if (!first_) first_ = contender;
    deadlocks_.Add(contender);
    return;
  }
  are_permits_ |= entry.name.mark == protocol::Mark::kPermit && !lock_.IsSemaphore();
  AddContender(contender);
  if (style_.rows == 0 && table_->rows() >= kPage) PrintPage(lock_);
}

void QueueText::OnLockEnd(const lock::LockSurvey& lock) {
  if (lock.in_tree) {
    AddToTree(lock);
    if (style_.rows == 0 && table_->rows() >= kPage) out_(table_->TakePage());
    return;
  }
  const auto end = [&] { return QueueEnd(lock); };
  const std::string headline = Headline(lock.path, Use(lock, reserved_, are_permits_));
  // An empty line and the titles follow the headline.
  FitRows(static_cast<std::size_t>(std::count(headline.begin(), headline.end(), '\n')) + 2, end);
  PrintPage(lock);
  out_(end());
}

void QueueText::OnEnd() {
  if (!found_) {
    locks_ = 0;  // still counts the LOCKs of the last picture
    out_(Searched(/*is_lock=*/false));
  } else if (lock_.in_tree) {
    const std::vector<Deadlock> deadlocks = deadlocks_.Find();
    const auto end = [&] { return TreeEnd(deadlocks); };
    FitRows(1, end);
    if (table_->rows() > 0) out_(table_->TakePage());
    out_(end());
  }
  found_ = false;
  table_.reset();
}

void QueueText::FitRows(std::size_t above, const std::function<std::string()>& below) {
  constexpr std::size_t kLeastRows = 3;
  while (style_.rows != 0 && table_->rows() > kLeastRows) {
    const std::string text = below();
    const auto lines_below = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    const std::size_t lines = above + table_->rows() + lines_below;
    if (lines <= style_.rows) return;
    const std::size_t excess = std::min(lines - style_.rows, table_->rows() - kLeastRows);
    table_->KeepRows(table_->rows() - excess);
    // Strays are the last rows.
    shown_ = std::min(shown_, table_->rows());
  }
}

void QueueText::AddContender(const ContenderView& contender) {
  const bool counts = contender.state != ContenderState::kNoContender;
  const Tone tone = ToneOf(contender);
  const Tone since = contender.since_exact ? Tone::kPlain : Tone::kFaint;
  std::vector<Cell> cells{
      OrDash(contender.position),
      {std::string(are_permits_ ? kNotKnown : StateName(contender.state)), tone},
      counts ? ModeText(contender) : std::string(kNotKnown),
      OrDash(contender.data.host),
      {For(contender), since},
      OrDash(contender.data.label),
      OrDash(contender.data.user),
      OrDash(contender.data.pid),
      {Since(contender), since},
      OrDash(contender.token),
      CommandText(contender, WithYear())};
  if (contender.IsAny()) cells.back().least = kLeastAny;
  if (contender.reserved) cells.back().least = kLeastReason;
  if (style_.with_names) {
    cells.emplace_back(OrDash(contender.data.contained));
    cells.emplace_back(contender.name);  // nothing else identifies a stray znode
  }
  table_->AddRow(std::move(cells));
  if (counts) ++shown_;
  if (blocking_.empty()) blocking_ = contender.blocking;
  const auto& asked = contender.data.release_request;
  if (contender.position && asked) AddAsked(*contender.position, AskerText(*asked));
  if (contender.Holds()) ++holders_;
  if (contender.state == ContenderState::kReserved) ++reserved_;
  if (!contender.waits_for || are_permits_) return;
  if (contender.waits_for->any_holder) {
    waits_->AddForPermits(*contender.position, contender.take, holders_);
  } else {
    waits_->Add(*contender.position, contender.waits_for->position);
  }
}

void QueueText::AddAsked(std::size_t position, const std::string& by) {
  if (!asked_.empty() && asked_.back().by == by && asked_.back().last + 1 == position) {
    asked_.back().last = position;
  } else if (asked_.size() < kMostAsked) {
    asked_.push_back({by, position, position});
  }
}

void QueueText::AddToTree(const lock::LockSurvey& lock) {
  ++locks_;
  if (first_ && first_->reserved) {
    ++reservations_;
    if (!oldest_ms_ || *first_->since_ms < *oldest_ms_) {
      oldest_ms_ = first_->since_ms;
      oldest_ = lock.path;
    }
  }
  if (!first_ || (style_.rows != 0 && shown_ >= style_.rows)) return;
  ++shown_;
  const bool is_blocked = !first_->blocking.empty();
  std::string holders = lock.IsHeld() ? HolderText(*first_, WithYear()) : "nobody yet";
  if (is_blocked) holders = "nobody; " + BlockedText(first_->blocking);
  if (lock.held > 1) {
    holders = fmt::format("{} and {} more", Printable(holders, kWidestName), lock.held - 1);
  }
  // First, because the rest of the cell may be cut.
  if (lock.IsSemaphore()) holders = PermitsInUse(lock) + ": " + holders;
  table_->AddRow({{lock.path, Tone::kTitle},
                  {holders, first_->overdue || is_blocked ? Tone::kBad : Tone::kPlain},
                  {std::to_string(lock.waiting), lock.waiting == 0 ? Tone::kFaint : Tone::kWaiting},
                  {Since(*first_), first_->since_exact ? Tone::kPlain : Tone::kFaint}});
}

/// Says how many LOCKs are in use below the path that was searched, and how to see others.
std::string QueueText::Searched(bool is_lock) const {
  const std::size_t width = style_.width == 0 ? std::string::npos : style_.width;
  std::string text;
  if (!is_lock) {
    const std::string count = locks_ == 0 ? "no" : std::to_string(locks_);
    text = fmt::format("{} lock{} in use", count, locks_ == 1 ? "" : "s");
    if (path_ != "/") text += fmt::format(" below {}{}", path_, style_.is_root ? " (--root)" : "");
    text = PrintableShort(text, width) + "\n";
  }
  if (style_.is_root && path_ != "/") text += "zklock inspect / shows all locks\n";
  return text;
}

/// Returns the text after the list of LOCKs.
std::string QueueText::TreeEnd(const std::vector<Deadlock>& deadlocks) const {
  std::string text;
  if (shown_ < locks_) {
    const std::string more = fmt::format("... and {} more", locks_ - shown_);
    text += Paint(Tone::kFaint, more, style_.colours) + "\n";
  }
  if (reservations_ > 1) {
    const std::string since = FormatTime(*oldest_ms_, WithYear());
    text += "\n" + Headline(oldest_, "reserved longest, since " + since);
  }
  return text + DeadlocksText(deadlocks, style_) + "\n" + Searched(/*is_lock=*/false);
}

/// Returns "PATH: what". On a narrow terminal, the path is cut a little, or gets its own line.
std::string QueueText::Headline(const std::string& path, const std::string& what) const {
  constexpr std::size_t kLeastPath = 16;
  const std::size_t width = style_.width == 0 ? std::string::npos : style_.width;
  const std::size_t others = DisplayWidth(what) + 2;
  const bool fits = width >= others + std::min(DisplayWidth(Printable(path)), kLeastPath);
  const std::string shown = PrintableShort(path, width - (fits ? others : 1));
  return Paint(Tone::kTitle, shown, style_.colours) + (fits ? ": " : ":\n") +
         Printable(what, width) + "\n";
}

void QueueText::PrintPage(const lock::LockSurvey& lock) {
  std::string text;
  if (!std::exchange(begun_, true)) {
    text = Headline(lock.path, Use(lock, reserved_, are_permits_));
    if (table_->rows() > 0) text += "\n";
  }
  if (table_->rows() > 0) text += table_->TakePage();
  out_(std::move(text));
}

/// Returns the text after the queue.
std::string QueueText::QueueEnd(const lock::LockSurvey& lock) const {
  const std::size_t width = style_.width == 0 ? std::string::npos : style_.width;
  std::string text;
  const auto add = [&](const std::string& line, Tone tone) {
    text += Paint(tone, Printable(line, width), style_.colours) + "\n";
  };
  const std::size_t all = lock.held + lock.waiting;
  if (shown_ < all) add(fmt::format("... and {} more", all - shown_), Tone::kFaint);
  const std::vector<std::string> waits = waits_->Lines(shown_);
  if (!waits.empty()) text += "\n";
  for (const std::string& line : waits) add(line, Tone::kPlain);
  if (!asked_.empty()) text += "\n";
  for (const LeaveRequests& one : asked_) {
    add(one.first == one.last
            ? fmt::format("{} was asked to leave by {}", one.first, one.by)
            : fmt::format("{} to {} were asked to leave by {}", one.first, one.last, one.by),
        Tone::kPlain);
  }
  if (!blocking_.empty()) {
    text += "\n";
    add(BlockedText(blocking_), Tone::kBad);
  }
  if (lock.incompatible) {
    text += "\n";
    add(OverlapText(*lock.incompatible), Tone::kBad);
  }
  std::vector<std::string> ignored = lock.ignored_children;
  std::erase_if(ignored, protocol::IsRecordChild);
  if (!ignored.empty()) {
    text += "\n";
    add(Ignored(ignored), Tone::kFaint);
  }
  const auto history = DescribeHistory(lock);
  const std::vector<RunView> runs = history ? history->runs : std::vector<RunView>();
  const std::string take = RunsTakeText(lock.last_run.value_or(""));
  std::optional<protocol::LastRelease> last = describer_->last_release();
  if (last || !runs.empty()) text += "\n";
  const bool is_kept =
      last && std::any_of(runs.begin(), runs.end(), [&](const RunView& run) {
        return run.run.token == last->record.token && run.state == RunState::kEnded;
      });
  if (is_kept) last.reset();
  if (lock.IsHeld() && !take.empty()) add(take, Tone::kPlain);
  // Later runs have larger tokens.
  const auto add_last = [&](std::string_view name) {
    add(ReleaseText(name, *last), last->record.status == 0 ? Tone::kPlain : Tone::kBad);
    last.reset();
  };
  for (std::size_t i = 0; i < std::min(runs.size(), kMostRuns); ++i) {
    if (last && last->record.token > runs[i].run.token) add_last("run");
    add(RunText(runs[i], WithYear()), runs[i].IsBad() ? Tone::kBad : Tone::kPlain);
  }
  if (last && runs.size() <= kMostRuns) add_last(runs.empty() ? "last recorded run" : "run");
  if (style_.with_names && lock.last_start) {
    if (runs.empty() && !describer_->last_release()) text += "\n";
    add(fmt::format("last start with --once-per: {} on {} (token {})",
                    FormatTime(lock.last_started.count(), WithYear()),
                    Printable(lock.last_start->host, kWidestName), lock.last_start->token),
        Tone::kPlain);
  }
  if (style_.is_root) text += "\n" + Searched(/*is_lock=*/lock.held + lock.waiting != 0);
  return text;
}

std::string QueueText::Since(const ContenderView& contender) const {
  if (!contender.since_ms) return std::string(kNotKnown);
  return (contender.since_exact ? "" : "≥ ") + FormatTime(*contender.since_ms, WithYear());
}

std::string QueueText::For(const ContenderView& contender) const {
  const std::string text = ForText(contender, now_ms_);
  return text.empty() ? std::string(kNotKnown) : text;
}

bool QueueText::WithYear() const {
  return style_.width == 0 || style_.width >= kWideEnoughForYears;
}

}  // namespace zklock::cli
