#include "process/loop/locked_memory.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

#include "base/read_file.h"
#include "process/loop/system_error.h"

namespace zklock::process {
namespace {

/// Whether a process with this soft limit, or its own, has anything locked after LockMemory().
bool LocksWith(rlim_t limit) {
  const pid_t pid = Check(fork(), "fork");
  if (pid == 0) {
    rlimit limits{};
    getrlimit(RLIMIT_MEMLOCK, &limits);
    if (limit < limits.rlim_cur) limits.rlim_cur = limit;
    setrlimit(RLIMIT_MEMLOCK, &limits);
    LockMemory();
    const std::string status = ReadFile("/proc/self/status").value_or("");
    _exit(status.find("VmLck:\t       0 kB") == std::string::npos ? 1 : 0);
  }
  int status = 0;
  Check(waitpid(pid, &status, 0), "waitpid");
  return WEXITSTATUS(status) == 1;
}

}  // namespace

TEST_CASE("memory is locked as far as the limit permits, with a reserve for the stack") {
  rlimit limits{};
  REQUIRE(getrlimit(RLIMIT_MEMLOCK, &limits) == 0);
  CHECK(LocksWith(RLIM_INFINITY) == (limits.rlim_cur > 1024 * 1024));
  CHECK_FALSE(LocksWith(64 * 1024));
}

}  // namespace zklock::process
