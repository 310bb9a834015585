#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace zklock::cli {

/// A whole number from `least` to `most`, with nothing around it.
[[nodiscard]] std::optional<int> ParseNumber(std::string_view text, int least, int most);

/// "TERM", "SIGTERM", "term" or "15".
[[nodiscard]] std::optional<int> ParseSignal(std::string text);

}  // namespace zklock::cli
