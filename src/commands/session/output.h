#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "base/event_source.h"
#include "cli/reports/report.h"
#include "process/loop/signals.h"
#include "process/loop/stream_writer.h"

namespace zklock::commands {

/// Standard output, written without blocking, as fast as its reader reads.
class Output final : public EventSource {
 public:
  /// `on_room`, if any, is called when it was full and has room again.
  explicit Output(std::function<void()> on_room = {});

  void Append(const std::string& text) { writer_.Append(text); }
  /// Replaces all pending text: writes `text` now, or not at all if the reader does not read it.
  void WriteLast(const std::string& text);
  /// So much text is pending that no more should be appended.
  [[nodiscard]] bool IsFull() const;
  /// Everything is written, or cannot be.
  [[nodiscard]] bool IsDone() const { return writer_.waiting() == 0 || error() != 0; }
  /// errno: EPIPE if the reader is gone, EBADF if standard output is closed. Nothing more is
  /// written then.
  [[nodiscard]] int error() const { return writer_.error(); }

  Interest GetInterest() override { return writer_.GetInterest(); }
  void OnReady(short revents) override;

 private:
  std::function<void()> on_room_;
  process::StreamWriter writer_;
};

/// Reports that nothing can be written to standard output, `error` being the reason. Returns the
/// exit status. Without a reader nothing is reported, as when PIPE ends a process.
[[nodiscard]] int CannotPrint(int error, cli::Report& report);

/// Writes all of `text` to standard output. None, or the exit status if it failed or a signal
/// arrived first; that was reported.
[[nodiscard]] std::optional<int> PrintWhole(const std::string& text, process::Signals& signals,
                                            cli::Report& report);

/// Standard output is a terminal that can be drawn on.
[[nodiscard]] bool OutputIsTerminal();

/// The size of the terminal on standard output. If there is none, or its size is unknown: $COLUMNS
/// and $LINES (which watch(1) sets), else zero.
struct TerminalSize {
  std::size_t rows = 0;
  std::size_t columns = 0;
};
[[nodiscard]] TerminalSize OutputSize();

/// Likewise, and $NO_COLOR does not forbid colours.
[[nodiscard]] bool OutputHasColours();

}  // namespace zklock::commands
