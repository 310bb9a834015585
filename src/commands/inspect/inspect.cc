#include "commands/inspect/inspect.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/exit_status.h"
#include "cli/reports/report_queue.h"
#include "cli/text/printable.h"
#include "cli/text/queue_messages.h"
#include "cli/text/screen.h"
#include "cli/text/table.h"
#include "cli/views/history_text.h"
#include "cli/views/queue_dot.h"
#include "cli/views/queue_json.h"
#include "cli/views/queue_text.h"
#include "cli/views/wait_graph.h"
#include "commands/inspect/monitoring.h"
#include "commands/inspect/own_locks.h"
#include "commands/inspect/servers_report.h"
#include "commands/session/console.h"
#include "commands/session/output.h"
#include "commands/session/short_session.h"
#include "lock/survey/survey.h"
#include "process/loop/alarm.h"
#include "process/loop/terminal.h"
#include "protocol/lock_path.h"
#include "protocol/semaphore.h"

namespace zklock::commands {
namespace {

using Form = cli::InspectOptions::Form;
using Scope = lock::SurveyRequest::Scope;

/// How many contenders of each LOCK are read for the list of a tree. The list shows only one of
/// them; the others are read to find deadlocks. The limit keeps the list fast however long the
/// queues are.
constexpr std::size_t kMostForDeadlocks = 64;
constexpr Duration kShortOutage = std::chrono::seconds(1);

/// For --quiet: whether the lock is held.
class HeldSink final : public lock::SurveySink {
 public:
  void OnLock(const lock::LockSurvey& lock) override { is_held_ = is_held_ || lock.IsHeld(); }
  [[nodiscard]] bool is_held() const { return is_held_; }

 private:
  bool is_held_ = false;
};

/// Passes a survey on to a view, as fast as the output has room. At the end of the survey, calls
/// `on_end`, if any.
class Backpressure final : public lock::SurveySink {
 public:
  Backpressure(lock::SurveySink& view, const Output& output, std::function<void()> on_end = {})
      : view_(view), output_(output), on_end_(std::move(on_end)) {}
  void OnLock(const lock::LockSurvey& lock) override { view_.OnLock(lock); }
  void OnEntry(const lock::QueueEntry& entry) override { view_.OnEntry(entry); }
  void OnLockEnd(const lock::LockSurvey& lock) override { view_.OnLockEnd(lock); }
  void OnEnd() override {
    view_.OnEnd();
    if (on_end_) on_end_();
  }
  [[nodiscard]] bool WantsMore() const override { return !output_.IsFull(); }

 private:
  lock::SurveySink& view_;
  const Output& output_;
  const std::function<void()> on_end_;
};

/// Passes the survey of one LOCK on to a view, and finds two kinds of other LOCKs: those whose
/// holders' commands have queued for this one, and those that such a command waits for as well
/// (--any). Then receives the surveys of these LOCKs, to find deadlocks among all of them.
class NestedQueues final : public lock::SurveySink {
 public:
  NestedQueues(lock::SurveySink& view, const lock::LockName& lock)
      : view_(&view), chroot_(lock.chroot), locks_{lock.path}, others_{lock.path} {}

  void OnLock(const lock::LockSurvey& lock) override {
    in_tree_ = lock.in_tree;
    describer_.emplace(lock);
    search_.BeginLock(lock.path);
    if (view_ != nullptr) view_->OnLock(lock);
  }
  void OnEntry(const lock::QueueEntry& entry) override {
    if (view_ != nullptr) view_->OnEntry(entry);
    // The view of a tree finds deadlocks itself.
    if (in_tree_ || !entry.position || *entry.position > kMostForDeadlocks) return;
    const cli::ContenderView contender = describer_->Describe(entry);
    search_.Add(contender);
    const lock::ContenderData& data = contender.data;
    for (const std::string& outer : data.under) AddLockOf(outer);
    // A waiting run holds nothing that others could wait for, unless it is nested under another
    // lock.
    if (data.under.empty() || !contender.IsAny()) return;
    for (const std::string& other : data.any) Add(other, others_);
  }
  void OnLockEnd(const lock::LockSurvey& lock) override {
    if (view_ != nullptr) view_->OnLockEnd(lock);
  }
  void OnEnd() override {
    if (view_ != nullptr) std::exchange(view_, nullptr)->OnEnd();
  }

