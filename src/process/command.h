#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "process/signals.h"

namespace zklock::process {

/// All that execve needs, laid out beforehand: nothing may be allocated between fork and exec.
/// The strings it was made from outlive it.
class ExecImage {
 public:
  ExecImage(const std::string& executable, const std::vector<std::string>& arguments,
            const std::vector<std::string>& environment);

  /// Async-signal-safe. As execvp(3): a file without a format the kernel knows is given to
  /// /bin/sh. Returns errno when it did not become the command.
  [[nodiscard]] int Execute() const;

 private:
  const char* executable_;
  std::vector<char*> arguments_;
  std::vector<char*> shell_arguments_;  // /bin/sh EXECUTABLE ARG...
  std::vector<char*> environment_;
};

/// A command between fork and exec, or after.
struct ForkedCommand {
  pid_t pid = 0;
  /// Reads one int, the errno of execve, if that failed; at its end the command is running (or
  /// was killed before). Does not block.
  UniqueFd exec_result;
};

/// Forks the command as a child of the calling process, which it does not outlive (PDEATHSIG), in
/// its process group, with the mask and dispositions that zklock was started with. Throws
/// std::system_error.
[[nodiscard]] ForkedCommand ForkCommand(const ExecImage& image, const Signals& signals);

}  // namespace zklock::process
