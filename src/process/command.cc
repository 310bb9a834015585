#include "process/command.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/exit_status.h"
#include "process/system_error.h"

namespace zklock::process {

namespace {

constexpr const char* kShell = "/bin/sh";

// execve takes pointers to what it does not change.
char* Word(const char* text) { return const_cast<char*>(text); }

std::vector<char*> Words(const std::vector<std::string>& strings) {
  std::vector<char*> words;
  words.reserve(strings.size() + 1);
  for (const std::string& string : strings) words.push_back(Word(string.c_str()));
  words.push_back(nullptr);
  return words;
}

// In the forked child: only async-signal-safe calls from here on.
[[noreturn]] void BecomeCommand(const ExecImage& image, const Signals& signals, pid_t parent,
                                int report) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have ended before that: then nobody guards this command.
  if (getppid() != parent) _exit(kExitInternal);
  signals.RestoreInChild();
  const int error = image.Execute();
  // The dispositions are the user's again: PIPE may end this here, which is as good.
  [[maybe_unused]] const ssize_t written = write(report, &error, sizeof error);
  _exit(kExitNotFound);
}

}  // namespace

ExecImage::ExecImage(const std::string& executable, const std::vector<std::string>& arguments,
                     const std::vector<std::string>& environment)
    : executable_(executable.c_str()),
      arguments_(Words(arguments)),
      environment_(Words(environment)) {
  shell_arguments_ = {Word(kShell), Word(executable_)};
  // All behind the command's own name, and the terminating null.
  const auto rest = arguments.empty() ? arguments_.begin() : arguments_.begin() + 1;
  shell_arguments_.insert(shell_arguments_.end(), rest, arguments_.end());
}

int ExecImage::Execute() const {
  execve(executable_, arguments_.data(), environment_.data());
  if (errno != ENOEXEC) return errno;
  execve(kShell, shell_arguments_.data(), environment_.data());
  return errno;
}

ForkedCommand ForkCommand(const ExecImage& image, const Signals& signals) {
  int ends[2];
  Check(pipe2(ends, O_CLOEXEC), "pipe2");
  UniqueFd result(ends[0]);
  const UniqueFd report(ends[1]);
  Check(fcntl(result.get(), F_SETFL, O_NONBLOCK), "fcntl");
  const pid_t parent = getpid();
  const pid_t pid = Check(fork(), "fork");
  if (pid == 0) BecomeCommand(image, signals, parent, report.get());
  return {pid, std::move(result)};
}

}  // namespace zklock::process
