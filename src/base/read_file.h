#pragma once

#include <optional>
#include <string>

namespace zklock {

/// The whole content of a file; none, and errno says why, if it cannot be read. For small files
/// that are read at each start, and those in /proc: a std::ifstream takes 8 KiB, and initialises a
/// locale.
[[nodiscard]] std::optional<std::string> ReadFile(const std::string& path);

}  // namespace zklock
