#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "cli/event.h"
#include "cli/report_progress.h"
#include "lock/queue_position.h"
#include "process/message_sink.h"

namespace zklock::commands {

/// What a live line is drawn on.
struct Screen {
  std::function<std::size_t()> width;      ///< in columns; 0: not known
  std::function<bool()> is_in_foreground;  ///< false: another job has the terminal
};
/// Standard error.
[[nodiscard]] Screen StandardErrorScreen();

/// What `asked` means on this standard error: kBar, kPlain or kNone.
[[nodiscard]] cli::ProgressStyle ResolveProgress(cli::ProgressStyle asked,
                                                 cli::Verbosity verbosity);

/// Shows a waiter where it stands: a live line drawn anew each second, or a line of its own when
/// the wait has lasted a second and each minute after that. Looks at the queue only for what it is
/// about to show, at most every two seconds, and less often where the queue is long.
///
/// Passive, as all sources. The live line goes with the object.
class Progress final : public cli::EventListener, public EventSource {
 public:
  /// `style` as from ResolveProgress.
  Progress(cli::ProgressStyle style, process::MessageSink& sink, Screen screen,
           zookeeper::Store& store, const Clock& clock);
  ~Progress() override;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void OnEvent(const cli::Event& event) override;
  /// Before zklock is stopped; it is shown again when that is over.
  void Pause();
  /// A signal has ended the wait. The terminal may show the key that sent it only after the line
  /// was erased: that is erased once more, with the message that follows.
  void Interrupt() { interrupted_ = true; }

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  void Show();
  void ShowLive();
  void WaitFor(const std::string& lock);
  void BeginLook();
  void OnLooked(const std::optional<lock::QueuePosition>& position);
  [[nodiscard]] cli::ProgressView View() const;

  const cli::ProgressStyle style_;
  process::MessageSink& sink_;
  const Screen screen_;
  zookeeper::Store& store_;
  const Clock& clock_;
  /// Our contender in one LOCK, and when it was made, to be compared with its age.
  struct Place {
    lock::Ticket ticket;
    TimePoint queued_at;
  };
  std::map<std::string, Place> places_;          // by LOCK
  std::string lock_;                             // the one that is waited for
  std::optional<lock::FindQueuePosition> look_;  // at its queue
  std::optional<TimePoint> waiting_since_;
  std::size_t ahead_ = 0;
  std::optional<lock::QueuePosition> position_;
  TimePoint glanced_at_{};
  TimePoint held_since_{};  ///< the earliest that the holder can have begun
  bool told_ = false;       ///< a plain line was written
  bool interrupted_ = false;
  bool shows_look_ = false;  ///< the look under way is for a plain line that is due
  TimePoint next_show_ = kNever;
  TimePoint next_look_{};
};

}  // namespace zklock::commands
