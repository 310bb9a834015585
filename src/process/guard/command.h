#pragma once

#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "process/guard/guard_link.h"
#include "process/guard/shared_environment.h"
#include "process/loop/signals.h"
#include "process/tree/cgroup.h"

namespace zklock::process {

/// All that execve needs, laid out beforehand: nothing may be allocated between fork and exec. The
/// arguments of the constructor outlive it.
class ExecImage {
 public:
  ExecImage(const std::string& executable, const std::vector<std::string>& arguments,
            const SharedEnvironment& environment);

  /// Async-signal-safe. As execvp(3): a file in no format that the kernel knows is given to
  /// /bin/sh. Returns, with errno's value, only if that failed.
  [[nodiscard]] int Execute() const;

 private:
  const char* executable_;
  std::vector<char*> arguments_;
  std::vector<char*> shell_arguments_;  // /bin/sh EXECUTABLE ARG...
  const SharedEnvironment& environment_;
};

/// Forks the command as a child of the calling process, in whose process group it stays and which
/// it does not outlive (PDEATHSIG). It is not executed before LetCommandRun(). Until then all
/// signals are blocked in it, and those that arrive stay pending for the command. It then gets the
/// mask and dispositions that zklock was started with. Nor is it executed while the stop time
/// of the page's lease has passed, or once the guard is ending the tree.
///
/// Returns a link to it, which carries one int, the errno of execve, if that failed. At the link's
/// end the command is running, or has ended before. Its pid is written to the page by whichever
/// process is first. Throws std::system_error.
///
/// With a `cgroup` the command begins in it. If the kernel refuses that, the page gets the errno,
/// and the command begins where this process is.
[[nodiscard]] UniqueFd ForkCommand(const ExecImage& image, const Signals& signals, GuardPage& page,
                                   const Cgroup* cgroup);

/// Once. Does nothing if the command was killed meanwhile.
void LetCommandRun(const UniqueFd& link);

}  // namespace zklock::process
