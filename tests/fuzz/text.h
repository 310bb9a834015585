#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace zklock::fuzz {

// Checks text by the standards, independently of src/, so that an error is missed only if both
// contain it.

/// The code points of `text`, or none if it is not UTF-8 as in RFC 3629.
[[nodiscard]] std::optional<std::u32string> DecodeUtf8(std::string_view text);

/// C0, DEL and C1.
[[nodiscard]] bool IsControl(char32_t character);

/// Requires that a terminal shows `text` literally: UTF-8, no control characters except newlines if
/// `lines`, and no characters that reorder or hide their neighbours.
void RequireHarmless(std::string_view text, bool lines);

}  // namespace zklock::fuzz
