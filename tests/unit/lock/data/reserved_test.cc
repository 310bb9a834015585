#include "lock/data/reserved.h"

#include <catch2/catch.hpp>
#include <string>

#include "lock/data/contender_data.h"
#include "support/contender_names.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;

using test::kUuid;
const std::string kName = "web1-" + kUuid + "-reserve-lock-0000000007";
const std::string kData = R"({"host":"web1","reservation":{"id":"freeze","reason":"incident 4711",)"
                          R"("for":60000,"token":99},"version":1})";
constexpr zookeeper::NodeStat kStat{
    .created_zxid = 100, .created_ms = 1'700'000'000'000, .version = 3};

}  // namespace

TEST_CASE("A persistent contender with a reservation in its data is a reservation") {
  const auto reserved = FindReservation(kName, kData, kStat);
  REQUIRE(reserved);
  CHECK(
      reserved->reservation ==
      protocol::Reservation{.id = "freeze", .reason = "incident 4711", .lasts = 60s, .token = 99});
  CHECK(reserved->mode == protocol::Mode::kExclusive);
  CHECK(reserved->host == "web1");
  CHECK(reserved->since == 1'700'000'000'000ms);
  CHECK(reserved->until == 1'700'000'060'000ms);
  CHECK(reserved->version == 3);
}

TEST_CASE("A znode that lacks any property of a reservation is not one") {
  SECTION("a session owns it") {
    zookeeper::NodeStat stat = kStat;
    stat.ephemeral_owner = 17;
    CHECK_FALSE(FindReservation(kName, kData, stat));
  }
  SECTION("its name is not that of a zklock contender that reserves") {
    for (const std::string& name :
         {std::string("freeze"), "web1-" + kUuid + "-lock-0000000007",
          "_c_" + kUuid + "-reserve-lock-0000000007", "web1-" + kUuid + "-reserve-0000000007"}) {
      CAPTURE(name);
      CHECK_FALSE(FindReservation(name, kData, kStat));
    }
  }
  SECTION("its token is not older than its znode") {
    zookeeper::NodeStat stat = kStat;
    stat.created_zxid = 99;
    CHECK_FALSE(FindReservation(kName, kData, stat));
  }
  SECTION("its data is binary, huge, empty, or about something else") {
    const std::string huge = kData.substr(0, kData.size() - 1) + R"(,"label":")" +
                             std::string(kMostContenderData, 'x') + "\"}";
    for (const std::string& data :
         {std::string(), std::string("\0\x12\x34", 3), huge, std::string(R"({"host":"web1"})"),
          std::string(R"({"reserve":"freeze"})")}) {
      CHECK_FALSE(FindReservation(kName, data, kStat));
    }
  }
}

TEST_CASE("The mode of a reservation is in its name; in kazoo's dialect the data marks a writer") {
  const auto mode = [](const std::string& mark, const std::string& data_mode) {
    const std::string data =
        R"({"mode":")" + data_mode + R"(","reservation":{"id":"x","token":1}})";
    return FindReservation("web1-" + kUuid + "-reserve" + mark + "0000000007", data, kStat)->mode;
  };
  using enum protocol::Mode;
  CHECK(mode("-__READ__", "read") == kRead);
  CHECK(mode("-__READ__", "write") == kRead);
  CHECK(mode("-lock-", "read") == kExclusive);
  CHECK(mode("-lock-", "write") == kExclusive);
  CHECK(mode("__lock__", "write") == kWrite);
  CHECK(mode("__lock__", "read") == kExclusive);
  CHECK(mode("__rlock__", "read") == kRead);
}

TEST_CASE("A reservation keeps the data of its contender") {
  const std::string contender =
      FormatContenderData({.host = "web1", .user = "ci", .pid = 42, .reserve = "freeze"});
  const std::string data =
      FormatReservation(contender, {.id = "freeze", .reason = "why", .lasts = 60s}, 99);
  CHECK(ParseContenderData(data) ==
        ContenderData{.host = "web1",
                      .user = "ci",
                      .pid = 42,
                      .reservation = protocol::Reservation{
                          .id = "freeze", .reason = "why", .lasts = 60s, .token = 99}});
}

}  // namespace zklock::lock
