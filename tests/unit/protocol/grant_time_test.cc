#include "protocol/grant_time.h"

#include <catch2/catch.hpp>
#include <string>

namespace zklock::protocol {
namespace {

ContenderName CuratorWriter(int number) {
  return ParseContenderName("_c_x-__WRIT__00000000" + std::to_string(number)).value();
}
ContenderName CuratorReader(int number) {
  return ParseContenderName("_c_x-__READ__00000000" + std::to_string(number)).value();
}

LastRelease Released(const ContenderName& by, std::int64_t written_ms) {
  return {.record = {.contender = by.full, .mode = by.mode(), .token = 1, .host = "b7"},
          .written_ms = written_ms};
}

ContenderName First() { return ParseContenderName("_c_x-lock-0000000000").value(); }

}  // namespace

TEST_CASE("The first contender of a lock acquired it when it was created") {
  CHECK(GrantTimeOf(First(), 1000, std::nullopt, std::nullopt) == GrantTime{1000, true});
}

TEST_CASE("A contender gets the lock when the one just before it releases it") {
  CHECK(GrantTimeOf(CuratorWriter(12), 1000, Released(CuratorWriter(11), 5000), std::nullopt) ==
        GrantTime{5000, true});
  CHECK(GrantTimeOf(CuratorReader(12), 1000, Released(CuratorWriter(11), 5000), std::nullopt) ==
        GrantTime{5000, true});
}

TEST_CASE("A contender created after the last release acquired the lock at once") {
  CHECK(GrantTimeOf(CuratorWriter(12), 9000, Released(CuratorWriter(11), 5000), std::nullopt) ==
        GrantTime{9000, true});
}

TEST_CASE("Without a record, the contender's creation is the earliest time of a grant") {
  CHECK(GrantTimeOf(CuratorWriter(12), 1000, std::nullopt, std::nullopt) == GrantTime{1000, false});
}

TEST_CASE("After the release of an earlier contender, another may have held in between") {
  CHECK(GrantTimeOf(CuratorWriter(14), 1000, Released(CuratorWriter(11), 5000), std::nullopt) ==
        GrantTime{5000, false});
}

TEST_CASE("A reader's release does not show when the other readers released") {
  CHECK(GrantTimeOf(CuratorWriter(12), 1000, Released(CuratorReader(11), 5000), std::nullopt) ==
        GrantTime{5000, false});
  // Nor does a reader wait for another one.
  CHECK(GrantTimeOf(CuratorReader(12), 1000, Released(CuratorReader(11), 5000), std::nullopt) ==
        GrantTime{1000, false});
}

TEST_CASE("The release of a later contender does not show the time of a grant") {
  CHECK(GrantTimeOf(CuratorReader(12), 1000, Released(CuratorReader(13), 5000), std::nullopt) ==
        GrantTime{1000, false});
}

TEST_CASE("A record without a contender does not show the time of a grant") {
  LastRelease last = Released(CuratorWriter(11), 5000);
  last.record.contender = "nobody";
  CHECK(GrantTimeOf(CuratorWriter(12), 1000, last, std::nullopt) == GrantTime{1000, false});
}

TEST_CASE("Consecutive readers acquired the lock together, or when they were created") {
  const HolderBefore before{.number = 11, .granted = {4000, true}};
  CHECK(GrantTimeOf(CuratorReader(12), 1000, std::nullopt, before) == GrantTime{4000, true});
  CHECK(GrantTimeOf(CuratorReader(12), 6000, std::nullopt, before) == GrantTime{6000, true});
}

TEST_CASE("After a gap, or a reader whose grant is inexact, a reader's grant is inexact") {
  CHECK(GrantTimeOf(CuratorReader(13), 1000, std::nullopt,
                    HolderBefore{.number = 11, .granted = {4000, true}}) == GrantTime{1000, false});
  CHECK(GrantTimeOf(CuratorReader(12), 1000, std::nullopt,
                    HolderBefore{.number = 11, .granted = {4000, false}}) ==
        GrantTime{1000, false});
}

}  // namespace zklock::protocol
