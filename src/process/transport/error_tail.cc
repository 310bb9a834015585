#include "process/transport/error_tail.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/transport_interface.h"

namespace zklock::process {
namespace {

// How many bytes of each line are kept; the rest is dropped.
constexpr std::size_t kMostBytes = 300;

// How many pieces of 4 KiB one call reads at most: as much as a pipe holds, since a process may
// write without pause.
constexpr int kMostPieces = 16;

}  // namespace

ErrorTail::ErrorTail(UniqueFd pipe) : pipe_(std::move(pipe)) {
  fcntl(pipe_.get(), F_SETFL, O_NONBLOCK);
}

const std::string& ErrorTail::Read() {
  std::array<char, 4096> buffer{};
  for (int pieces = 0; pipe_ && pieces < kMostPieces; ++pieces) {
    const ssize_t size = read(pipe_.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size == 0) {
      pipe_.Reset();
    }
    if (size <= 0) break;
    Take(buffer.data(), static_cast<std::size_t>(size));
  }
  const std::string& last = line_.empty() ? last_ : line_;
  const std::string& previous = line_.empty() ? previous_ : last_;
  text_ = previous.empty() ? last : previous + "; " + last;
  return text_;
}

void ErrorTail::Forget() {
  (void)Read();
  line_.clear();
  previous_.clear();
  last_.clear();
}

void ErrorTail::Take(const char* data, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    if (data[i] == '\r') continue;
    if (data[i] != '\n') {
      if (line_.size() < kMostBytes) line_ += data[i];
      continue;
    }
    if (line_ == transport_interface::kDiscardLine) {
      previous_.clear();
      last_.clear();
    } else if (!line_.empty()) {
      previous_ = std::move(last_);
      last_ = line_;
    }
    line_.clear();
  }
}

}  // namespace zklock::process
