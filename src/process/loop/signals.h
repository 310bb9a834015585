#pragma once

#include <sys/types.h>

#include <array>
#include <csignal>
#include <optional>

#include "base/event_source.h"
#include "base/unique_fd.h"

namespace zklock::process {

/// One signal that arrived.
struct SignalEvent {
  int number = 0;
  /// Sent by the kernel on behalf of the terminal. It has also reached the command's process group,
  /// so it is not forwarded a second time. (A hangup of the terminal is sent only to the session
  /// leader: if that is zklock, this is false.)
  bool from_terminal = false;
  pid_t sender = 0;  ///< 0: the kernel
};

/// Returns whether the signal is TSTP, TTIN or TTOU, which stop a process by default.
[[nodiscard]] bool StopsByDefault(int signal_number);
/// Returns whether a signal that zklock handles ends a process by default.
[[nodiscard]] bool EndsByDefault(int signal_number);

/// The signals that zklock handles: all that end or stop a process by default, and CONT. They are
/// blocked and read from a descriptor. A fault in zklock itself (SEGV, BUS, FPE, ILL, TRAP, SYS,
/// and ABRT from abort(3)) still crashes it: the kernel then ignores the mask, and abort(3)
/// unblocks ABRT.
///
/// Must be constructed first in main, so that it saves the mask and dispositions that zklock was
/// started with. They are restored in the command. A signal inherited as ignored stays ignored and
/// is never reported (signalfd would deliver it if it were blocked). PIPE and XFSZ caused by
/// zklock's own writes are not reported: they must not end zklock. An ignored CHLD is reset to the
/// default: otherwise zklock could not wait for its children.
class Signals final : public EventSource {
 public:
  /// Throws std::system_error.
  Signals();
  /// Restores the saved mask and CHLD's disposition. Drops unread signals, so that they do not end
  /// zklock in its last steps.
  ~Signals() override;

  /// Also reports WINCH from now on.
  void AddWindowChanges();

  /// Returns the next signal that arrived; none if all have been read.
  std::optional<SignalEvent> Next();

  /// Blocks the handled signals again after RestoreMask().
  void Block() const;
  /// Restores the saved dispositions in a forked child. Async-signal-safe.
  void RestoreDispositions() const;
  /// Likewise restores the saved mask. Pending signals then take effect.
  void RestoreMask() const;

  /// Suspends zklock as this signal would, until it is continued. In place of STOP, uses TSTP,
  /// which does not stop an orphaned process group. Returns at once if the kernel does not suspend
  /// zklock (an orphaned process group), or if a CONT has already arrived.
  void SuspendSelf(int signal_number = SIGTSTP) const;

  /// Sets the command's wait status, for DieOfTerminalSignal().
  void SetCommandEnd(int wait_status);
  /// Kills this process with N if `status` is 128+N, the terminal sent N (INT or QUIT), and N
  /// killed the command (if one ran); a shell shows the same status for that. Otherwise does
  /// nothing. Must be the last call. A shell that runs a loop or a script looks at how its child
  /// ended to decide whether Ctrl-C was also meant for the script. A command that handles N and
  /// exits with 128+N does not end the script.
  void DieOfTerminalSignal(int status);

  [[nodiscard]] bool IsIgnored(int signal_number) const;

  Interest GetInterest() override;
  /// Does nothing: read the signals with Next().
  void OnReady(short revents) override;

 private:
  sigset_t saved_mask_{};
  sigset_t handled_{};  // blocked here, and read from fd_
  std::array<bool, NSIG> ignored_{};
  bool leads_session_ = false;
  int terminal_signal_ = 0;      // the last INT or QUIT, if the terminal sent it
  bool command_exited_ = false;  // it was not killed
  UniqueFd fd_;
};

/// While this object exists, signals have the effect that they had when zklock was started. For
/// work that may block before there is anything to clean up.
class Interruptible {
 public:
  explicit Interruptible(const Signals& signals) : signals_(signals) { signals_.RestoreMask(); }
  ~Interruptible() { signals_.Block(); }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  const Signals& signals_;
};

}  // namespace zklock::process
