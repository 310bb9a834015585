#include "process/loop/locked_memory.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <climits>
#include <functional>
#include <sstream>
#include <string>

#include "base/read_file.h"
#include "process/loop/system_error.h"

namespace zklock::process {
namespace {

std::string Mappings() { return ReadFile("/proc/self/smaps").value_or(""); }

/// Returns the result of `look` in a process with this limit, after LockMemory(). `look` gets the
/// mappings from before that call, because a sanitizer's allocator may add mappings at any time.
int AfterLock(rlim_t limit, const std::function<int(const std::string&)>& look) {
  const pid_t pid = Check(fork(), "fork");
  if (pid == 0) {
    rlimit limits{};
    getrlimit(RLIMIT_MEMLOCK, &limits);
    limits.rlim_cur = limit;
    setrlimit(RLIMIT_MEMLOCK, &limits);
    const std::string before = Mappings();
    LockMemory();
    _exit(look(before));
  }
  int status = 0;
  Check(waitpid(pid, &status, 0), "waitpid");
  return WEXITSTATUS(status);
}

long Kibibytes(const std::string& line) { return std::stol(line.substr(line.find(':') + 1)); }

/// Returns how much of this process's memory is locked.
long LockedKibibytes() {
  const std::string status = ReadFile("/proc/self/status").value_or("");
  return Kibibytes(status.substr(status.find("VmLck:")));
}

/// Returns how many mappings of this process are not locked although they could be and would still
/// fit.
int CountMissed(long most, const std::string& before) {
  const long left = most - LockedKibibytes();
  int count = 0;
  long size = 0;
  bool is_new = false;
  std::istringstream lines(Mappings());
  for (std::string line; std::getline(lines, line);) {
    // "55d0c0ffee00-55d0c0fff000 r--p …"
    if (line.find('-') < line.find(' ')) {
      // Compare only the start address: a heap that has grown since is not new.
      is_new = before.find(line.substr(0, line.find('-') + 1)) == std::string::npos;
    }
    if (line.rfind("Size:", 0) == 0) size = Kibibytes(line);
    if (line.rfind("VmFlags:", 0) != 0) continue;
    const auto has = [&line](const char* flag) { return line.find(flag) != std::string::npos; };
    const bool is_kernels = has(" de") || has(" io");
    if (!is_new && has(" rd") && !has(" lo") && !is_kernels && size <= left) ++count;
  }
  return std::min(count, 200);
}

}  // namespace

TEST_CASE("memory is locked as far as the limit permits, with a reserve for the stack",
          "[native]") {
  constexpr rlim_t kReserve = 512 * 1024;
  rlimit limits{};
  REQUIRE(getrlimit(RLIMIT_MEMLOCK, &limits) == 0);
  for (const rlim_t limit : {limits.rlim_cur, limits.rlim_cur / 4}) {
    CAPTURE(limit);
    if (limit < 2 * kReserve) continue;
    const long most = static_cast<long>(std::min<rlim_t>(limit, LONG_MAX) - kReserve) / 1024;
    CHECK(AfterLock(limit, [&](const auto&) {
            return LockedKibibytes() > 0 && LockedKibibytes() <= most;
          }) == 1);
    CHECK(AfterLock(limit, [&](const auto& before) { return CountMissed(most, before); }) == 0);
  }
  CHECK(AfterLock(64 * 1024, [](const auto&) { return LockedKibibytes() == 0; }) == 1);
}

}  // namespace zklock::process
