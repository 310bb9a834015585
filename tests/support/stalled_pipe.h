#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

#include "base/unique_fd.h"

namespace zklock::test {

/// A full pipe that is never read.
struct StalledPipe {
  StalledPipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) throw std::runtime_error("pipe2");
    read.Reset(ends[0]);
    write.Reset(ends[1]);
    const std::string much(65536, 'x');
    while (::write(write.get(), much.data(), much.size()) > 0) {
    }
    while (::write(write.get(), much.data(), 1) > 0) {
    }
    fcntl(write.get(), F_SETFL, 0);  // blocking, as a shell would create it
  }
  UniqueFd read;
  UniqueFd write;
};

}  // namespace zklock::test
