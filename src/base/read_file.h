#pragma once

#include <optional>
#include <string>

namespace zklock {

/// Returns the whole content of a file; if it cannot be read, returns none and sets errno. Intended
/// for files in /proc and small files that are read at every start: a std::ifstream allocates 8 KiB
/// and initialises a locale.
[[nodiscard]] std::optional<std::string> ReadFile(const std::string& path);

}  // namespace zklock
