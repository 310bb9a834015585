#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace zklock {

/// Removes everything up to and including the next `separator` from `text`, or all of `text` if
/// there is none. Returns the removed part without the separator.
inline std::string_view TakeUntil(std::string_view& text, char separator) {
  const std::string_view taken = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(taken.size() + 1, text.size()));
  return taken;
}

/// Parses all of `text` as a decimal number. Returns none if it is not one, or is out of range.
template <typename Number>
[[nodiscard]] std::optional<Number> ParseWhole(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace zklock
