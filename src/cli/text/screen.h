#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace zklock::cli {

// Control sequences (ECMA-48 and xterm) for a full screen that is redrawn repeatedly.

/// Switch to the alternate screen without a cursor, and back to what the screen showed before.
inline constexpr std::string_view kEnterScreen = "\x1b[?1049h\x1b[?25l";
inline constexpr std::string_view kLeaveScreen = "\x1b[?25h\x1b[?1049l";

/// Draws the lines of `text`, at most `rows` of them (0: no limit), over the previous frame, and
/// erases the rest of that frame. Terminals that support synchronized updates show it all in one
/// go; on others, the screen is never blank in between.
[[nodiscard]] std::string Frame(std::string_view text, std::size_t rows);

}  // namespace zklock::cli
