#include "cli/text/duration.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace zklock::cli {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

struct Unit {
  std::string_view name;
  Duration span;
};

/// From the largest to the smallest.
constexpr std::array kUnits{
    Unit{"d", days(1)},    Unit{"h", hours(1)},         Unit{"m", minutes(1)},
    Unit{"s", seconds(1)}, Unit{"ms", milliseconds(1)},
};
constexpr std::size_t kSeconds = 3;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string_view TakeDigits(std::string_view& text) {
  std::size_t length = 0;
  while (length < text.size() && IsDigit(text[length])) ++length;
  const std::string_view digits = text.substr(0, length);
  text.remove_prefix(length);
  return digits;
}

/// `12`, `1.5`, `.5`: the digits before and after the point.
struct Number {
  std::string_view whole;
  std::string_view fraction;
};

std::optional<Number> TakeNumber(std::string_view& text) {
  Number number{.whole = TakeDigits(text), .fraction = {}};
  if (!text.starts_with('.')) return number.whole.empty() ? std::nullopt : std::optional(number);
  text.remove_prefix(1);
  number.fraction = TakeDigits(text);
  return number.fraction.empty() ? std::nullopt : std::optional(number);
}

/// Takes a unit's name, which is everything up to a digit or a point. Returns the unit's index.
std::optional<std::size_t> TakeUnit(std::string_view& text) {
  const std::string_view name = text.substr(0, text.find_first_of("0123456789."));
  for (std::size_t i = 0; i < kUnits.size(); ++i) {
    if (kUnits[i].name != name) continue;
    text.remove_prefix(name.size());
    return i;
  }
  return std::nullopt;
}

/// Returns `number` times `unit`, exact to the nanosecond, unlike a double. None on overflow.
std::optional<Duration> Times(const Number& number, Duration unit) {
  std::int64_t total = 0;
  for (const char digit : number.whole) {
    if (__builtin_mul_overflow(total, 10, &total)) return std::nullopt;
    if (__builtin_add_overflow(total, digit - '0', &total)) return std::nullopt;
  }
  if (__builtin_mul_overflow(total, unit.count(), &total)) return std::nullopt;
  std::int64_t step = unit.count();
  // Digits after the ninth are dropped. Up to there, a division is inexact only if the digit is
  // worth less than 1 ns.
  for (const char digit : number.fraction.substr(0, 9)) {
    step /= 10;
    if (__builtin_add_overflow(total, step * (digit - '0'), &total)) return std::nullopt;
  }
  return Duration(total);
}

/// A DURATION; the longest span if it overflows.
struct Parsed {
  Duration span{};
  bool is_too_long = false;
};

std::optional<Parsed> Parse(std::string_view text) {
  Parsed parsed;
  std::optional<std::size_t> last_unit;
  do {
    const auto number = TakeNumber(text);
    if (!number) return std::nullopt;
    // A number without a unit must be the only one: `1h30` could mean minutes or seconds.
    const bool plain = text.empty() && !last_unit;
    const auto unit = plain ? kSeconds : TakeUnit(text);
    if (!unit || (last_unit && *unit <= *last_unit)) return std::nullopt;
    last_unit = unit;
    const auto part = Times(*number, kUnits[*unit].span);
    if (!part || *part > Duration::max() - parsed.span) {
      parsed = {Duration::max(), true};
    } else {
      parsed.span += *part;
    }
  } while (!text.empty());
  return parsed;
}

/// Returns the precision to which FormatDuration rounds a span of this size.
Duration Resolution(Duration span) {
  if (span < milliseconds(10)) return microseconds(100);
  if (span < seconds(1)) return milliseconds(1);
  if (span < minutes(1)) return milliseconds(100);
  if (span < hours(1)) return seconds(1);
  if (span < days(1)) return minutes(1);
  return hours(1);
}

/// Returns `2s` or `2.5s`: `span` in `unit`s, with tenths.
std::string WithTenth(Duration span, Duration unit, std::string_view name) {
  std::string text = std::to_string(span / unit);
  if (const auto tenth = span % unit / (unit / 10)) text += '.' + std::to_string(tenth);
  return text.append(name);
}

}  // namespace

std::optional<Duration> ParseDuration(std::string_view text) {
  const auto parsed = Parse(text);
  return parsed && !parsed->is_too_long ? std::optional(parsed->span) : std::nullopt;
}

bool IsTooLongDuration(std::string_view text) {
  const auto parsed = Parse(text);
  return parsed && parsed->is_too_long;
}

std::string FormatDuration(Duration span) {
  if (span < Duration::zero()) return "0s";
  // Round before choosing a unit, so that 59.97 s becomes 1m and not 60s.
  const Duration resolution = Resolution(span);
  const Duration rest = span % resolution;
  span -= rest;
  if (rest >= resolution / 2 && span <= Duration::max() - resolution) span += resolution;

  if (span == Duration::zero()) return "0s";
  if (span < seconds(1)) return WithTenth(span, milliseconds(1), "ms");
  if (span < minutes(1)) return WithTenth(span, seconds(1), "s");
  std::size_t i = 0;
  while (span < kUnits[i].span) ++i;
  std::string text = std::to_string(span / kUnits[i].span).append(kUnits[i].name);
  const Unit& smaller = kUnits[i + 1];
  if (const auto count = span % kUnits[i].span / smaller.span) {
    text += std::to_string(count).append(smaller.name);
  }
  return text;
}

}  // namespace zklock::cli
