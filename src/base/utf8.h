#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace zklock {

struct Utf8Character {
  char32_t value = 0;
  std::size_t size = 0;  ///< in bytes
};

/// Decodes the first character of `text`, which must not be empty. Returns none if it is not valid
/// UTF-8 (RFC 3629): overlong forms, surrogates and code points above U+10FFFF are invalid.
[[nodiscard]] std::optional<Utf8Character> DecodeUtf8(std::string_view text);

}  // namespace zklock
