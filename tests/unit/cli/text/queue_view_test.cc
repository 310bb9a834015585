#include "cli/text/queue_view.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "unit/cli/fake_survey.h"

namespace zklock::cli {
namespace {

using test::Contender;
using test::Found;
using test::kNoon;
using test::kUuid;
using test::OurName;

ContenderView Only(const lock::QueueEntry& entry) {
  return DescribeQueue(Found({.path = "/l", .entries = {entry}})).at(0);
}

}  // namespace

TEST_CASE("A time for programs is in UTC with milliseconds, and an impossible one is omitted") {
  CHECK(FormatUtc(1709301791042) == "2024-03-01T14:03:11.042Z");
  CHECK(FormatUtc(0) == "1970-01-01T00:00:00.000Z");
  CHECK(FormatUtc(-1) == std::nullopt);
  CHECK(FormatUtc(std::numeric_limits<std::int64_t>::max()) == std::nullopt);
}

TEST_CASE("A queue's description begins with the holders, and names each waiter's predecessor") {
  const auto queue = DescribeQueue(Found(
      {.path = "/l",
       .entries = {Contender("_c_x-__READ__0000000001", 1), Contender("_c_y-__READ__0000000002", 2),
                   Contender("_c_z-__WRIT__0000000003", 3)}}));
  CHECK(queue[0].state == ContenderState::kHeld);
  CHECK(queue[1].state == ContenderState::kHeld);
  CHECK(queue[1].mode == protocol::Mode::kRead);
  CHECK(queue[2].state == ContenderState::kWaiting);
  CHECK(queue[2].mode == protocol::Mode::kWrite);
  CHECK(queue[2].waits_for ==
        lock::Predecessor{2, "_c_y-__READ__0000000002", "/l/_c_y-__READ__0000000002"});
  CHECK(queue[2].since_ms == kNoon + 3000);
  CHECK(queue[2].since_exact);
  CHECK(queue[2].token == 3);
}

TEST_CASE("A stray znode has no position and no token") {
  lock::QueueEntry entry = Contender("build-2024010203", 5);
  entry.stat.ephemeral_owner = 0;
  const ContenderView view = Only(entry);
  CHECK(view.state == ContenderState::kNoContender);
  CHECK(view.position == std::nullopt);
  CHECK(view.token == std::nullopt);
  CHECK(view.since_ms == kNoon + 5000);
}

TEST_CASE("A request to leave in Curator's form is recognised") {
  for (const std::string& name : {test::kCuratorReader + "0000000001", OurName("b7", "lock-", 1)}) {
    const ContenderView view = Only(Contender(name, 1, std::string(lock::kCuratorRevoke)));
    REQUIRE(view.data.release_request);
    CHECK(view.data.release_request->program == protocol::Program::kCurator);
  }
}

TEST_CASE("The mark of release --force is not a request to leave") {
  const ContenderView view = Only(
      Contender(OurName("b7", "lock-", 1), 1,
                lock::FormatContenderData({.host = "b7", .release_request = {{.forced = true}}})));
  CHECK(view.data.host == "b7");
  CHECK_FALSE(view.data.release_request);
}

TEST_CASE("A holder's grant follows from its predecessor's release record") {
  lock::LockSurvey lock{.path = "/l", .entries = {Contender("_c_x-lock-0000000003", 17)}};
  ContenderView holder = DescribeQueue(Found(lock)).at(0);
  CHECK_FALSE(holder.since_exact);
  CHECK(holder.since_ms == kNoon + 17000);
  test::SetLastRun(lock, {.contender = "_c_w-lock-0000000002", .token = 1, .host = "b"},
                   kNoon + 60000);
  holder = DescribeQueue(Found(lock)).at(0);
  CHECK(holder.since_exact);
  CHECK(holder.since_ms == kNoon + 60000);
  lock.data = "zklock/1 nonsense";
  CHECK_FALSE(DescribeQueue(Found(lock)).at(0).since_exact);
}

TEST_CASE("Readers after the first have an exact grant if the first one has") {
  const auto queue = DescribeQueue(Found(
      {.path = "/l",
       .entries = {Contender("_c_x-__READ__0000000000", 1), Contender("_c_y-__READ__0000000001", 2),
                   Contender("_c_z-__READ__0000000003", 3)}}));
  CHECK(queue[1].since_exact);
  CHECK(queue[1].since_ms == kNoon + 2000);
  CHECK_FALSE(queue[2].since_exact);
}

TEST_CASE("Programs are recognised by their names") {
  CHECK(ProgramName(Only(Contender("_c_" + kUuid + "-lock-0000000000", 1))) == "Curator");
  CHECK(ProgramName(Only(Contender("_c_0123456789abcdef0123456789abcdef-lock-0000000000", 1))) ==
        "go-zookeeper");
  CHECK(ProgramName(Only(Contender("0123456789abcdef__rlock__0000000000", 1))) == "kazoo");
  CHECK(ProgramName(Only(Contender("x-10002-0000000000", 1))) == "C recipe");
  CHECK(ProgramName(Only(Contender(OurName("b7", "lock-", 0), 1))) == "zklock");
  CHECK(ProgramName(Only(Contender("job0000000000", 1))) == "unknown");
}

TEST_CASE("Other programs' data is shown as far as its format is known") {
  const ContenderView curator = Only(Contender("_c_x-lock-0000000000", 1, "10.1.2.3"));
  CHECK(curator.data.host == "10.1.2.3");
  const ContenderView own_data = Only(Contender("_c_x-lock-0000000000", 1, "{\"host\":\"x\"}"));
  CHECK(own_data.data.host == std::nullopt);
  const ContenderView kazoo = Only(Contender("0123__lock__0000000000", 1, "nightly"));
  CHECK(kazoo.data.label == "nightly");
}

TEST_CASE("The host of a zklock contender without data is taken from its name") {
  lock::QueueEntry entry = Contender(OurName("build-7.example", "__WRIT__", 0), 1);
  CHECK(Only(entry).data.host == "build-7.example");
  entry = Contender(OurName("build7", "lock-", 0), 1);
  entry.readable = false;
  const ContenderView view = Only(entry);
  CHECK(view.data.host == "build7");
  CHECK(view.since_ms == std::nullopt);
  CHECK(view.token == std::nullopt);
}

TEST_CASE("A permit's host is read from its name, and its turnstile znode is named") {
  lock::LockSurvey lock{.path = "/s", .permit_limit = 1};
  lock.entries = {Contender(OurName("build7", "lease-", 0), 1),
                  Contender(OurName("build8", "lease-", 1), 2)};
  lock.entries[1].turnstile_name = "other";
  const auto queue = DescribeQueue(test::FoundPermits(lock, 1));
  CHECK(queue[0].data.host == "build7");
  CHECK(queue[0].state == ContenderState::kHeld);
  CHECK(queue[0].since_exact);
  CHECK(queue[0].for_permit);
  CHECK(queue[1].state == ContenderState::kWaiting);
  CHECK(queue[1].turnstile_name == "other");
}

TEST_CASE(
    "The grant of several permits is exact if there was room for all when they were created") {
  lock::LockSurvey lock{.path = "/s", .permit_limit = 4};
  lock.entries = {Contender(OurName("build7", "lease-", 0), 1),
                  Contender(OurName("build8", "lease-", 2), 2)};
  lock.entries[0].more = {"second"};
  lock.entries[1].more = {"second", "third"};
  const auto queue = DescribeQueue(test::FoundPermits(lock, 2));
  CHECK(queue[0].since_exact);
  CHECK_FALSE(queue[1].since_exact);
}

TEST_CASE("The last run of a mutex does not show the grant of a permit") {
  lock::LockSurvey lock{.path = "/s", .permit_limit = 1};
  lock.entries = {Contender("_c_x-lease-0000000003", 17)};
  test::SetLastRun(lock, {.contender = "_c_w-lock-0000000002", .token = 1, .host = "b"},
                   kNoon + 60000);
  const ContenderView holder = DescribeQueue(test::FoundPermits(lock, 1)).at(0);
  CHECK_FALSE(holder.since_exact);
  CHECK(holder.since_ms == kNoon + 17000);
}

TEST_CASE("Data in an unknown format is ignored") {
  for (const char* const data : {"", "[]", "127.0.0.1", "{\"host\":[]}", "\xff\xfe", "{"}) {
    CAPTURE(data);
    CHECK(Only(Contender("job0000000000", 1, data)).data.host == std::nullopt);
  }
}

}  // namespace zklock::cli
