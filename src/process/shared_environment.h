#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "process/shared_page.h"

namespace zklock::process {

/// The environment of a command that is forked before its environment is known: it lies in memory
/// that is shared with the processes forked after this was made, at one address in all of them.
class SharedEnvironment {
 public:
  /// NAME=VALUE, all of it; once. False for more than execve takes.
  [[nodiscard]] bool Set(const std::vector<std::string>& environment);
  /// As execve wants it. Async-signal-safe.
  [[nodiscard]] char* const* words() const { return memory_->data(); }

 private:
  // Words and the pointers to them: no kernel takes more (execve(2)). Only what is written to
  // takes up memory.
  static constexpr std::size_t kSize = std::size_t{6} << 20;
  SharedPage<std::array<char*, kSize / sizeof(char*)>> memory_;
};

}  // namespace zklock::process
