#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace zklock::process {

/// The environment of a command that is forked before its environment is known. Must be in memory
/// that is shared, at the same address, with processes forked later (SharedPage).
class SharedEnvironment {
 public:
  /// Sets the complete environment, NAME=VALUE each. Must be called only once. Returns false if it
  /// is larger than execve accepts.
  [[nodiscard]] bool Set(const std::vector<std::string>& environment);
  /// For execve. Async-signal-safe.
  [[nodiscard]] char* const* words() const { return memory_.data(); }

 private:
  // Holds the strings and the pointers to them; no kernel accepts more (execve(2)). Only pages that
  // are written take up memory.
  static constexpr std::size_t kSize = std::size_t{6} << 20;
  std::array<char*, kSize / sizeof(char*)> memory_;
};

}  // namespace zklock::process
