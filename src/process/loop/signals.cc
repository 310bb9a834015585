#include "process/loop/signals.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <iterator>

#include "base/exit_status.h"
#include "process/loop/system_error.h"

namespace zklock::process {

namespace {

// Signals that cannot be handled, or have no effect by default. (WINCH is added on request.)
constexpr int kNotHandled[] = {SIGKILL, SIGSTOP, SIGCHLD, SIGURG, SIGWINCH};
constexpr int kStops[] = {SIGTSTP, SIGTTIN, SIGTTOU};
constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
// The signals that the kernel sends on behalf of the terminal. It sends others for timers and
// limits.
constexpr int kFromTerminal[] = {SIGINT,  SIGQUIT,  SIGHUP,  SIGCONT,
                                 SIGTSTP, SIGWINCH, SIGTTIN, SIGTTOU};

template <size_t kSize>
bool IsIn(const int (&signals)[kSize], int number) {
  return std::find(std::begin(signals), std::end(signals), number) != std::end(signals);
}

// `handler`: the inherited disposition.
bool IsHandled(int number, sighandler_t handler) {
  // The C library has its own signals between the standard and the real-time ones.
  const bool is_signal = number <= SIGSYS || (number >= SIGRTMIN && number <= SIGRTMAX);
  if (!is_signal || handler == SIG_IGN || IsIn(kNotHandled, number)) return false;
  // A fault has a handler if a sanitizer reports it.
  return !IsIn(kFaults, number) || handler == SIG_DFL;
}

// Returns whether this process caused the signal itself, by writing to a pipe without a reader or
// beyond the file size limit.
bool IsForOwnWrite(const signalfd_siginfo& info) {
  return (info.ssi_signo == SIGPIPE || info.ssi_signo == SIGXFSZ) && info.ssi_code == SI_USER &&
         static_cast<pid_t>(info.ssi_pid) == getpid();
}

void SetDisposition(int number, sighandler_t handler) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(number, &action, nullptr);
}

}  // namespace

bool StopsByDefault(int signal_number) { return IsIn(kStops, signal_number); }

bool EndsByDefault(int signal_number) {
  return !StopsByDefault(signal_number) && signal_number != SIGCONT && signal_number != SIGWINCH;
}

Signals::Signals() : leads_session_(getsid(0) == getpid()) {
  sigemptyset(&handled_);
  // /proc/self/status lists all ignored signals, but reading it takes as long as these 64 calls.
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction inherited {};
    if (sigaction(number, nullptr, &inherited) != 0) continue;
    ignored_[static_cast<size_t>(number)] = inherited.sa_handler == SIG_IGN;
    if (IsHandled(number, inherited.sa_handler)) sigaddset(&handled_, number);
  }
  Check(sigprocmask(SIG_BLOCK, &handled_, &saved_mask_), "sigprocmask");
  fd_.Reset(signalfd(-1, &handled_, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) {
    const int error = errno;
    sigprocmask(SIG_SETMASK, &saved_mask_, nullptr);
    errno = error;
    ThrowErrno("signalfd");
  }
  // If CHLD were ignored, the kernel would reap the guard before zklock could wait for it.
  if (IsIgnored(SIGCHLD)) SetDisposition(SIGCHLD, SIG_DFL);
}

Signals::~Signals() {
  sigset_t to_drop = handled_;
  for (int number = 1; number < NSIG; ++number) {
    // A signal that was blocked before stays pending for the process that blocked it.
    if (sigismember(&saved_mask_, number) == 1) sigdelset(&to_drop, number);
  }
  const timespec at_once{};
  while (sigtimedwait(&to_drop, nullptr, &at_once) > 0) {
  }
  RestoreDispositions();
  sigprocmask(SIG_SETMASK, &saved_mask_, nullptr);
}

void Signals::AddWindowChanges() {
  if (IsIgnored(SIGWINCH)) return;
  sigaddset(&handled_, SIGWINCH);
  Check(sigprocmask(SIG_BLOCK, &handled_, nullptr), "sigprocmask");
  Check(signalfd(fd_.get(), &handled_, 0), "signalfd");
}

std::optional<SignalEvent> Signals::Next() {
  signalfd_siginfo info{};
  do {
    const ssize_t size = read(fd_.get(), &info, sizeof info);
    if (size < 0) {
      if (errno == EAGAIN || errno == EINTR) return std::nullopt;
      ThrowErrno("reading signals");
    }
  } while (IsForOwnWrite(info));
  const int number = static_cast<int>(info.ssi_signo);
  bool from_terminal = info.ssi_code == SI_KERNEL && IsIn(kFromTerminal, number);
  // When the terminal hangs up, the kernel sends HUP and CONT to the session leader alone
  // (tty_signal_session_leader); the foreground group gets them only when the leader has ended.
  if (leads_session_ && (number == SIGHUP || number == SIGCONT)) from_terminal = false;
  if (number == SIGINT || number == SIGQUIT) terminal_signal_ = from_terminal ? number : 0;
  const bool has_sender =
      info.ssi_code == SI_USER || info.ssi_code == SI_QUEUE || info.ssi_code == SI_TKILL;
  return SignalEvent{number, from_terminal, has_sender ? static_cast<pid_t>(info.ssi_pid) : 0};
}

// zklock changes only CHLD; execve(2) resets handlers, such as a sanitizer's, to the default.
void Signals::RestoreDispositions() const {
  if (IsIgnored(SIGCHLD)) SetDisposition(SIGCHLD, SIG_IGN);
}

void Signals::Block() const { sigprocmask(SIG_BLOCK, &handled_, nullptr); }

void Signals::RestoreMask() const { sigprocmask(SIG_SETMASK, &saved_mask_, nullptr); }

void Signals::SuspendSelf(int signal_number) const {
  if (signal_number == SIGSTOP) signal_number = SIGTSTP;
  // The kernel drops a pending CONT when a stop signal arrives. A CONT that arrived after the stop
  // signal was read would be lost, and never sent again.
  sigset_t pending;
  if (sigpending(&pending) == 0 && sigismember(&pending, SIGCONT) == 1) return;

  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, signal_number);
  sigset_t before;
  sigprocmask(SIG_UNBLOCK, &stop, &before);
  raise(signal_number);
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

void Signals::SetCommandEnd(int wait_status) { command_exited_ = WIFEXITED(wait_status); }

void Signals::DieOfTerminalSignal(int status) {
  while (Next()) {  // the signal that ended the command might not have been read yet
  }
  if (command_exited_) return;
  if (terminal_signal_ == 0 || status != kExitSignalBase + terminal_signal_) return;
  prctl(PR_SET_DUMPABLE, 0);  // QUIT asks for a core dump of the command, not of zklock
  SetDisposition(terminal_signal_, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, terminal_signal_);
  raise(terminal_signal_);
  sigprocmask(SIG_UNBLOCK, &one, nullptr);
}

bool Signals::IsIgnored(int signal_number) const {
  return ignored_.at(static_cast<size_t>(signal_number));
}

EventSource::Interest Signals::GetInterest() { return {.fd = fd_.get(), .events = POLLIN}; }

void Signals::OnReady(short /*revents*/) {}

}  // namespace zklock::process
