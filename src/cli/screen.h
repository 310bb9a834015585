#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace zklock::cli {

// The control sequences (ECMA-48 and xterm's) of a full screen that is drawn over and over.

/// The screen's other half, so that what was on it comes back in the end; no cursor.
inline constexpr std::string_view kEnterScreen = "\x1b[?1049h\x1b[?25l";
inline constexpr std::string_view kLeaveScreen = "\x1b[?25h\x1b[?1049l";

/// `text`, lines each with its end, drawn over what is there: no more than `rows` of them (0: no
/// limit), and nothing left of the last drawing. In one piece, for terminals that know how to wait
/// for all of it, and without a moment of emptiness for the others.
[[nodiscard]] std::string Frame(std::string_view text, std::size_t rows);

}  // namespace zklock::cli
