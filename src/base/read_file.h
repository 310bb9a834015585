#pragma once

#include <optional>
#include <string>

namespace zklock {

/// Returns the entire contents of a file; if it cannot be read, returns none and sets errno.
/// Intended for files in /proc and small files that every start reads: a std::ifstream allocates 8
/// KiB and initialises a locale.
[[nodiscard]] std::optional<std::string> ReadFile(const std::string& path);

/// Returns `path`, or, if it is relative, its absolute form; without a leading `./`. If the working
/// directory no longer exists, returns it unchanged.
[[nodiscard]] std::string AbsolutePath(const std::string& path);

}  // namespace zklock
