#pragma once

#include <termios.h>

#include <csignal>
#include <cstddef>
#include <optional>

#include "base/event_source.h"
#include "base/unique_fd.h"

namespace zklock::process {

[[nodiscard]] bool IsTerminal(int fd);

/// Returns whether `fd` is a terminal that can erase and redraw its text: $TERM is neither unset
/// nor `dumb`.
[[nodiscard]] bool CanErase(int fd);

/// Returns the width in columns; 0 if `fd` is not a terminal, or its size is unknown.
[[nodiscard]] std::size_t TerminalWidth(int fd);

/// Returns false if `fd` is this process's terminal and another job is in its foreground: drawing
/// would overwrite that job's output.
[[nodiscard]] bool IsInForeground(int fd);

/// While this object exists, reports changes of the terminal's size (SIGWINCH).
class SizeChanges final : public EventSource {
 public:
  SizeChanges();
  ~SizeChanges() override;

  /// Returns whether the size has changed since the last call.
  [[nodiscard]] bool Take();

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  sigset_t saved_mask_{};
  UniqueFd fd_;
  bool changed_ = false;
};

/// Turns off echo on the terminal `fd`. The destructor turns it on again and discards what was
/// typed in the meantime. Does nothing in the background, or if `fd` is not a terminal.
class EchoOff {
 public:
  explicit EchoOff(int fd);
  ~EchoOff();
  EchoOff(const EchoOff&) = delete;
  EchoOff& operator=(const EchoOff&) = delete;

 private:
  int fd_;
  std::optional<termios> saved_;
};

}  // namespace zklock::process
