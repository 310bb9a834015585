#pragma once

#include <sys/types.h>

#include <atomic>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "process/shared_environment.h"
#include "process/signals.h"

namespace zklock::process {

/// All that execve needs, laid out beforehand: nothing may be allocated between fork and exec.
/// What it was made from outlives it.
class ExecImage {
 public:
  ExecImage(const std::string& executable, const std::vector<std::string>& arguments,
            const SharedEnvironment& environment);

  /// Async-signal-safe. As execvp(3): a file without a format the kernel knows is given to
  /// /bin/sh. Returns errno when it did not become the command.
  [[nodiscard]] int Execute() const;

 private:
  const char* executable_;
  std::vector<char*> arguments_;
  std::vector<char*> shell_arguments_;  // /bin/sh EXECUTABLE ARG...
  const SharedEnvironment& environment_;
};

/// Forks the command as a child of the calling process, which it does not outlive (PDEATHSIG), in
/// its process group. It is not executed before LetGo(), and has all signals blocked until then:
/// what comes meanwhile is the command's. Then it gets the mask and dispositions that zklock was
/// started with.
///
/// Returns the link to it: gives one int, the errno of execve, if that failed; at its end the
/// command is running (or was killed before). `pid` is in memory that both share, and written by
/// whichever is first. Throws std::system_error.
[[nodiscard]] UniqueFd ForkCommand(const ExecImage& image, const Signals& signals,
                                   std::atomic<pid_t>& pid);

/// Once. A command that was killed meanwhile is none the wiser.
void LetGo(const UniqueFd& link);

}  // namespace zklock::process