  /// Returns the next LOCK to survey.
  [[nodiscard]] std::optional<lock::LockName> Next() {
    if (next_ < locks_.size()) return lock::LockName{locks_[next_++], chroot_};
    while (next_other_ < others_.size()) {
      const std::string& other = others_[next_other_++];
      if (!IsIn(locks_, other)) return lock::LockName{other, chroot_};
    }
    return std::nullopt;
  }
  [[nodiscard]] std::vector<cli::Deadlock> Find() const { return search_.Find(); }

 private:
  /// `contender`: its path, from data that anyone may have written.
  void AddLockOf(const std::string& contender) {
    std::string lock = protocol::ParentOf(contender);
    const std::string_view base = protocol::BaseOf(lock);
    if (base == protocol::kPermitsChild || base == protocol::kTurnstileChild) {
      lock = protocol::ParentOf(lock);
    }
    Add(lock, locks_);
  }
  /// `lock`: its path, from data that anyone may have written.
  void Add(const std::string& lock, std::vector<std::string>& list) {
    const bool is_path = std::holds_alternative<std::string>(protocol::CheckAbsolutePath(lock));
    if (!is_path || !lock.starts_with(chroot_ + "/") || list.size() > kMostNested) return;
    if (!IsIn(list, lock)) list.push_back(lock);
  }
  static bool IsIn(const std::vector<std::string>& list, const std::string& lock) {
    return std::find(list.begin(), list.end(), lock) != list.end();
  }

  static constexpr std::size_t kMostNested = 8;
  lock::SurveySink* view_;  ///< null from the second LOCK on
  const std::string chroot_;
  bool in_tree_ = false;
  std::optional<cli::QueueDescriber> describer_;
  cli::DeadlockSearch search_;
  std::vector<std::string> locks_;  ///< their paths on the servers
  std::size_t next_ = 1;
  /// The LOCKs of --any, read last: a long list must not keep the others from being read.
  std::vector<std::string> others_;
  std::size_t next_other_ = 1;
};

lock::LockName PathOf(const cli::InspectOptions& options) {
  return lock::LockName::In(options.server.servers.chroot, options.path);
}

std::string ChrootOf(const cli::InspectOptions& options) {
  return cli::Printable(options.server.servers.chroot);
}

/// The terminal's alternate screen, until the object is destroyed.
class AlternateScreen {
 public:
  explicit AlternateScreen(Output& output) : output_(output) { Enter(); }
  ~AlternateScreen() { Leave(); }
  AlternateScreen(const AlternateScreen&) = delete;
  AlternateScreen& operator=(const AlternateScreen&) = delete;

  void Enter() {
    echo_off_.emplace(STDOUT_FILENO);
    output_.Append(std::string(cli::kEnterScreen));
  }
  /// Returns to the main screen. Can be called twice.
  void Leave() {
    if (!echo_off_) return;
    output_.WriteLast(std::string(cli::kLeaveScreen));
    echo_off_.reset();
  }

 private:
  Output& output_;
  std::optional<process::EchoOff> echo_off_;
};

class Inspection {
 public:
  Inspection(const cli::InspectOptions& options, process::Signals& signals, cli::Report& report)
      : options_(options),
        signals_(signals),
        report_(report),
        session_(options.server, signals, report),
        output_([this] {
          if (survey_) survey_->Resume();
        }) {
    session_.loop().Add(output_);
  }
  ~Inspection() { session_.loop().Remove(output_); }
  Inspection(const Inspection&) = delete;
  Inspection& operator=(const Inspection&) = delete;

