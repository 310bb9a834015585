#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

namespace zklock::test {

/// Returns the path of a file or directory of the project, given relative to its top directory.
inline std::string SourcePath(std::string_view path) {
  const char* const source = std::getenv("ZKLOCK_SOURCE_DIR");
  if (source == nullptr) throw std::runtime_error("ZKLOCK_SOURCE_DIR is not set: run it by ctest");
  return std::string(source).append("/").append(path);
}

}  // namespace zklock::test
