#include "process/signals.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "base/exit_status.h"
#include "process/system_error.h"

namespace zklock::process {

namespace {

constexpr int kHandled[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP};
// Their default would end or stop zklock for what it writes.
constexpr int kSilenced[] = {SIGPIPE, SIGXFSZ, SIGTTIN, SIGTTOU};

void SetDisposition(int number, sighandler_t handler) {
  struct sigaction action {};
  action.sa_handler = handler;
  // Fails for KILL, STOP and the C library's own two, which have nothing to restore.
  sigaction(number, &action, nullptr);
}

}  // namespace

Signals::Signals() : leads_session_(getsid(0) == getpid()) {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction inherited {};
    ignored_[static_cast<size_t>(number)] =
        sigaction(number, nullptr, &inherited) == 0 && inherited.sa_handler == SIG_IGN;
  }
  sigset_t handled;
  sigemptyset(&handled);
  for (const int number : kHandled) {
    if (!IsIgnored(number)) sigaddset(&handled, number);
  }
  blocked_ = handled;
  for (const int number : kSilenced) {
    if (!IsIgnored(number)) sigaddset(&blocked_, number);
  }
  Check(sigprocmask(SIG_BLOCK, &blocked_, &saved_mask_), "sigprocmask");
  fd_.Reset(signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) {
    const int error = errno;
    sigprocmask(SIG_SETMASK, &saved_mask_, nullptr);
    errno = error;
    ThrowErrno("signalfd");
  }
  // Ignored, the kernel would reap the guard before zklock could wait for it.
  if (IsIgnored(SIGCHLD)) SetDisposition(SIGCHLD, SIG_DFL);
}

Signals::~Signals() {
  sigset_t to_drop = blocked_;
  for (int number = 1; number < NSIG; ++number) {
    // What was blocked before stays pending: it belongs to whoever blocked it.
    if (sigismember(&saved_mask_, number) == 1) sigdelset(&to_drop, number);
  }
  const timespec at_once{};
  while (sigtimedwait(&to_drop, nullptr, &at_once) > 0) {
  }
  if (IsIgnored(SIGCHLD)) SetDisposition(SIGCHLD, SIG_IGN);
  sigprocmask(SIG_SETMASK, &saved_mask_, nullptr);
}

std::optional<SignalEvent> Signals::Next() {
  signalfd_siginfo info{};
  const ssize_t size = read(fd_.get(), &info, sizeof info);
  if (size < 0) {
    if (errno == EAGAIN || errno == EINTR) return std::nullopt;
    ThrowErrno("reading signals");
  }
  const int number = static_cast<int>(info.ssi_signo);
  bool from_terminal = info.ssi_code == SI_KERNEL;
  // When its terminal hangs up the kernel sends HUP and CONT to the session's leader alone
  // (tty_signal_session_leader); the foreground group gets them only when the leader has ended.
  if (leads_session_ && (number == SIGHUP || number == SIGCONT)) from_terminal = false;
  if (number == SIGINT || number == SIGQUIT) told_by_terminal_ = from_terminal ? number : 0;
  return SignalEvent{number, from_terminal};
}

void Signals::RestoreDispositions() const {
  for (int number = 1; number < NSIG; ++number) {
    SetDisposition(number, IsIgnored(number) ? SIG_IGN : SIG_DFL);
  }
}

void Signals::RestoreMask() const { sigprocmask(SIG_SETMASK, &saved_mask_, nullptr); }

void Signals::StopSelf() const {
  // The kernel drops a pending CONT when a stop arrives: one that came after the stop we took, and
  // that nobody would send again, would be lost.
  sigset_t pending;
  if (sigpending(&pending) == 0 && sigismember(&pending, SIGCONT) == 1) return;

  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  sigset_t before;
  sigprocmask(SIG_UNBLOCK, &stop, &before);
  raise(SIGTSTP);
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

void Signals::SetCommandEnd(int wait_status) { command_exited_ = WIFEXITED(wait_status); }

void Signals::DieAsToldByTerminal(int status) {
  while (Next()) {  // what came with the command's end may not have been taken yet
  }
  if (command_exited_) return;
  if (told_by_terminal_ == 0 || status != kExitSignalBase + told_by_terminal_) return;
  prctl(PR_SET_DUMPABLE, 0);  // QUIT asks for a core of the command, not of zklock
  SetDisposition(told_by_terminal_, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, told_by_terminal_);
  raise(told_by_terminal_);
  sigprocmask(SIG_UNBLOCK, &one, nullptr);
}

bool Signals::IsIgnored(int signal_number) const {
  return ignored_.at(static_cast<size_t>(signal_number));
}

EventSource::Interest Signals::GetInterest() { return {fd_.get(), POLLIN, kNever}; }

void Signals::OnReady(short /*revents*/) {}

}  // namespace zklock::process
