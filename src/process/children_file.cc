#include "process/children_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <sstream>
#include <string>

#include "process/system_error.h"

namespace zklock::process {

void ChildrenFile::Open() {
  file_.Reset(Check(open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC), "opening children"));
}

std::vector<pid_t> ChildrenFile::Read() const {
  Check(lseek(file_.get(), 0, SEEK_SET), "lseek");
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t size = read(file_.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (Check(size, "reading children") == 0) break;
    text.append(buffer.data(), static_cast<size_t>(size));
  }
  std::istringstream words(text);
  std::vector<pid_t> children;
  for (pid_t pid = 0; words >> pid;) children.push_back(pid);
  return children;
}

}  // namespace zklock::process
