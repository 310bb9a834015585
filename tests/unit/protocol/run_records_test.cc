#include "protocol/run_records.h"

#include <catch2/catch.hpp>
#include <string>

namespace zklock::protocol {
namespace {

TEST_CASE("The last success is parsed as it was formatted") {
  const LastSuccess success{ServerTime(1'789'000'000'123), "db1.example.org"};
  CHECK(FormatLastSuccess(success) == "zklock/1 1789000000123 db1.example.org");
  REQUIRE(ParseLastRunData("zklock/1 1789000000123 db1.example.org"));
  CHECK(ParseLastRunData("zklock/1 1789000000123 db1.example.org")->success == success);
  CHECK(FormatLastSuccess({ServerTime(0), "a b\n\xff"}) == "zklock/1 0 a-b--");
  CHECK(FormatLastSuccess({ServerTime(7), ""}) == "zklock/1 7 -");
}

TEST_CASE("Data that zklock did not write is not a last success") {
  for (const std::string text :
       {"zklock/1", "zklock/1 ", "zklock/1 5", "zklock/1 5 ", "zklock/1  h", "zklock/1 -5 h",
        "zklock/1 05 h", "zklock/1 5x h", "zklock/1 5 h x", "zklock/1 5 h\r\n", "zklock/2 5 h",
        "zklock/1 99999999999999999999 h", "{\"began\":5}"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseLastRunData(text));
  }
  CHECK_FALSE(ParseLastRunData(std::string("zklock/1 5 h\0", 13)));
  CHECK_FALSE(ParseLastRunData("zklock/1 5 " + std::string(1 << 20, 'h')));
  CHECK_FALSE(ParseLastRunData("zklock/1 5 " + std::string(256, 'h')));
}

TEST_CASE("Lines below the last success are left to newer versions") {
  const LastSuccess success{ServerTime(5), "h"};
  for (const std::string below : {"\n", "\n{\"began\":5}\n", "\n\n\xff"}) {
    CAPTURE(below);
    const std::string text = "zklock/1 5 h" + below;
    const auto data = ParseLastRunData(text);
    REQUIRE(data);
    CHECK(data->success == success);
    CHECK(data->below == below);
    // No success is known.
    const auto without = ParseLastRunData(below);
    REQUIRE(without);
    CHECK_FALSE(without->success);
    CHECK(without->below == below);
  }
  REQUIRE(ParseLastRunData(""));
  CHECK_FALSE(ParseLastRunData("")->success);
  CHECK(ParseLastRunData("zklock/1 5 h\n" + std::string(1 << 20, 'x')));
}

TEST_CASE("The record of a start is parsed as it was formatted, and nothing else is") {
  const StartRecord start{8'589'934'700, "db1.example.org"};
  CHECK(FormatStartRecord(start) == "zklock/1 8589934700 db1.example.org");
  CHECK(ParseStartRecord("zklock/1 8589934700 db1.example.org") == start);
  for (const std::string text : {"", "zklock/1", "zklock/1 5", "zklock/1 05 h", "zklock/1 -5 h",
                                 "zklock/1 5 h\n", "zklock/2 5 h", "yesterday"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseStartRecord(text));
  }
}

TEST_CASE("The newest success is the last run's, or one that was recorded before") {
  const LastSuccess kept{ServerTime(5000), "a"};
  ReleaseRecord record{
      .contender = "x", .token = 1, .duration = ServerTime(2000), .status = 0, .host = "b"};
  CHECK(NewestSuccess(kept, std::nullopt, {}) == kept);
  CHECK_FALSE(NewestSuccess(std::nullopt, std::nullopt, {}));
  CHECK(NewestSuccess(std::nullopt, record, ServerTime(9000)) ==
        LastSuccess{ServerTime(7000), "b"});
  CHECK(NewestSuccess(kept, record, ServerTime(9000)) == LastSuccess{ServerTime(7000), "b"});
  CHECK(NewestSuccess(kept, record, ServerTime(6000)) == kept);
  record.mode = Mode::kWrite;
  CHECK(NewestSuccess(kept, record, ServerTime(9000)) == LastSuccess{ServerTime(7000), "b"});
  record.mode = Mode::kRead;
  CHECK(NewestSuccess(kept, record, ServerTime(9000)) == kept);
  CHECK_FALSE(NewestSuccess(std::nullopt, record, ServerTime(9000)));
  record.mode = Mode::kExclusive;
  record.is_reservation = true;
  CHECK(NewestSuccess(kept, record, ServerTime(9000)) == kept);
  record.is_reservation = false;
  record.status = 1;
  CHECK(NewestSuccess(kept, record, ServerTime(9000)) == kept);
  CHECK_FALSE(NewestSuccess(std::nullopt, record, ServerTime(9000)));
}

}  // namespace
}  // namespace zklock::protocol
