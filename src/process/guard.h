#pragma once

#include <sys/types.h>

#include "base/unique_fd.h"
#include "process/command.h"
#include "process/guard_link.h"
#include "process/signals.h"
#include "process/supervisor.h"

namespace zklock::process {

/// What the guard is given by the zklock it is forked from.
struct GuardDuty {
  const CommandSpec& spec;
  const ExecImage& image;
  const Signals& signals;
  GuardPage& page;
  pid_t zklock;
};

/// The guard: forks the command and keeps its processes. To be called in a process just forked from
/// zklock, with all signals blocked; it becomes that process's whole life.
[[noreturn]] void RunGuard(const GuardDuty& duty, UniqueFd socket) noexcept;

}  // namespace zklock::process
