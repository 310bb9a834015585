#include "protocol/release_record.h"

#include <catch2/catch.hpp>
#include <string>

namespace zklock::protocol {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

const ReleaseRecord kNightly{.contender = "b7-0f8fad5b-d9cb-469f-a165-70867728950e-lock-0000000003",
                             .mode = Mode::kExclusive,
                             .token = 4294967342,
                             .duration = 83'042ms,
                             .status = 3,
                             .host = "b7.example.org"};
constexpr const char* kNightlyText =
    "zklock/1 b7-0f8fad5b-d9cb-469f-a165-70867728950e-lock-0000000003 exclusive 4294967342 83.042 "
    "3 "
    "b7.example.org";

TEST_CASE("The data of a LOCK before its first run is the marker alone") {
  CHECK(FormatLockData({}) == "zklock/1");
  CHECK(ParseLockData("zklock/1") == LockData{});
}

TEST_CASE("A release record is one line of words, parsed as it was formatted") {
  CHECK(FormatLockData({kNightly}) == kNightlyText);
  CHECK(ParseLockData(kNightlyText) == LockData{kNightly});

  const ReleaseRecord killed{"h-__READ__-000000001", Mode::kRead, 1, 0ms, 137, "h"};
  CHECK(FormatLockData({killed}) == "zklock/1 h-__READ__-000000001 read 1 0.000 137 h");
  CHECK(ParseLockData(FormatLockData({killed})) == LockData{killed});

  const ReleaseRecord longest{"x", Mode::kWrite, INT64_MAX, 1'000'000'000'000'000ms, 255, "h"};
  CHECK(FormatLockData({longest}) ==
        "zklock/1 x write 9223372036854775807 1000000000000.000 255 h");
  CHECK(ParseLockData(FormatLockData({longest})) == LockData{longest});
}

TEST_CASE("The record of a reservation has neither a duration nor a status") {
  const ReleaseRecord freeze{.contender = "x", .token = 7, .host = "web1", .is_reservation = true};
  CHECK(FormatLockData({freeze}) == "zklock/1 x exclusive 7 - - web1");
  CHECK(ParseLockData("zklock/1 x exclusive 7 - - web1") == LockData{freeze});
  CHECK_FALSE(ParseLockData("zklock/1 x exclusive 7 - 0 web1"));
  CHECK_FALSE(ParseLockData("zklock/1 x exclusive 7 0.000 - web1"));
}

TEST_CASE("Names are turned into single words and cut to the maximum length") {
  ReleaseRecord record = kNightly;
  record.host = "two words\n\x7f\xc3\xa4";
  CHECK(ParseLockData(FormatLockData({record}))->last_release->host == "two-words----");
  record.host = "";
  CHECK(ParseLockData(FormatLockData({record}))->last_release->host == "-");
  record.host = std::string(5000, 'h');
  CHECK(ParseLockData(FormatLockData({record}))->last_release->host == std::string(255, 'h'));
  record.duration = -1ms;
  CHECK(ParseLockData(FormatLockData({record}))->last_release->duration == 0ms);
  record.duration = std::chrono::milliseconds::max();
  CHECK(ParseLockData(FormatLockData({record}))->last_release->duration == 1'000'000'000'000'000ms);
}

TEST_CASE("Data that zklock would not have written is not accepted") {
  for (const std::string& text : {""s,
                                  "zklock"s,
                                  "zklock/"s,
                                  "zklock/2"s,
                                  "zklock/10"s,
                                  "zklock/1 "s,
                                  " zklock/1"s,
                                  "zklock/1\n"s,
                                  "zklock/1\0"s,
                                  "ZKLOCK/1"s,
                                  "127.0.0.1"s,
                                  "{\"version\":1}"s,
                                  "\0"s,
                                  "zklock/1 x"s,
                                  "zklock/1 x exclusive 1 1.000 0"s,
                                  "zklock/1 x exclusive 1 1.000 0 "s,
                                  "zklock/1 x exclusive 1 1.000 0 h "s,
                                  "zklock/1 x exclusive 1 1.000 0 h more"s,
                                  "zklock/1  x exclusive 1 1.000 0 h"s,
                                  "zklock/1 x  exclusive 1 1.000 0 h"s,
                                  "zklock/1\tx exclusive 1 1.000 0 h"s,
                                  "zklock/1 x exclusive 1 1.000 0 h\n"s,
                                  "zklock/1 x exclusive 1 1.000 0 h\0"s,
                                  "zklock/1 x\0y exclusive 1 1.000 0 h"s,
                                  "zklock/1 a/x exclusive 1 1.000 0 h"s,
                                  "zklock/1 x Exclusive 1 1.000 0 h"s,
                                  "zklock/1 x try 1 1.000 0 h"s,
                                  "zklock/1 x exclusive 0 1.000 0 h"s,
                                  "zklock/1 x exclusive -1 1.000 0 h"s,
                                  "zklock/1 x exclusive +1 1.000 0 h"s,
                                  "zklock/1 x exclusive 01 1.000 0 h"s,
                                  "zklock/1 x exclusive 1x 1.000 0 h"s,
                                  "zklock/1 x exclusive 9223372036854775808 1.000 0 h"s,
                                  "zklock/1 x exclusive 1 1 0 h"s,
                                  "zklock/1 x exclusive 1 1. 0 h"s,
                                  "zklock/1 x exclusive 1 .000 0 h"s,
                                  "zklock/1 x exclusive 1 1.00 0 h"s,
                                  "zklock/1 x exclusive 1 1.0000 0 h"s,
                                  "zklock/1 x exclusive 1 -1.000 0 h"s,
                                  "zklock/1 x exclusive 1 1.-01 0 h"s,
                                  "zklock/1 x exclusive 1 01.000 0 h"s,
                                  "zklock/1 x exclusive 1 1.0.0 0 h"s,
                                  "zklock/1 x exclusive 1 1000000000000.001 0 h"s,
                                  "zklock/1 x exclusive 1 9223372036854775807.000 0 h"s,
                                  "zklock/1 x exclusive 1 1.000 256 h"s,
                                  "zklock/1 x exclusive 1 1.000 -1 h"s,
                                  "zklock/1 x exclusive 1 1.000 00 h"s,
                                  "zklock/1 x exclusive 1 1.000 0 \xc3\xa4"s,
                                  "zklock/1 x exclusive 1 1.000 0 "s + std::string(256, 'h'),
                                  "zklock/1 "s + std::string(1 << 20, 'x'),
                                  std::string(1 << 20, '\0'),
                                  "zklock/1"s + std::string(1 << 20, ' ')}) {
    CAPTURE(text.substr(0, 100), text.size());
    CHECK_FALSE(ParseLockData(text));
  }
}

}  // namespace
}  // namespace zklock::protocol