  int Run() {
    if (options_.by_status) return ReportByStatus();
    const auto out = [this](const std::string& text) { output_.Append(text); };
    if (options_.history) return PrintHistory();
    if (options_.form == Form::kDot) {
      cli::QueueDot view(out);
      return Print(view);
    }
    const bool on_screen = OutputIsTerminal() && options_.form == Form::kText;
    if (options_.watch && session_.LacksChroot()) {
      no_chroot_ = fmt::format(cli::message::kNoChroot, ChrootOf(options_));
    }
    if (options_.watch && on_screen) return WatchOnScreen();
    // While nothing changes, this is all that is printed.
    if (!no_chroot_.empty()) report_.Say(no_chroot_);
    if (options_.form == Form::kJson || options_.watch) {
      cli::QueueJson view(
          options_.watch ? cli::QueueJson::Form::kLines : cli::QueueJson::Form::kArray, out,
          options_.server.servers.chroot);
      return Print(view);
    }
    cli::QueueText view(options_.path, StyleFor(OutputSize()), out);
    NestedQueues queues(view, PathOf(options_));
    return Print(queues, [&] { return PrintDeadlocks(queues); });
  }

 private:
  [[nodiscard]] lock::SurveyRequest Request(std::size_t most_contenders) const {
    const bool is_tree = options_.path == "/" || options_.form == Form::kDot;
    const bool is_text = options_.form == Form::kText && !(options_.watch && !OutputIsTerminal());
    return {.place = PathOf(options_),
            .scope = options_.history ? Scope::kLock
                     : is_tree        ? Scope::kTree
                                      : Scope::kGuess,
            .most_data = lock::kMostContenderData,
            .most_contenders = most_contenders,
            .most_in_tree = !is_text             ? std::string::npos
                            : options_.by_status ? 1
                                                 : kMostForDeadlocks,
            .with_last_run = options_.history || (is_text && !is_tree && !options_.by_status),
            .with_last_start = !options_.by_status && (options_.with_names || !is_text),
            .watch = options_.watch,
            .connect_timeout = options_.server.connect_timeout};
  }

  [[nodiscard]] cli::ViewStyle StyleFor(const TerminalSize& size) const {
    return {.width = size.columns,
            .colours = OutputHasColours(),
            .with_names = options_.with_names,
            .is_root = options_.is_root};
  }

  int PrintHistory() {
    cli::HistoryPrinter view(options_, StyleFor(OutputSize()),
                             [this](const std::string& text) { output_.Append(text); });
    const int status = Print(view);
    if (status != kExitOk || !view.fault()) return status;
    const std::string lock = cli::Printable(options_.path);
    if (*view.fault() == cli::HistoryPrinter::Fault::kRefused) {
      report_.Error(cli::message::kHistoryUnread, lock);
      return kExitRefused;
    }
    report_.Error(cli::message::kHistoryForeign, lock);
    return kExitConfiguration;
  }

  int ReportByStatus() {
    HeldSink view;
    lock::Survey survey(session_.store(), session_.clock(), Request(1), &view);
    session_.Run(survey);
    session_.Close();
    if (view.is_held()) return kExitConflict;
    const auto& unlistable = survey.result().unlistable;
    if (unlistable.empty()) return kExitOk;
    // A lock may be held there.
    report_.Error(cli::Unlistable(unlistable));
    return kExitRefused;
  }

  /// Prints the deadlocks, after the queue. Returns the exit status if a signal arrived.
  std::optional<int> PrintDeadlocks(NestedQueues& queues) {
    while (const auto place = queues.Next()) {
      lock::Survey survey(session_.store(), session_.clock(),
                          {.place = *place,
                           .most_data = lock::kMostContenderData,
                           .most_contenders = kMostForDeadlocks,
                           .connect_timeout = options_.server.connect_timeout},
                          &queues);
      // A LOCK that cannot be read is left out.
      const auto signal = session_.RunUntilLeft(survey, [] { return false; });
      if (signal) return InterruptedBy(*signal);
    }
    output_.Append(cli::DeadlocksText(queues.Find(), StyleFor(OutputSize())));
    return std::nullopt;
  }

