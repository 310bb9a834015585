#pragma once

#include <unistd.h>

#include <utility>

namespace zklock {

/// Owns one file descriptor and closes it. Move-only; -1 means no descriptor.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.Release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) Reset(other.Release());
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { Reset(); }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] explicit operator bool() const { return fd_ >= 0; }

  /// Gives up the descriptor; the caller closes it.
  [[nodiscard]] int Release() { return std::exchange(fd_, -1); }

  void Reset(int fd = -1) {
    // On Linux the descriptor is closed even after EINTR, so close() is never repeated.
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace zklock
