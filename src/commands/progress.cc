#include "commands/progress.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "process/terminal.h"

namespace zklock::commands {
namespace {

using namespace std::chrono_literals;
using cli::ProgressStyle;

constexpr Duration kRedraw = 1s;
// A shorter wait is not worth a line.
constexpr Duration kFirstLine = 1s;
constexpr Duration kBetweenLines = 1min;
// How long a line that is due waits for what the servers say.
constexpr Duration kLookPatience = 1s;
constexpr Duration kLeastBetweenLooks = 2s;
// Everyone in a long queue looks, and each look costs the queue's length.
constexpr Duration kLookForEachAhead = 50ms;
constexpr std::size_t kUsualWidth = 80;
// At the end of the live line: the terminal shows a key as ^C there, and some terminals begin a new
// line with a character in the last column.
constexpr std::size_t kFreeColumns = 3;

}  // namespace

Screen StandardErrorScreen() {
  return {.width = [] { return process::TerminalWidth(STDERR_FILENO); },
          .is_in_foreground = [] { return process::IsInForeground(STDERR_FILENO); }};
}

ProgressStyle ResolveProgress(ProgressStyle asked, cli::Verbosity verbosity) {
  if (verbosity == cli::Verbosity::kQuiet) return ProgressStyle::kNone;
  if (asked != ProgressStyle::kAuto) return asked;
  return process::CanErase(STDERR_FILENO) ? ProgressStyle::kBar : ProgressStyle::kPlain;
}

Progress::Progress(ProgressStyle style, process::MessageSink& sink, Screen screen,
                   zookeeper::Store& store, const Clock& clock)
    : style_(style), sink_(sink), screen_(std::move(screen)), store_(store), clock_(clock) {}

Progress::~Progress() { interrupted_ ? sink_.ClearLive() : sink_.EraseLive(); }

void Progress::OnEvent(const cli::Event& event) {
  if (style_ == ProgressStyle::kNone) return;
  const TimePoint now = clock_.Now();
  if (const auto* queued = std::get_if<cli::QueuedEvent>(&event)) {
    places_.insert_or_assign(queued->ticket.lock.display_path(), Place{queued->ticket, now});
  } else if (const auto* lost = std::get_if<cli::PlaceLostEvent>(&event)) {
    places_.erase(lost->lock);
    if (lost->lock == lock_) position_.reset();
  } else if (const auto* waiting = std::get_if<cli::WaitingEvent>(&event)) {
    ahead_ = waiting->ahead;
    if (waiting->lock != lock_) WaitFor(waiting->lock);
    if (waiting_since_) return;
    waiting_since_ = now;
    next_show_ = style_ == ProgressStyle::kBar ? now : now + kFirstLine;
  }
}

void Progress::WaitFor(const std::string& lock) {
  lock_ = lock;
  position_.reset();
  look_.reset();
  const auto place = places_.find(lock_);
  if (place != places_.end()) look_.emplace(store_, place->second.ticket.lock);
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
    if (!screen_.is_in_foreground()) return;
    if (now >= next_look_) BeginLook();
    ShowLive();
  } else if (now >= next_look_ && !shows_look_) {
    shows_look_ = true;
    next_show_ = now + kLookPatience;
    BeginLook();
  } else {
    Show();
  }
}

void Progress::BeginLook() {
  const auto place = places_.find(lock_);
  if (place == places_.end() || !look_ || look_->IsUnderWay()) return;
  next_look_ = clock_.Now() +
               std::max(kLeastBetweenLooks, kLookForEachAhead * static_cast<Duration::rep>(ahead_));
  look_->Begin(place->second.ticket.path,
               [this](const std::optional<lock::QueuePosition>& position) { OnLooked(position); });
}

void Progress::OnLooked(const std::optional<lock::QueuePosition>& position) {
  const TimePoint now = clock_.Now();
  const auto place = places_.find(lock_);
  if (position && place != places_.end()) {
    ahead_ = position->ahead;
    const TimePoint made =
        place->second.queued_at - position->first_older_by.value_or(Duration::zero());
    if (!position_ || position_->first != position->first) {
      // Somebody else held at the last look: this one holds since then at the earliest.
      held_since_ = position_ ? std::max(glanced_at_, made) : made;
    }
    glanced_at_ = now;
    position_ = position;
  }
  if (style_ == ProgressStyle::kBar) {
    if (screen_.is_in_foreground()) ShowLive();
  } else if (shows_look_) {
    Show();
  }
}

void Progress::Show() {
  shows_look_ = false;
  sink_.WriteLine("zklock: " + cli::PlainProgress(View(), !std::exchange(told_, true)));
  next_show_ = clock_.Now() + kBetweenLines;
}

void Progress::ShowLive() {
  const std::size_t width = screen_.width();
  const std::size_t columns = width == 0 ? kUsualWidth : width;
  sink_.DrawLive(cli::LiveProgress(View(), std::max(columns, kFreeColumns) - kFreeColumns));
}

cli::ProgressView Progress::View() const {
  const TimePoint now = clock_.Now();
  cli::ProgressView view{.lock = lock_,
                         .waited = now - *waiting_since_,
                         .place = ahead_ + 1,
                         .connected = store_.IsConnected()};
  if (position_) {
    view.holder = position_->first;
    view.holder_data = position_->first_data;
    view.more_holders = position_->holders - std::min<std::size_t>(position_->holders, 1);
    if (position_->first_older_by) view.held_at_most = now - held_since_;
  }
  return view;
}

}  // namespace zklock::commands
