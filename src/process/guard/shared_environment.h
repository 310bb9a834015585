#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace zklock::process {

/// The environment of a command that is forked before its environment is known. To be placed in
/// memory that is shared, at the same address, with processes forked later (SharedPage).
class SharedEnvironment {
 public:
  /// The complete environment, NAME=VALUE each; to be called once. False if it is more than execve
  /// accepts.
  [[nodiscard]] bool Set(const std::vector<std::string>& environment);
  /// For execve. Async-signal-safe.
  [[nodiscard]] char* const* words() const { return memory_.data(); }

 private:
  // Strings and the pointers to them: no kernel accepts more (execve(2)). Only pages that are
  // written take up memory.
  static constexpr std::size_t kSize = std::size_t{6} << 20;
  std::array<char*, kSize / sizeof(char*)> memory_;
};

}  // namespace zklock::process
