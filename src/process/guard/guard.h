#pragma once

#include <sys/types.h>

#include "base/unique_fd.h"
#include "process/guard/command.h"
#include "process/guard/guard_link.h"
#include "process/loop/signals.h"
#include "process/tree/cgroup.h"
#include "process/tree/command_spec.h"

namespace zklock::process {

/// Everything that the guard needs from the zklock that forks it.
struct GuardDuty {
  const CommandSpec& spec;
  const ExecImage& image;
  const Signals& signals;
  GuardPage& page;
  Cgroup* cgroup;  ///< the command's; may be null
  pid_t zklock;
};

/// Runs the guard, which forks the command and watches its processes. Must be called in a process
/// that zklock has just forked, with all signals blocked. Never returns.
[[noreturn]] void RunGuard(const GuardDuty& duty, UniqueFd socket) noexcept;

}  // namespace zklock::process
