#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "base/event_source.h"
#include "base/unique_fd.h"

namespace zklock::commands {

/// Standard output, written as its reader takes it; nothing blocks meanwhile.
class Output final : public EventSource {
 public:
  /// `on_room`, if any, is called when a full one has room again.
  explicit Output(std::function<void()> on_room = {});

  void Append(const std::string& text);
  /// Instead of what still waits: written now, or not at all where the reader does not take it.
  void WriteLast(const std::string& text);
  /// So much waits that there should come no more.
  [[nodiscard]] bool IsFull() const;
  /// All is written, or cannot be.
  [[nodiscard]] bool IsDone() const { return waiting_.empty() || error_ != 0; }
  /// errno; EPIPE where nobody reads any more, EBADF where it is closed. Nothing is written then.
  [[nodiscard]] int error() const { return error_; }

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  std::function<void()> on_room_;
  UniqueFd own_;  // a non-blocking description, where there can be one
  std::string waiting_;
  std::size_t written_ = 0;  // of `waiting_`
  int error_ = 0;
};

/// Standard output is a terminal that can be drawn on.
[[nodiscard]] bool OutputIsScreen();

/// How large the terminal is that standard output is; where it is none, or does not say, what
/// $COLUMNS and $LINES say (as watch(1) sets them), else zero.
struct TerminalSize {
  std::size_t rows = 0;
  std::size_t columns = 0;
};
[[nodiscard]] TerminalSize OutputSize();

/// So it is, and $NO_COLOR does not say otherwise.
[[nodiscard]] bool OutputHasColours();

}  // namespace zklock::commands
