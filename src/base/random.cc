#include "base/random.h"

#include <sys/random.h>

#include <cerrno>
#include <system_error>

namespace zklock {

void FillRandomly(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t size = getrandom(bytes.data(), bytes.size(), 0);
    if (size < 0 && errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), "getrandom");
    }
    if (size > 0) bytes = bytes.subspan(static_cast<std::size_t>(size));
  }
}

}  // namespace zklock
