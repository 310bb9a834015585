#pragma once

#include <sys/types.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "process/tree/process_tree.h"
#include "support/child.h"

namespace zklock::test {

/// Returns once the process has ended, even if it is an orphan not reaped yet.
inline void WaitUntilGone(pid_t pid) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (auto stat = process::ReadProcessStat(pid); stat && !stat->is_dead;
       stat = process::ReadProcessStat(pid)) {
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("lives on");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace zklock::test
