#include "process/tree/guard_name.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace zklock::process {

namespace {

constexpr char kGuardName[] = "lock-guard";

void TakeName(const char* name) {
  prctl(PR_SET_NAME, name);
  char* const word = program_invocation_name;  // the memory of argv[0]
  std::strncpy(word, "guard", std::strlen(word));
}

}  // namespace

void TakeGuardName() { TakeName(kGuardName); }

void TakeCommandName() { TakeName("lock-command"); }

bool HasGuardName(pid_t pid) {
  const UniqueFd file(
      open(("/proc/" + std::to_string(pid) + "/comm").c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, sizeof kGuardName> name{};  // with a newline in place of the null
  const ssize_t size = file ? read(file.get(), name.data(), name.size()) : 0;
  return size == sizeof kGuardName &&
         std::string_view(name.data(), sizeof kGuardName - 1) == kGuardName;
}

bool IsGuard(const ProcessStat& process) {
  return process.name == kGuardName && Executes(process.id.pid, "/proc/self/exe");
}

}  // namespace zklock::process
