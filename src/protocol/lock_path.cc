#include "protocol/lock_path.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "base/utf8.h"

namespace zklock::protocol {
namespace {

/// Finds characters that the servers refuse (PathUtils.validatePath), or that no path should have.
std::optional<BadPath> CheckCharacters(std::string_view path) {
  while (!path.empty()) {
    const auto character = DecodeUtf8(path);
    if (!character) return BadPath::kNoUtf8;
    path.remove_prefix(character->size);
    const char32_t point = character->value;
    if (point < 0x20 || (point >= 0x7F && point <= 0x9F)) {
      return BadPath::kControlCharacter;
    }
    // The servers check UTF-16 code units, where everything above U+FFFF is a pair in D800..DFFF.
    if ((point >= 0xE000 && point <= 0xF8FF) || point >= 0xFFF0) {
      return BadPath::kRefusedCharacter;
    }
  }
  return std::nullopt;
}

std::optional<BadPath> CheckComponents(std::string_view path) {
  for (std::size_t start = 1; start <= path.size();) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    const std::string_view component = path.substr(start, end - start);
    if (component.empty()) {
      return end == path.size() ? BadPath::kEndsInSlash : BadPath::kEmptyComponent;
    }
    if (component == ".") return BadPath::kDot;
    if (component == "..") return BadPath::kDotDot;
    start = end + 1;
  }
  return std::nullopt;
}

}  // namespace

std::variant<std::string, BadPath> CheckAbsolutePath(std::string_view path) {
  if (path.empty()) return BadPath::kEmpty;
  if (path.front() != '/') return BadPath::kNotAbsolute;
  if (path == "/") return BadPath::kRoot;
  if (auto bad = CheckCharacters(path)) return *bad;
  if (auto bad = CheckComponents(path)) return *bad;
  if (path == "/zookeeper" || path.starts_with("/zookeeper/")) {
    return BadPath::kZooKeepers;
  }
  return std::string(path);
}

std::variant<std::string, BadPath> ResolveLock(std::string_view lock, std::string_view root) {
  if (lock.empty()) return BadPath::kEmpty;
  if (lock.front() == '/') return CheckAbsolutePath(lock);
  return CheckAbsolutePath(ChildPath(root, lock));
}

std::string ChildPath(std::string_view parent, std::string_view child) {
  std::string path(parent == "/" ? "" : parent);
  path.reserve(path.size() + 1 + child.size());
  path += '/';
  path += child;
  return path;
}

std::string ParentOf(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos || slash == 0) return "/";
  return std::string(path.substr(0, slash));
}

std::string_view BaseOf(std::string_view path) {
  // If there is no slash, npos + 1 is 0.
  return path.substr(path.rfind('/') + 1);
}

}  // namespace zklock::protocol
