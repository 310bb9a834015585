#include "protocol/lock_path.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace zklock::protocol {
namespace {

constexpr char32_t kInvalid = 0xFFFFFFFF;

/// Decodes the code point at `position` and advances past it; kInvalid if it is not UTF-8 (RFC
/// 3629: no overlong form, no surrogate, nothing above U+10FFFF).
char32_t NextCodePoint(std::string_view text, std::size_t& position) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(position++);
  if (lead < 0x80) return lead;

  std::size_t more = 0;
  char32_t least = 0;
  char32_t point = 0;
  if (lead >= 0xC0 && lead < 0xE0) {
    more = 1, least = 0x80, point = lead & 0x1Fu;
  } else if (lead >= 0xE0 && lead < 0xF0) {
    more = 2, least = 0x800, point = lead & 0x0Fu;
  } else if (lead >= 0xF0 && lead < 0xF8) {
    more = 3, least = 0x10000, point = lead & 0x07u;
  } else {
    return kInvalid;
  }
  for (; more > 0; --more, ++position) {
    if (position >= text.size() || (byte(position) & 0xC0u) != 0x80u) return kInvalid;
    point = (point << 6) | (byte(position) & 0x3Fu);
  }
  const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
  return point < least || point > 0x10FFFF || surrogate ? kInvalid : point;
}

/// Finds characters that the servers refuse (PathUtils.validatePath), or that no path should have.
std::optional<BadPath> CheckCharacters(std::string_view path) {
  for (std::size_t position = 0; position < path.size();) {
    const char32_t point = NextCodePoint(path, position);
    if (point == kInvalid) return BadPath::kNoUtf8;
    if (point < 0x20 || (point >= 0x7F && point <= 0x9F)) {
      return BadPath::kControlCharacter;
    }
    // The servers check UTF-16, in which everything above U+FFFF is a pair of D800..DFFF.
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
  // Without a slash, npos + 1 is 0.
  return path.substr(path.rfind('/') + 1);
}

}  // namespace zklock::protocol
