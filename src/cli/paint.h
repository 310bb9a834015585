#pragma once

#include <string>
#include <string_view>

namespace zklock::cli {

/// The role of a piece of text, on terminals with colours.
enum class Tone {
  kPlain,
  kTitle,    ///< of a line or a column
  kHeld,     ///< a holder
  kWaiting,  ///< a waiter
  kFaint,    ///< less important
  kBad,      ///< the reader may have to act
};

/// `text`, which is printable, in the colour of `tone`; unchanged without `colours`.
[[nodiscard]] inline std::string Paint(Tone tone, std::string_view text, bool colours) {
  const auto code = [tone]() -> std::string_view {
    switch (tone) {
      case Tone::kPlain:
        return "";
      case Tone::kTitle:
        return "1";
      case Tone::kHeld:
        return "32";
      case Tone::kWaiting:
        return "33";
      case Tone::kFaint:
        return "2";
      case Tone::kBad:
        return "31";
    }
    return "";
  }();
  if (!colours || code.empty() || text.empty()) return std::string(text);
  return std::string("\x1b[").append(code).append("m").append(text).append("\x1b[0m");
}

}  // namespace zklock::cli
