#pragma once

#include <termios.h>

#include <csignal>
#include <optional>

#include "base/event_source.h"
#include "base/unique_fd.h"

namespace zklock::process {

/// Tells of the terminal's new sizes (SIGWINCH), while it lives.
class SizeChanges final : public EventSource {
 public:
  SizeChanges();
  ~SizeChanges() override;
  SizeChanges(const SizeChanges&) = delete;
  SizeChanges& operator=(const SizeChanges&) = delete;

  /// There was one since the last call.
  [[nodiscard]] bool Take();

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  sigset_t saved_mask_{};
  UniqueFd fd_;
  bool changed_ = false;
};

/// Keeps what is typed off the screen of the terminal `fd`, while it lives. What was typed is
/// thrown away in the end: it was for nobody. In the background, and on what is no terminal, it
/// does nothing.
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
