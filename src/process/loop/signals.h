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
  /// Sent by the kernel for the terminal. It reached the command's process group too, so it is not
  /// forwarded a second time. (A hangup of the terminal is sent to the session leader alone: if
  /// that is zklock, this is false.)
  bool from_terminal = false;
  pid_t sender = 0;  ///< 0: the kernel
};

/// TSTP, TTIN, TTOU, which stop a process by default.
[[nodiscard]] bool StopsByDefault(int signal_number);
/// For a signal that zklock handles: it ends a process by default.
[[nodiscard]] bool EndsByDefault(int signal_number);

/// The signals zklock handles: all that end or stop a process by default, and CONT. They are
/// blocked and read from a descriptor. A fault of zklock itself (SEGV, BUS, FPE, ILL, TRAP, SYS,
/// and ABRT by abort(3)) still crashes it: the kernel ignores the mask then, and abort(3) unblocks
/// ABRT.
///
/// Constructed first in main, so that the mask and dispositions it saves are those that zklock was
/// started with, which the command gets back. A signal inherited as ignored stays ignored and is
/// never reported (a blocked one would still reach signalfd). PIPE and XFSZ for zklock's own writes
/// are not reported: they must not end it. An ignored CHLD is reset to the default: otherwise
/// children could not be waited for.
class Signals final : public EventSource {
 public:
  /// Throws std::system_error.
  Signals();
  /// Restores the saved mask and CHLD's disposition. Signals that were not taken are dropped: they
  /// must not end zklock in its last steps.
  ~Signals() override;
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// Reports WINCH as well from now on.
  void AddWindowChanges();

  /// Takes the next signal that arrived; none if all have been taken.
  std::optional<SignalEvent> Next();

  /// In a forked child; async-signal-safe: restores the saved dispositions.
  void RestoreDispositions() const;
  /// Likewise the saved mask: pending signals take effect now.
  void RestoreMask() const;

  /// Suspends zklock as this signal would (TSTP in place of STOP, which stops in an orphaned
  /// process group too), until it is continued. Returns at once if the kernel does not suspend
  /// zklock (an orphaned process group), or a CONT has arrived meanwhile.
  void SuspendSelf(int signal_number = SIGTSTP) const;

  /// The command's wait status, for DieOfTerminalSignal().
  void SetCommandEnd(int wait_status);
  /// For the very end. If `status` is 128+N, the terminal sent N (INT or QUIT), and N killed the
  /// command, if one ran, this process dies of N, for which a shell shows the same status. A shell
  /// that runs a loop or a script looks at how its child ended to decide whether Ctrl-C was meant
  /// for the script too. A command that handles N and exits with 128+N does not end the script.
  /// Otherwise does nothing.
  void DieOfTerminalSignal(int status);

  [[nodiscard]] bool IsIgnored(int signal_number) const;

  Interest GetInterest() override;
  /// Does nothing: take the signals with Next().
  void OnReady(short revents) override;

 private:
  sigset_t saved_mask_{};
  sigset_t handled_{};  // blocked here, and read from fd_
  std::array<bool, NSIG> ignored_{};
  bool leads_session_ = false;
  int terminal_signal_ = 0;      // INT or QUIT, if the terminal sent the last of these
  bool command_exited_ = false;  // rather than was killed
  UniqueFd fd_;
};

}  // namespace zklock::process
