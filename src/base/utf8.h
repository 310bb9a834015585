#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace zklock {

struct Utf8Character {
  char32_t value = 0;
  std::size_t size = 0;  ///< in bytes
};

/// The first character of `text`, which is not empty. None if it is not valid UTF-8 (RFC 3629): an
/// overlong form, a surrogate or a code point above U+10FFFF is not.
[[nodiscard]] std::optional<Utf8Character> DecodeUtf8(std::string_view text);

}  // namespace zklock
