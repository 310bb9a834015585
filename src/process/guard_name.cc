#include "process/guard_name.h"

#include <sys/prctl.h>

#include <cerrno>
#include <cstring>

namespace zklock::process {

void TakeGuardName() {
  prctl(PR_SET_NAME, "lock-guard");
  char* const word = program_invocation_name;  // argv[0], this process's copy of it
  std::strncpy(word, "guard", std::strlen(word));
}

}  // namespace zklock::process