  /// Prints the queue or the locks; with --watch, each change too. Then calls `print_more`, which
  /// may return an exit status.
  int Print(lock::SurveySink& view, const std::function<std::optional<int>()>& print_more = {}) {
    Backpressure backpressure(view, output_);
    // The history does not need the contenders' data.
    const std::size_t most_contenders = options_.history ? 0 : std::string::npos;
    survey_.emplace(session_.store(), session_.clock(), Request(most_contenders), &backpressure);
    const auto signal = session_.RunUntilLeft(*survey_, [this] { return output_.error() != 0; });
    const auto status = signal ? InterruptedBy(*signal) : session_.Failure(*survey_);
    const lock::SurveyResult result = survey_->result();
    survey_.reset();
    if (status && output_.error() == 0) return *status;
    if (print_more) {
      if (const auto ended = print_more()) return *ended;
    }
    const bool lacks_chroot = !result.exists && session_.LacksChroot();
    session_.Close();
    if (const auto ended = Drain()) return *ended;
    if (lacks_chroot) {
      report_.Say(cli::message::kNoChroot, ChrootOf(options_));
    } else if (!result.exists && options_.form == Form::kDot) {
      report_.Say(cli::message::kNothingBelow, cli::Printable(options_.path));
    }
    if (!result.unlistable.empty()) report_.Say(cli::Unlistable(result.unlistable));
    return kExitOk;
  }

  int WatchOnScreen() {
    AlternateScreen screen(output_);
    TerminalSize size = OutputSize();
    std::string text;
    cli::ViewStyle style = ScreenStyle(size);
    cli::QueueText view(options_.path, style, [&text](const std::string& more) { text += more; });
    const auto set_style = [&] {
      style = ScreenStyle(size);
      view.SetStyle(style);
    };
    Backpressure backpressure(view, output_, [&] {
      picture_ = std::exchange(text, "");
      below_ = LineBelow();
      outage_.reset();
      Draw(picture_, size);
      stale_at_ = view.ShowsSpans() ? session_.clock().Now() + std::chrono::seconds(1) : kNever;
      survey_->KeepTrying();  // there is a picture to show in the meantime
      const bool lacks_room = ScreenStyle(size).rows < style.rows && HasLines(picture_, style.rows);
      if (lacks_room) {
        set_style();
        survey_->Repeat(RoomFor(size));
      }
    });
    survey_.emplace(session_.store(), session_.clock(), Request(RoomFor(size)), &backpressure);

    process::SizeChanges changes;
    process::Alarm alarm;
    session_.loop().Add(changes);
    session_.loop().Add(alarm);
    const auto redraw = [&] {
      stale_at_ = kNever;
      size = OutputSize();
      if (outage_) outage_->is_shown = false;
      set_style();
      survey_->Repeat(RoomFor(size));
    };
    const auto is_left = [&] {
      const bool is_stale = session_.clock().Now() >= stale_at_ && session_.store().IsConnected();
      if (changes.Take() || is_stale) redraw();
      ShowOutage(size, alarm);
      return output_.error() != 0;
    };
    const auto around_suspension = [&](const std::function<void()>& suspend) {
      screen.Leave();
      suspend();
      screen.Enter();
      redraw();
    };
    const auto signal = session_.RunUntilLeft(*survey_, is_left, around_suspension);
    session_.loop().Remove(alarm);
    session_.loop().Remove(changes);
    screen.Leave();
    // Ctrl-C is the usual way to leave: no message.
    const auto status = signal ? kExitSignalBase + *signal : session_.Failure(*survey_);
    survey_.reset();
    if (output_.error() != 0) return CannotPrint();
    session_.Close();
    return status.value_or(kExitOk);
  }

  /// While no server answers, marks the last picture as outdated. Once a server answers, a new
  /// picture follows.
  void ShowOutage(const TerminalSize& size, process::Alarm& alarm) {
    const TimePoint now = session_.clock().Now();
    const bool is_out = !session_.store().IsConnected() && !picture_.empty();
    if (is_out && !outage_) {
      const auto ago = std::chrono::ceil<std::chrono::milliseconds>(session_.AnsweredAgo());
      outage_ = {.since = now,
                 .text = fmt::format(cli::message::kOutage,
                                     cli::FormatTime(cli::MillisecondsNow() - ago.count()))};
    }
    // An ordinary reconnect is not worth a mark.
    const bool is_due = is_out && !outage_->is_shown && now - outage_->since >= kShortOutage;
    alarm.Set(!is_out ? stale_at_ : outage_->is_shown ? kNever : outage_->since + kShortOutage);
    if (!is_due) return;
    alarm.Set(kNever);
    outage_->is_shown = true;
    const std::string text = FitToScreen(outage_->text, size);
    Draw(cli::Paint(cli::Tone::kBad, text, OutputHasColours()) + "\n" + picture_, size);
  }

