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
  /// `on_room`, if any, is called when the output was full and has room again.
  explicit Output(std::function<void()> on_room = {});

  void Append(const std::string& text) { writer_.Append(text); }
  /// Discards pending text and writes `text` now; gives up if the reader takes nothing for a
  /// second.
  void WriteLast(const std::string& text);
  /// Returns whether so much text is pending that the caller should append no more.
  [[nodiscard]] bool IsFull() const;
  /// Returns whether everything has been written, or can no longer be written.
  [[nodiscard]] bool IsDone() const { return writer_.waiting() == 0 || error() != 0; }
  /// Returns the errno after which nothing more is written: EPIPE if the reader is gone, even if
  /// nothing was written since; EIO if the terminal is; EBADF if standard output is closed;
  /// otherwise that of a failed write. 0 while writing is possible.
  [[nodiscard]] int error() const { return error_ != 0 ? error_ : writer_.error(); }

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  std::function<void()> on_room_;
  process::StreamWriter writer_;
  const bool is_terminal_;  ///< whose end sends HUP
  int error_ = 0;           ///< found while there was nothing to write
};

/// Reports that standard output cannot be written to; `error` is the errno. Returns the exit
/// status. If the reader is gone or the terminal was closed, reports nothing, as if PIPE or HUP had
/// ended zklock.
[[nodiscard]] int CannotPrint(int error, cli::Report& report);

/// Writes all of `text` to standard output. If that fails or a signal arrives first, reports it and
/// returns the exit status; otherwise returns none.
[[nodiscard]] std::optional<int> PrintWhole(const std::string& text, process::Signals& signals,
                                            cli::Report& report);

/// Returns whether standard output is a terminal that can be drawn on.
[[nodiscard]] bool OutputIsTerminal();

/// The size of the terminal on standard output. If there is none, or its size is unknown: $COLUMNS
/// and $LINES (which watch(1) sets), otherwise zero.
struct TerminalSize {
  std::size_t rows = 0;
  std::size_t columns = 0;
};
[[nodiscard]] TerminalSize OutputSize();

/// Returns whether standard output is a terminal that can be drawn on, and $NO_COLOR does not
/// forbid colours.
[[nodiscard]] bool OutputHasColours();

}  // namespace zklock::commands
