#pragma once

#include <sys/signalfd.h>

#include <array>
#include <csignal>
#include <optional>

#include "base/event_source.h"
#include "base/unique_fd.h"

namespace zklock::process {

/// One signal that arrived.
struct SignalEvent {
  int number = 0;
  /// Sent by the kernel: the terminal. It reached the command's process group too, so it is not
  /// passed on a second time.
  bool from_terminal = false;
};

/// The signals zklock handles: blocked and read from a descriptor.
///
/// Made first of all in main, so that the mask and dispositions it saves are those that zklock was
/// started with: the command gets exactly these back. A signal inherited as ignored stays ignored
/// and is never reported (a blocked one would still reach signalfd).
class Signals final : public EventSource {
 public:
  Signals();
  ~Signals() override;  ///< Restores the saved mask.
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// The next signal that arrived, in order; none when all have been taken.
  std::optional<SignalEvent> Next();

  /// Async-signal-safe; in a forked child: gives the saved mask and dispositions back.
  void RestoreInChild() const;

  /// Stops zklock as the terminal's stop would have, until it is continued.
  void StopSelf() const;

  [[nodiscard]] bool IsIgnored(int signal_number) const;

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  sigset_t saved_mask_{};
  sigset_t handled_{};
  std::array<bool, 65> ignored_{};
  UniqueFd fd_;
};

}  // namespace zklock::process