  /// Returns what else the survey has found out; empty if nothing.
  [[nodiscard]] std::string LineBelow() {
    const lock::SurveyResult& result = survey_->result();
    if (!result.exists) return no_chroot_;
    no_chroot_.clear();  // it exists now, even if LOCK is deleted again
    return result.unlistable.empty() ? "" : cli::Unlistable(result.unlistable);
  }

  void Draw(std::string text, const TerminalSize& size) {
    if (!below_.empty()) {
      // The picture leaves room for `below_`, but not also for a line about an outage above it.
      if (size.rows > 0) CutToLines(text, size.rows - 1);
      text += FitToScreen(below_, size) + "\n";
    }
    output_.Append(cli::Frame(text, size.rows));
  }

  /// Returns a style that is one column narrower than the terminal: on some terminals, the sequence
  /// that erases the rest of a line also erases the last column.
  [[nodiscard]] cli::ViewStyle ScreenStyle(const TerminalSize& size) const {
    cli::ViewStyle style = StyleFor(size);
    if (style.width > 1) --style.width;
    style.most_waits = 2;
    style.rows = size.rows - std::min<std::size_t>(size.rows, below_.empty() ? 0 : 1);
    return style;
  }

  /// Cuts a line that the terminal would otherwise wrap, so that the frame fits.
  [[nodiscard]] std::string FitToScreen(const std::string& line, const TerminalSize& size) const {
    const std::size_t width = ScreenStyle(size).width;
    return width == 0 ? line : cli::Printable(line, width);  // 0: unknown
  }

  /// Returns whether `text` fills `rows` lines.
  static bool HasLines(const std::string& text, std::size_t rows) {
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) >= rows;
  }

  static void CutToLines(std::string& text, std::size_t rows) {
    std::size_t end = 0;
    while (rows > 0 && end < text.size()) {
      end = std::min(text.find('\n', end), text.size() - 1) + 1;
      --rows;
    }
    text.resize(end);
  }

  /// Returns the largest number of contenders that fits on the screen.
  static std::size_t RoomFor(const TerminalSize& size) {
    constexpr std::size_t kLinesAbove = 3;
    return size.rows == 0 ? std::string::npos : std::max(size.rows, 2 * kLinesAbove) - kLinesAbove;
  }

  [[nodiscard]] int InterruptedBy(int signal_number) {
    // With --watch, a signal is the usual end: no message.
    if (options_.watch) return kExitSignalBase + signal_number;
    return commands::InterruptedBy(signal_number, report_);
  }

  int CannotPrint() { return commands::CannotPrint(output_.error(), report_); }

  /// Waits until the reader has read the remaining output. Returns none when everything has been
  /// written, otherwise the exit status.
  std::optional<int> Drain() {
    const auto signal = RunUntil(session_.loop(), signals_, [this] { return output_.IsDone(); });
    if (signal) return InterruptedBy(*signal);
    if (output_.error() != 0) return CannotPrint();
    return std::nullopt;
  }

  const cli::InspectOptions& options_;
  process::Signals& signals_;
  cli::Report& report_;
  ShortSession session_;
  Output output_;
  std::optional<lock::Survey> survey_;

  std::string no_chroot_;  ///< with --watch: the message that the chroot does not exist

  struct Outage {
    TimePoint since;
    std::string text;
    bool is_shown = false;
  };
  std::string picture_;          ///< the last picture drawn, with --watch
  std::string below_;            ///< the line below it, not cut to the screen; empty: none
  TimePoint stale_at_ = kNever;  ///< when to redraw it to update the spans in it
  std::optional<Outage> outage_;
};

}  // namespace

int Inspect(const cli::InspectOptions& options, process::Signals& signals, cli::Report& report) {
  if (options.servers_report) return ReportServers(options, signals, report);
  if (options.mine) return InspectMine(options, signals, report);
  if (options.form == Form::kCheck) return InspectCheck(options, signals, report);
  if (options.form == Form::kMetrics) return InspectMetrics(options, signals, report);
  return Inspection(options, signals, report).Run();
}

}  // namespace zklock::commands
