#pragma once

#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>

#include "support/wait.h"

namespace zklock::test {

/// Keeps a process stopped while this object exists, even if it gets CONT (which the
/// guard's timer sends to the guard). The process must be a descendant.
class Hang {
 public:
  explicit Hang(pid_t pid) : pid_(pid) {
    REQUIRE(ptrace(PTRACE_SEIZE, pid_, nullptr, nullptr) == 0);
    REQUIRE(ptrace(PTRACE_INTERRUPT, pid_, nullptr, nullptr) == 0);
    REQUIRE(waitpid(pid_, nullptr, __WALL) == pid_);
  }
  ~Hang() { End(); }
  Hang(const Hang&) = delete;
  Hang& operator=(const Hang&) = delete;
  /// Runs the process, one system call at a time, until `done` returns true.
  template <typename Done>
  void StepUntil(const Done& done) {
    while (!done()) {
      REQUIRE(ptrace(PTRACE_SYSCALL, pid_, nullptr, nullptr) == 0);
      WaitUntil([this] { return waitpid(pid_, nullptr, __WALL | WNOHANG) == pid_; });
    }
  }
  void End() {
    if (pid_ != 0) ptrace(PTRACE_DETACH, pid_, nullptr, nullptr);
    pid_ = 0;
  }

 private:
  pid_t pid_;
};

}  // namespace zklock::test
