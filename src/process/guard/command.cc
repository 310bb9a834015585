#include "process/guard/command.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/exit_status.h"
#include "process/loop/system_error.h"

namespace zklock::process {

namespace {

constexpr const char* kShell = "/bin/sh";

// execve does not modify the text.
char* Word(const char* text) { return const_cast<char*>(text); }

std::vector<char*> Words(const std::vector<std::string>& strings) {
  std::vector<char*> words;
  words.reserve(strings.size() + 1);
  for (const std::string& string : strings) words.push_back(Word(string.c_str()));
  words.push_back(nullptr);
  return words;
}

// Ends a command that must not be executed, with the status of one that died with the guard
// (PDEATHSIG).
[[noreturn]] void KillSelf() {
  for (;;) kill(getpid(), SIGKILL);
}

// Runs in the forked child: only async-signal-safe calls from here on.
[[noreturn]] void BecomeCommand(const ExecImage& image, const Signals& signals, GuardPage& page,
                                pid_t parent, int link) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // If the parent ended before the prctl, nothing guards this command.
  if (getppid() != parent) KillSelf();
  signals.RestoreDispositions();
  char word = 0;
  if (recv(link, &word, sizeof word, 0) != sizeof word) KillSelf();
  signals.RestoreMask();
  // Since this process was allowed to run, it may have been stopped, or the host suspended. Past
  // the stop time it must not execute the command, which may ignore the stop signal. It waits for
  // the guard, which may also have been stopped and then notices the time a little later.
  while (!page.is_ending && BootClock::now() >= page.lease.StopTime()) poll(nullptr, 0, 1);
  page.executes = true;  // before the check: the guard may set is_ending at any time
  if (page.is_ending) {
    page.executes = false;
    KillSelf();
  }
  const int error = image.Execute();
  // The user's dispositions are restored, so SIGPIPE may end the process here, which does no harm.
  [[maybe_unused]] const ssize_t written = write(link, &error, sizeof error);
  _exit(kExitNotFound);
}

}  // namespace

ExecImage::ExecImage(const std::string& executable, const std::vector<std::string>& arguments,
                     const SharedEnvironment& environment)
    : executable_(executable.c_str()), arguments_(Words(arguments)), environment_(environment) {
  shell_arguments_ = {Word(kShell), Word(executable_)};
  // All arguments after the command's own name, including the terminating null.
  const auto rest = arguments.empty() ? arguments_.begin() : arguments_.begin() + 1;
  shell_arguments_.insert(shell_arguments_.end(), rest, arguments_.end());
}

int ExecImage::Execute() const {
  execve(executable_, arguments_.data(), environment_.words());
  if (errno != ENOEXEC) return errno;
  execve(kShell, shell_arguments_.data(), environment_.words());
  return errno;
}

UniqueFd ForkCommand(const ExecImage& image, const Signals& signals, GuardPage& page,
                     const Cgroup* cgroup) {
  int ends[2];
  Check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), "socketpair");
  UniqueFd link(ends[0]);
  const UniqueFd commands_end(ends[1]);
  const pid_t parent = getpid();
  pid_t forked = -1;
  if (cgroup != nullptr) {
    forked = ForkIntoCgroup(cgroup->directory());
    if (forked < 0) page.cgroup_error = errno;
  }
  if (forked < 0) forked = Check(fork(), "fork");
  if (forked == 0) {
    page.command = getpid();
    link.Reset();
    BecomeCommand(image, signals, page, parent, commands_end.get());
  }
  page.command = forked;
  return link;
}

void LetCommandRun(const UniqueFd& link) {
  const char word = 0;
  send(link.get(), &word, sizeof word, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace zklock::process
