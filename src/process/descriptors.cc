#include "process/descriptors.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

namespace zklock::process {

void KeepOnlyDescriptors(std::initializer_list<int> kept) {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (null < 0 || dup2(null, stream) < 0) close(stream);
  }
  const int last = std::max(STDERR_FILENO, std::max(kept));
  for (int fd = STDERR_FILENO + 1; fd < last; ++fd) {
    if (std::find(kept.begin(), kept.end(), fd) == kept.end()) close(fd);
  }
  closefrom(last + 1);
}

}  // namespace zklock::process
