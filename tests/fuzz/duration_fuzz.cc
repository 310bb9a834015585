// The input is parsed as a DURATION. Its first eight bytes also serve as a duration to be
// formatted.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cli/text/duration.h"
#include "fuzz/fuzz.h"

namespace zklock::fuzz {
namespace {

using std::chrono::microseconds;

__extension__ using Wide = __int128;  // an extension of GCC and Clang, marked for -Wpedantic
constexpr Wide kLargest = Duration::max().count();
// Leading zeros are removed first; a number with more digits would overflow.
constexpr std::size_t kMostDigits = 22;

constexpr std::array<std::pair<std::string_view, std::int64_t>, 5> kUnits{{
    {"d", 86'400'000'000'000},
    {"h", 3'600'000'000'000},
    {"m", 60'000'000'000},
    {"s", 1'000'000'000},
    {"ms", 1'000'000},
}};

std::string_view TakeDigits(std::string_view& text) {
  const std::string_view digits =
      text.substr(0, std::min(text.find_first_not_of("0123456789"), text.size()));
  text.remove_prefix(digits.size());
  return digits;
}

Wide ToNumber(std::string_view digits) {
  Wide number = 0;
  for (const char digit : digits) number = number * 10 + (digit - '0');
  return number;
}

/// The sum computed in 128 bits, independent of the 64-bit steps of the code under test.
std::optional<Wide> Expected(std::string_view text) {
  Wide total = 0;
  bool first = true;
  for (std::size_t next_unit = 0; first || !text.empty(); first = false) {
    std::string_view whole = TakeDigits(text);
    const bool point = text.starts_with('.');
    if (point) text.remove_prefix(1);
    std::string_view fraction = point ? TakeDigits(text) : std::string_view();
    if (point ? fraction.empty() : whole.empty()) return std::nullopt;
    fraction = fraction.substr(0, 9);
    whole.remove_prefix(std::min(whole.find_first_not_of('0'), whole.size()));
    if (whole.size() > kMostDigits) return std::nullopt;

    std::string_view name =
        text.substr(0, std::min(text.find_first_of(".0123456789"), text.size()));
    text.remove_prefix(name.size());
    if (name.empty() && first && text.empty()) name = "s";
    while (next_unit < kUnits.size() && kUnits[next_unit].first != name) ++next_unit;
    if (next_unit == kUnits.size()) return std::nullopt;
    const Wide unit = kUnits[next_unit++].second;
    Wide scale = 1;
    for (std::size_t i = 0; i < fraction.size(); ++i) scale *= 10;
    total += ToNumber(whole) * unit + ToNumber(fraction) * unit / scale;
    if (total > kLargest) return std::nullopt;
  }
  return total;
}

void TryShown(Duration span) {
  const std::string text = cli::FormatDuration(span);
  const auto read = cli::ParseDuration(text);
  Require(read.has_value(), "a formatted duration can be parsed");
  Require(cli::FormatDuration(*read) == text, "a parsed duration formats as before");
  const Duration meant = std::max(span, Duration::zero());
  const Duration error = *read > meant ? *read - meant : meant - *read;
  Require(error <= std::max<Duration>(meant / 20, microseconds(50)),
          "a formatted duration is close");
}

}  // namespace

void Try(std::string_view input) {
  const auto span = cli::ParseDuration(input);
  const auto expected = Expected(input);
  Require(span.has_value() == expected.has_value(), "the grammar is the documented one");
  if (span) {
    Require(span->count() == *expected, "a span is exact");
    TryShown(*span);
  }
  std::int64_t bits = 0;
  if (input.size() < sizeof bits) return;
  std::memcpy(&bits, input.data(), sizeof bits);
  // The last byte selects how many bits are used, so that all magnitudes occur.
  TryShown(Duration(bits >> (static_cast<unsigned char>(input.back()) % 64)));
}

}  // namespace zklock::fuzz
