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
  /// Sent by the kernel: the terminal. It reached the command's process group too, so it is not
  /// passed on a second time. (The hangup of a session leader's terminal goes to the leader alone:
  /// that one counts as sent to zklock.)
  bool from_terminal = false;
  pid_t sender = 0;  ///< the process that sent it; 0: the kernel
};

/// TSTP, TTIN, TTOU: by default they stop a process.
[[nodiscard]] bool StopsByDefault(int signal_number);
/// Of those that zklock handles: by default it ends a process.
[[nodiscard]] bool EndsByDefault(int signal_number);

/// The signals zklock handles: all that end or stop a process by default, and CONT. They are
/// blocked and read from a descriptor. A fault of zklock itself (SEGV, BUS, FPE, ILL, TRAP, SYS,
/// and ABRT by abort(3)) crashes it all the same: the kernel does not heed the mask then, and
/// abort(3) takes ABRT out of it.
///
/// Made first of all in main, so that the mask and dispositions it saves are those that zklock was
/// started with: the command gets exactly these back. A signal inherited as ignored stays ignored
/// and is never reported (a blocked one would still reach signalfd). PIPE and XFSZ for what zklock
/// itself writes are not reported: they must not end it. An ignored CHLD is set to its default,
/// since children could not be waited for otherwise.
class Signals final : public EventSource {
 public:
  /// Throws std::system_error.
  Signals();
  /// Restores the saved mask and CHLD's disposition. What has arrived and has not been taken is
  /// dropped: it must not end zklock on its last steps.
  ~Signals() override;
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// Reports WINCH too, from now on.
  void AddWindowChanges();

  /// The next signal that arrived; none when all have been taken.
  std::optional<SignalEvent> Next();

  /// Async-signal-safe; in a forked child: gives the saved dispositions back.
  void RestoreDispositions() const;
  /// The same for the saved mask: what came meanwhile takes effect now.
  void RestoreMask() const;

  /// Stops zklock as this signal would have (TSTP in place of STOP, which the kernel does not
  /// refuse), until it is continued. Returns at once where the kernel does not stop (an orphaned
  /// process group), and where a CONT came meanwhile.
  void StopSelf(int signal_number = SIGTSTP) const;

  /// How the command ended, for DieAsToldByTerminal(): a wait status.
  void SetCommandEnd(int wait_status);
  /// For the very end. Where `status` is 128+N, the terminal has sent N (INT or QUIT), and N killed
  /// the command, if one ran, this process dies of N, which a shell shows as the same status: one
  /// that runs a loop or a script looks at how its child ended to decide whether Ctrl-C was meant
  /// for it too. A command that handles N and exits with 128+N does not end the script. Else does
  /// nothing.
  void DieAsToldByTerminal(int status);

  [[nodiscard]] bool IsIgnored(int signal_number) const;

  Interest GetInterest() override;
  /// Does nothing: take the signals with Next().
  void OnReady(short revents) override;

 private:
  sigset_t saved_mask_{};
  sigset_t handled_{};  // blocked here, and read from fd_
  std::array<bool, NSIG> ignored_{};
  bool leads_session_ = false;
  int told_by_terminal_ = 0;     // INT or QUIT, if the last of these came from there
  bool command_exited_ = false;  // it was not killed
  UniqueFd fd_;
};

}  // namespace zklock::process
