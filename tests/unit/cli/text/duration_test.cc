#include "cli/text/duration.h"
#include "support/random.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zklock::cli {
namespace {

using namespace std::chrono_literals;

void CheckParsed(const std::vector<std::pair<std::string, Duration>>& cases) {
  for (const auto& [text, span] : cases) {
    CAPTURE(text);
    CHECK(ParseDuration(text) == std::optional(span));
  }
}

}  // namespace

TEST_CASE("A plain number means seconds") {
  CheckParsed({{"90", 90s}, {"0", 0s}, {"1.5", 1500ms}, {".5", 500ms}, {"007", 7s}});
}

TEST_CASE("Every unit is accepted") {
  CheckParsed({{"500ms", 500ms}, {"30s", 30s}, {"5m", 5min}, {"2h", 2h}, {"1d", 24h}, {"0ms", 0s}});
}

TEST_CASE("Units from the largest to the smallest are added up") {
  CheckParsed({{"1h30m", 90min},
               {"1d2h3m4s5ms", 26h + 3min + 4s + 5ms},
               {"1h0m", 1h},
               {"1m90s", 150s},
               {"1s1ms", 1001ms}});
}

TEST_CASE("Any unit may have a fraction, exact to the nanosecond") {
  CheckParsed({{"1.5h", 90min},
               {"0.5d", 12h},
               {"0.1s", 100ms},
               {"0.3", 300ms},
               {"1.5ms", 1500us},
               {"0.000001ms", 1ns},
               {"0.000000001", 1ns},
               {"0.000000001d", 86400ns},
               {"0.999999999s", 999999999ns},
               {"9007199254.740993", 9007199254740993000ns},
               {"1.5h1.5m", 90min + 90s}});
}

TEST_CASE("Digits after the ninth of a fraction are dropped") {
  CheckParsed({{"0.0000000019", 1ns},
               {"0.1234567899", 123456789ns},
               {"1.00000000000000000000000000001", 1s},
               {"0.0000000009", 0ns},
               {"0.0000009ms", 0ns},
               {"0.0000000009d", 0ns}});
}

TEST_CASE("Negative, empty, trailing and unknown text is refused") {
  for (const char* text :
       {"",      "-1",    "+1",  "1x", "1h 30m", " 1",    "1 ",  "1h30m ", "30m1h",
        "1h1h",  "1ms1s", ".",   "5.", "5.s",    ".s",    "1e3", "nan",    "inf",
        "0x10",  "1h30",  "h",   "ms", "1,5",    "1S",    "1H",  "1sec",   "1..5",
        "1.5.5", "1m-1s", "1us", "1w", "\n",     "1h30m5"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseDuration(text));
  }
  CHECK_FALSE(ParseDuration(std::string_view("1\0", 2)));
}

TEST_CASE("An overflow is refused, but the largest span is not") {
  CheckParsed({{"9223372036.854775807", Duration::max()},
               {"9223372036854ms", 9223372036854ms},
               {"106751d", 106751 * 24h},
               {"00000000000000000000000000001", 1s}});
  for (const char* text : {"9223372036.854775808", "9223372037", "9223372036855ms", "106752d",
                           "293000d", "99999999999999999999999", "106751d24h", "2562047h1000000m",
                           "18446744073709551617", "9223372036s855ms"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseDuration(text));
    CHECK(IsTooLongDuration(text));
  }
  for (const char* text : {"106751d", "106752dd", "106752d1d", "-106752d", ""}) {
    CAPTURE(text);
    CHECK_FALSE(IsTooLongDuration(text));
  }
}

TEST_CASE("A span is shown in at most two units") {
  const std::vector<std::pair<Duration, std::string>> cases{
      {0s, "0s"},     {300ms, "300ms"},      {2500ms, "2.5s"},  {30s, "30s"},
      {90s, "1m30s"}, {5min, "5m"},          {90min, "1h30m"},  {2h, "2h"},
      {24h, "1d"},    {51h + 20min, "2d3h"}, {2500us, "2.5ms"}, {Duration::max(), "106751d23h"},
  };
  for (const auto& [span, text] : cases) CHECK(FormatDuration(span) == text);
}

TEST_CASE("A span that is too long to compute with is shown as the longest") {
  CHECK(FormatDuration(std::chrono::milliseconds::max()) == "106751d23h");
  CHECK(FormatDuration(std::chrono::milliseconds::min()) == "0s");
  CHECK(FormatDuration(std::chrono::seconds(773505025655)) == "106751d23h");
}

TEST_CASE("A span is rounded before its unit is chosen") {
  CHECK(FormatDuration(59970ms) == "1m");
  CHECK(FormatDuration(59940ms) == "59.9s");
  CHECK(FormatDuration(999700us) == "1s");
  CHECK(FormatDuration(9960us) == "10ms");
  CHECK(FormatDuration(60min - 400ms) == "1h");
  CHECK(FormatDuration(24h - 20s) == "1d");
  CHECK(FormatDuration(49us) == "0s");
  CHECK(FormatDuration(50us) == "0.1ms");
}

TEST_CASE("A negative span is shown as 0s") {
  CHECK(FormatDuration(-1ns) == "0s");
  CHECK(FormatDuration(Duration::min()) == "0s");
}

TEST_CASE("A formatted span can be parsed, and is close to the original") {
  test::ForRandomRounds(5000, [](std::mt19937_64& random) {
    const Duration span(static_cast<Duration::rep>(random() >> (1 + random() % 62)));
    const std::string text = FormatDuration(span);
    CAPTURE(span.count(), text);
    const auto read = ParseDuration(text);
    REQUIRE(read);
    // Rounding to two units loses little: 1d15h may be half an hour off, for example.
    const Duration error = *read > span ? *read - span : span - *read;
    CHECK(error <= std::max<Duration>(span / 20, 50us));
  });
}

}  // namespace zklock::cli
