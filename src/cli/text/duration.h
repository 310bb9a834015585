#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace zklock::cli {

/// Reads a DURATION: `90`, `1.5`, `500ms`, `30s`, `5m`, `2h`, `1d`, `1h30m` (units from the largest
/// to the smallest, each once; a plain number is seconds; any number may have a fraction). None if
/// it is negative or empty, if it overflows, or if other text follows.
[[nodiscard]] std::optional<Duration> ParseDuration(std::string_view text);

/// Returns whether `text` would be a DURATION if it did not overflow.
[[nodiscard]] bool IsTooLongDuration(std::string_view text);

/// Formats `span` for messages: "1h30m", "2.5s", "300ms", rounded to two units or a tenth.
/// ParseDuration() can read the result. A negative span is "0s".
[[nodiscard]] std::string FormatDuration(Duration span);
/// Likewise, for a span in coarser units, which may come from a server or a znode. If it exceeds
/// the maximum of Duration (292 years), returns the text of the maximum.
template <typename Rep, typename Period>
[[nodiscard]] std::string FormatDuration(std::chrono::duration<Rep, Period> span) {
  using Unit = std::chrono::duration<Rep, Period>;
  const auto longest = std::chrono::duration_cast<Unit>(Duration::max());
  return FormatDuration(Duration(std::clamp(span, Unit::zero(), longest)));
}

}  // namespace zklock::cli
