#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "cli/reports/event.h"
#include "cli/reports/report_progress.h"
#include "lock/survey/queue_position.h"
#include "process/loop/message_sink.h"

namespace zklock::commands {

/// The terminal that the live line is drawn on.
struct TerminalInfo {
  std::function<std::size_t()> width;      ///< in columns; 0: unknown
  std::function<bool()> is_in_foreground;  ///< false: another job has the terminal
};
/// Describes standard error.
[[nodiscard]] TerminalInfo StandardErrorTerminal();

/// Resolves `asked` for this standard error: to kBar, kPlain or kNone.
[[nodiscard]] cli::ProgressStyle ResolveProgress(cli::ProgressStyle asked,
                                                 cli::Verbosity verbosity);

/// Where and how often plain lines are written.
struct PlainLines {
  std::function<void(const std::string&)> write{};  ///< empty: to the sink
  Duration first = std::chrono::seconds(1);         ///< a shorter wait is not worth a line
  Duration between = std::chrono::minutes(1);
};

/// Shows the waiter's position: in a live line that is redrawn every second, or in plain lines, the
/// first after a second of waiting and then one every minute (PlainLines). Before that, the live
/// line shows that no server has been found yet. Reads the queue only when about to show it, at
/// most every two seconds, and less often if the queue is long.
///
/// Passive, like all sources. Its destructor erases the live line.
class Progress final : public cli::EventListener, public EventSource {
 public:
  /// `style`: from ResolveProgress().
  Progress(cli::ProgressStyle style, process::MessageSink& sink, TerminalInfo terminal,
           zookeeper::Store& store, const Clock& clock, PlainLines lines = {});
  ~Progress() override;

  /// Call if the run waits for one of `count` LOCKs: shows the one with the shortest queue.
  void SetAlternatives(std::size_t count) { alternatives_ = count; }

  void OnEvent(const cli::Event& event) override;
  /// Call when the wait is over. Reports this only if a plain line has reported the wait.
  void OnAcquired(const std::string& locks);
  /// Call before zklock is suspended. The line is drawn again when zklock continues.
  void Pause();
  /// Call when a signal has ended the wait. The terminal may echo the key that sent the signal
  /// after the line has been erased, so the following message erases the line again.
  void Interrupt() { interrupted_ = true; }
  /// Returns whether another contender was ahead.
  [[nodiscard]] bool has_waited() const { return waiting_since_.has_value(); }

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  void Show();
  void ShowLive();
  void ShowSearch();
  [[nodiscard]] std::size_t LiveColumns() const;
  void WaitFor(const std::string& lock, const lock::Ahead& ahead);
  void OnLeft(const lock::QueueLeftEvent& left);
  void BeginLookup();
  void OnLookedUp(const std::optional<lock::QueuePosition>& position);
  [[nodiscard]] cli::ProgressView View() const;

  const cli::ProgressStyle style_;
  process::MessageSink& sink_;
  const TerminalInfo terminal_;
  zookeeper::Store& store_;
  const Clock& clock_;
  const PlainLines lines_;
  const TimePoint began_;
  /// Our contender in one LOCK, and when it queued, to compare with the holder's age.
  struct QueuedTicket {
    lock::Ticket ticket;
    TimePoint queued_at;
    std::optional<lock::Ahead> ahead{};  ///< as last published
  };
  std::map<std::string, QueuedTicket> tickets_;    // by LOCK
  std::string lock_;                               // the one that we wait for
  std::optional<lock::FindQueuePosition> lookup_;  // in its queue
  std::size_t alternatives_ = 1;
  std::optional<TimePoint> waiting_since_;
  std::size_t ahead_ = 0;               // contenders, including holders
  std::optional<std::size_t> waiting_;  // how many of them wait, if known
  bool is_first_ = false;               ///< no contender is ahead, but the lease is too short
  std::optional<lock::QueuePosition> position_;
  TimePoint position_at_{};
  TimePoint held_since_{};  ///< the earliest time at which the holder can have acquired the lock
  bool interrupted_ = false;
  bool has_shown_ = false;     ///< a plain line has been shown
  bool shows_lookup_ = false;  ///< a plain line is due and waits for the lookup
  TimePoint next_show_ = kNever;
  TimePoint next_lookup_{};
};

}  // namespace zklock::commands
