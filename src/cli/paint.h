#pragma once

#include <string>
#include <string_view>

namespace zklock::cli {

/// What a piece of text is, for terminals that show colours.
enum class Tone {
  kPlain,
  kTitle,    ///< what a line or a column is about
  kHeld,     ///< somebody has it
  kWaiting,  ///< somebody wants it
  kFaint,    ///< of no great interest
  kBad,      ///< what the reader may have to act upon
};

/// `text`, which is printable, in its colour; as it is without `colours`.
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
