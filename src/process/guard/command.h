#pragma once

#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "process/guard/guard_link.h"
#include "process/guard/shared_memory.h"
#include "process/loop/signals.h"
#include "process/tree/cgroup.h"

namespace zklock::process {

/// Everything that execve needs, prepared in advance: nothing may be allocated between fork and
/// exec. The constructor's arguments must outlive this object.
class ExecImage {
 public:
  ExecImage(const std::string& executable, const std::vector<std::string>& arguments,
            const SharedEnvironment& environment);

  /// Like execvp(3), runs a file that the kernel cannot execute (ENOEXEC) with /bin/sh. Returns
  /// only on failure, with the value of errno. Async-signal-safe.
  [[nodiscard]] int Execute() const;

 private:
  const char* executable_;
  std::vector<char*> arguments_;
  std::vector<char*> shell_arguments_;  // /bin/sh EXECUTABLE ARG...
  const SharedEnvironment& environment_;
};

/// Forks the command as a child of the calling process. It stays in that process's group, and does
/// not outlive that process (PDEATHSIG). It is not executed before LetCommandRun(): until then all
/// signals are blocked in it, and those that arrive stay pending. It then gets the mask and
/// dispositions that zklock was started with. It is not executed while the page's lease is past its
/// stop time, nor once the guard has begun to end the tree.
///
/// Returns a link to the command. If execve fails, errno arrives on the link as one int. Once the
/// link is closed at the other end, the command is running or has already ended. Whichever process
/// runs first writes the command's pid to the page. Throws std::system_error.
///
/// With a `cgroup`, the command starts in it. If the kernel refuses, the errno is written to the
/// page, and the command starts in this process's cgroup.
[[nodiscard]] UniqueFd ForkCommand(const ExecImage& image, const Signals& signals, GuardPage& page,
                                   const Cgroup* cgroup);

/// Allows the command to run. Call it once. Does nothing if the command has already been killed.
void LetCommandRun(const UniqueFd& link);

}  // namespace zklock::process
