#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace zklock::fuzz {

// A second opinion on text: written from the standards and not from src/, so that both would have
// to err in the same way.

/// The code points of UTF-8 as RFC 3629 has it; none when it is not.
[[nodiscard]] std::optional<std::u32string> DecodeUtf8(std::string_view text);

/// C0, DEL and C1.
[[nodiscard]] bool IsControl(char32_t character);

/// Requires that a terminal shows `text` as what it is: UTF-8, no control but the ends of lines
/// where `lines` says so, nothing that turns or hides its neighbours.
void RequireHarmless(std::string_view text, bool lines);

}  // namespace zklock::fuzz
