#include "commands/run/progress.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "cli/text/run_messages.h"
#include "process/loop/terminal.h"

namespace zklock::commands {
namespace {

using namespace std::chrono_literals;
using cli::ProgressStyle;

constexpr Duration kRedraw = 1s;
// How long a line that is due waits for the servers' answers.
constexpr Duration kLookupPatience = 1s;
constexpr Duration kLeastBetweenLookups = 2s;
// Every waiter looks up its position, and the cost of each lookup grows with the queue.
constexpr Duration kLookupPerContenderAhead = 50ms;
constexpr std::size_t kUsualWidth = 80;
// Kept free at the end of the live line: the terminal echoes ^C there, and some terminals begin a
// new line after a character in the last column.
constexpr std::size_t kFreeColumns = 3;

}  // namespace

TerminalInfo StandardErrorTerminal() {
  return {.width = [] { return process::TerminalWidth(STDERR_FILENO); },
          .is_in_foreground = [] { return process::IsInForeground(STDERR_FILENO); }};
}

ProgressStyle ResolveProgress(ProgressStyle asked, cli::Verbosity verbosity) {
  if (verbosity == cli::Verbosity::kQuiet) return ProgressStyle::kNone;
  if (asked != ProgressStyle::kAuto) return asked;
  // timeout(1) puts its command into a process group of its own, which is then in the background.
  const bool is_screen = process::CanErase(STDERR_FILENO) && process::IsInForeground(STDERR_FILENO);
  return is_screen ? ProgressStyle::kBar : ProgressStyle::kPlain;
}

Progress::Progress(ProgressStyle style, process::MessageSink& sink, TerminalInfo terminal,
                   zookeeper::Store& store, const Clock& clock, PlainLines lines)
    : style_(style),
      sink_(sink),
      terminal_(std::move(terminal)),
      store_(store),
      clock_(clock),
      lines_(std::move(lines)),
      began_(clock.Now()) {
  if (style_ == ProgressStyle::kBar) next_show_ = began_ + kRedraw;
}

Progress::~Progress() {
  if (!lines_.write) interrupted_ ? sink_.ClearLive() : sink_.EraseLive();
}

void Progress::OnEvent(const cli::Event& event) {
  if (style_ == ProgressStyle::kNone) return;
  const TimePoint now = clock_.Now();
  if (std::holds_alternative<cli::ConnectedEvent>(event)) {
    if (!waiting_since_) sink_.EraseLive();
  } else if (const auto* queued = std::get_if<lock::QueuedEvent>(&event)) {
    tickets_.insert_or_assign(queued->ticket.lock.display_path(),
                              QueuedTicket{queued->ticket, now});
  } else if (const auto* lost = std::get_if<lock::PlaceLostEvent>(&event)) {
    tickets_.erase(lost->lock);
    if (lost->lock == lock_) position_.reset();
  } else if (const auto* first = std::get_if<lock::FirstEvent>(&event)) {
    if (first->lock != lock_) return;
    is_first_ = true;
    ahead_ = 0;
    waiting_ = 0;
    position_.reset();
  } else if (const auto* waiting = std::get_if<lock::WaitingEvent>(&event)) {
    const auto own = tickets_.find(waiting->lock);
    if (own != tickets_.end()) own->second.ahead = waiting->ahead;
    const bool is_another = waiting_since_ && waiting->lock != lock_;
    if (is_another && alternatives_ > 1 && waiting->ahead.contenders >= ahead_) return;
    WaitFor(waiting->lock, waiting->ahead);
    if (waiting_since_) return;
    waiting_since_ = now;
    next_show_ = style_ == ProgressStyle::kBar ? now : now + lines_.first;
  } else if (const auto* left = std::get_if<lock::QueueLeftEvent>(&event)) {
    OnLeft(*left);
  }
}

/// Shows the shortest of the remaining queues in place of the one that was left.
void Progress::OnLeft(const lock::QueueLeftEvent& left) {
  tickets_.erase(left.lock);
  alternatives_ = left.open.size();
  if (!waiting_since_ || left.lock != lock_) return;
  std::string shortest = left.open.front();
  lock::Ahead ahead{.contenders = std::numeric_limits<std::size_t>::max()};  // not known
  for (const auto& [lock, queued] : tickets_) {
    if (!queued.ahead || queued.ahead->contenders >= ahead.contenders) continue;
    shortest = lock;
    ahead = *queued.ahead;
  }
  WaitFor(shortest, ahead);
}

void Progress::WaitFor(const std::string& lock, const lock::Ahead& ahead) {
  ahead_ = ahead.contenders;
  waiting_ = ahead.waiting;
  is_first_ = false;
  if (lock == lock_) return;
  lock_ = lock;
  position_.reset();
  lookup_.reset();
  const auto queued = tickets_.find(lock_);
  if (queued != tickets_.end()) lookup_.emplace(store_, queued->second.ticket.lock);
}

void Progress::Pause() {
  sink_.EraseLive();
  if (waiting_since_ && style_ == ProgressStyle::kBar) next_show_ = clock_.Now();
}

EventSource::Interest Progress::GetInterest() { return {.wake = next_show_}; }

void Progress::OnReady(short /*revents*/) {
  const TimePoint now = clock_.Now();
  if (now < next_show_) return;
  if (style_ == ProgressStyle::kBar) {
    next_show_ = now + kRedraw;
    if (!terminal_.is_in_foreground()) return;
    if (!waiting_since_) return ShowSearch();
    if (now >= next_lookup_) BeginLookup();
    ShowLive();
  } else if (now >= next_lookup_ && !shows_lookup_ && !is_first_) {
    shows_lookup_ = true;
    next_show_ = now + kLookupPatience;
    BeginLookup();
  } else {
    Show();
  }
}

void Progress::BeginLookup() {
  const auto queued = tickets_.find(lock_);
  if (queued == tickets_.end() || !lookup_ || lookup_->IsUnderWay() || is_first_) return;
  next_lookup_ =
      clock_.Now() +
      std::max(kLeastBetweenLookups, kLookupPerContenderAhead * static_cast<Duration::rep>(ahead_));
  lookup_->Begin(
      queued->second.ticket.path,
      [this](const std::optional<lock::QueuePosition>& position) { OnLookedUp(position); });
}

void Progress::OnLookedUp(const std::optional<lock::QueuePosition>& position) {
  const TimePoint now = clock_.Now();
  const auto queued = tickets_.find(lock_);
  if (!position || is_first_) {
    position_.reset();  // what was seen before may no longer be true
  } else if (queued != tickets_.end()) {
    ahead_ = position->ahead;
    waiting_ = position->waiting;
    const TimePoint made =
        queued->second.queued_at - position->first_older_by.value_or(Duration::zero());
    if (!position_ || position_->first != position->first) {
      // Another contender was first at the last lookup: this one cannot have held the lock before.
      held_since_ = position_ ? std::max(position_at_, made) : made;
    }
    position_at_ = now;
    position_ = position;
  }
  if (style_ == ProgressStyle::kBar) {
    if (terminal_.is_in_foreground()) ShowLive();
  } else if (shows_lookup_) {
    Show();
  }
}

void Progress::OnAcquired(const std::string& locks) {
  if (!has_shown_) return;
  sink_.WriteLine("zklock: " + cli::AcquiredLine(locks, clock_.Now() - *waiting_since_));
}

void Progress::Show() {
  shows_lookup_ = false;
  has_shown_ = true;
  const std::string line = cli::ProgressLine(View());
  lines_.write ? lines_.write(line) : sink_.WriteLine("zklock: " + line);
  next_show_ = clock_.Now() + lines_.between;
}

void Progress::ShowLive() { sink_.DrawLive(cli::LiveProgress(View(), LiveColumns())); }

void Progress::ShowSearch() {
  if (!store_.IsConnected()) sink_.DrawLive(cli::LiveSearch(clock_.Now() - began_, LiveColumns()));
}

std::size_t Progress::LiveColumns() const {
  const std::size_t width = terminal_.width();
  return std::max(width == 0 ? kUsualWidth : width, kFreeColumns) - kFreeColumns;
}

cli::ProgressView Progress::View() const {
  const TimePoint now = clock_.Now();
  const std::string lock =
      alternatives_ > 1 ? fmt::format(cli::message::kOneOfSeveral, lock_, alternatives_) : lock_;
  cli::ProgressView view{.lock = lock,
                         .waited = now - *waiting_since_,
                         .ahead = waiting_,
                         .is_first = is_first_,
                         .connected = store_.IsConnected()};
  if (position_) {
    view.holder = position_->first;
    view.holder_data = position_->first_data;
    view.reserved = position_->first_reserved;
    view.last_run = position_->last_run;
    view.more_holders = position_->holders - std::min<std::size_t>(position_->holders, 1);
    if (position_->first_older_by) view.held_for = now - held_since_;
  }
  return view;
}

}  // namespace zklock::commands
