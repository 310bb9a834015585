#include "process/loop/descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "process/loop/system_error.h"

namespace zklock::process {

void Silence(std::initializer_list<int> streams) {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int stream : streams) {
    if (null < 0 || dup2(null, stream) < 0) close(stream);
  }
  if (null > STDERR_FILENO) close(null);
}

void LeaveWorkingDirectory() {
  if (chdir("/") != 0) {
    // The directory then stays busy, which is no reason to fail.
  }
}

void CloseInherited() {
  std::vector<int> inherited;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc/self/fd"), closedir);
  if (!directory) ThrowErrno("opening /proc/self/fd");
  while (const dirent* entry = readdir(directory.get())) {
    const int fd = std::atoi(entry->d_name);
    const int flags = fcntl(fd, F_GETFD);
    const bool ours = flags < 0 || (static_cast<unsigned>(flags) & FD_CLOEXEC) != 0;
    if (fd > STDERR_FILENO && !ours) inherited.push_back(fd);
  }
  for (const int fd : inherited) close(fd);
}

void KeepOnlyDescriptors(const std::vector<int>& kept) {
  Silence({STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO});
  const int last = std::max(STDERR_FILENO, *std::max_element(kept.begin(), kept.end()));
  for (int fd = STDERR_FILENO + 1; fd < last; ++fd) {
    if (std::find(kept.begin(), kept.end(), fd) == kept.end()) close(fd);
  }
  closefrom(last + 1);
}

}  // namespace zklock::process
