#pragma once

#include <termios.h>

#include <csignal>
#include <optional>

#include "base/event_source.h"
#include "base/unique_fd.h"

namespace zklock::process {

/// Reports changes of the terminal's size (SIGWINCH) while it exists.
class SizeChanges final : public EventSource {
 public:
  SizeChanges();
  ~SizeChanges() override;
  SizeChanges(const SizeChanges&) = delete;
  SizeChanges& operator=(const SizeChanges&) = delete;

  /// Whether there was a change since the last call.
  [[nodiscard]] bool Take();

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  sigset_t saved_mask_{};
  UniqueFd fd_;
  bool changed_ = false;
};

/// Turns off the echo of the terminal `fd` while it exists, and then discards what was typed. Does
/// nothing in the background, and if `fd` is not a terminal.
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
