#include "lock/survey.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "support/fake_store.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::FakeClock;
using test::FakeServers;
using test::FakeStore;
using test::Fault;
using Scope = SurveyRequest::Scope;

constexpr std::int64_t kSession = 7;
const std::string kUuid = "6fa459ea-ee8a-4ca4-894e-db77e160355e";

struct Bench {
  FakeServers servers;
  FakeClock clock;
  FakeStore store{servers, clock};

  Survey Look(const std::string& path, Scope scope = Scope::kLock, const std::string& chroot = "") {
    return {store, clock, {.place = {path, chroot}, .scope = scope, .connect_timeout = 15s}};
  }
};

std::vector<std::string> Names(const LockSurvey& lock) {
  std::vector<std::string> names;
  for (const QueueEntry& entry : lock.entries) names.push_back(entry.name.full);
  return names;
}

std::vector<std::string> Paths(const SurveyResult& result) {
  std::vector<std::string> paths;
  for (const LockSurvey& lock : result.locks) paths.push_back(lock.path);
  return paths;
}

using Waits = std::vector<std::optional<std::size_t>>;

}  // namespace

TEST_CASE("A lock that is not there has no queue") {
  Bench bench;
  Survey survey = bench.Look("/l");
  bench.store.Run();
  REQUIRE(survey.IsOver());
  REQUIRE_FALSE(survey.failure());
  REQUIRE(survey.result().locks.size() == 1);
  CHECK_FALSE(survey.result().locks[0].exists);
  CHECK_FALSE(survey.result().locks[0].IsHeld());
}

TEST_CASE("A queue is read in its order, with what each contender says") {
  Bench bench;
  bench.servers.Put("/l", 0);
  bench.servers.Put("/l/z-" + kUuid + "-lock-", kSession, true, "first");
  bench.servers.Put("/l/m-" + kUuid + "-__READ__", kSession, true, "second");
  bench.servers.Put("/l/a-" + kUuid + "-__READ__", kSession, true, "third");
  bench.servers.Put("/l/notes", 0);
  Survey survey = bench.Look("/l");
  bench.store.Run();
  REQUIRE(survey.IsOver());
  const LockSurvey& lock = survey.result().locks.at(0);
  CHECK(lock.path == "/l");
  CHECK(lock.exists);
  CHECK(Names(lock) == std::vector<std::string>{"z-" + kUuid + "-lock-0000000000",
                                                "m-" + kUuid + "-__READ__0000000001",
                                                "a-" + kUuid + "-__READ__0000000002"});
  CHECK(lock.entries[0].data == "first");
  CHECK(lock.entries[2].data == "third");
  CHECK(lock.entries[0].stat.created_zxid < lock.entries[1].stat.created_zxid);
  CHECK(lock.waits_for == Waits{std::nullopt, 0, 0});
  CHECK(lock.ignored_children == std::vector<std::string>{"notes"});
}

TEST_CASE("A contender that vanishes while it is read was not there") {
  Bench bench;
  bench.servers.Put("/l", 0);
  const std::string first = bench.servers.Put("/l/_c_x-lock-", kSession, true);
  bench.servers.Put("/l/_c_y-lock-", kSession, true);
  // sync, list, get, get
  bench.store.Before(2, [&] { bench.servers.Remove(first); });
  Survey survey = bench.Look("/l");
  bench.store.Run();
  const LockSurvey& lock = survey.result().locks.at(0);
  CHECK(Names(lock) == std::vector<std::string>{"_c_y-lock-0000000001"});
  CHECK(lock.waits_for == Waits{std::nullopt});
}

TEST_CASE("A persistent child with a number is no contender, and nobody waits for it") {
  Bench bench;
  bench.servers.Put("/l", 0);
  bench.servers.Put("/l/_c_x-lock-", kSession, true);
  bench.servers.Put("/l/build-2024010203", 0);
  bench.servers.Put("/l/_c_y-lock-2124010203", kSession);
  Survey survey = bench.Look("/l");
  bench.store.Run();
  const LockSurvey& lock = survey.result().locks.at(0);
  REQUIRE(Names(lock) == std::vector<std::string>{"_c_x-lock-0000000000", "build-2024010203",
                                                  "_c_y-lock-2124010203"});
  CHECK_FALSE(lock.entries[1].IsContender());
  CHECK(lock.waits_for == Waits{std::nullopt, std::nullopt, 0});
}

TEST_CASE("A contender that we may not read keeps its place") {
  Bench bench;
  bench.servers.Put("/l", 0);
  const std::string first = bench.servers.Put("/l/_c_x-lock-", kSession, true);
  bench.servers.Put("/l/_c_y-lock-", kSession, true);
  bench.servers.nodes.at(first).readable = false;
  Survey survey = bench.Look("/l");
  bench.store.Run();
  const LockSurvey& lock = survey.result().locks.at(0);
  REQUIRE(lock.entries.size() == 2);
  CHECK_FALSE(lock.entries[0].readable);
  CHECK(lock.entries[0].IsContender());
  CHECK(lock.waits_for == Waits{std::nullopt, 0});
}

TEST_CASE("A lock whose children we may not list is a refusal") {
  Bench bench;
  bench.servers.Put("/app", 0);
  bench.servers.Put("/app/l", 0);
  bench.servers.nodes.at("/app/l").readable = false;
  Survey survey = bench.Look("/app/l", Scope::kLock, "/app");
  bench.store.Run();
  REQUIRE(survey.failure());
  const auto* refused = std::get_if<Refused>(&*survey.failure());
  REQUIRE(refused != nullptr);
  CHECK(refused->path == "/l");
}

TEST_CASE("No more than 64 requests are under way, and all are answered") {
  Bench bench;
  bench.servers.Put("/l", 0);
  for (int i = 0; i < 500; ++i) bench.servers.Put("/l/_c_x-lock-", kSession, true);
  bench.store.Connect();
  Survey survey = bench.Look("/l");
  std::size_t answered = 0;
  std::size_t most = 0;
  while (bench.store.Step()) {
    ++answered;
    most = std::max(most, bench.store.requests_sent() - answered);
  }
  REQUIRE(survey.IsOver());
  CHECK(most == 64);
  CHECK(survey.result().locks.at(0).entries.size() == 500);
}

TEST_CASE("Only the beginning of a contender's data is kept") {
  Bench bench;
  bench.servers.Put("/l", 0);
  bench.servers.Put("/l/_c_x-lock-", kSession, true, std::string(1000000, 'x'));
  Survey survey = bench.Look("/l");
  bench.store.Run();
  CHECK(survey.result().locks.at(0).entries.at(0).data.size() == 4096);
}

TEST_CASE("A lost connection or session at any request does not change what is found") {
  for (const Fault fault : {Fault::kNotDone, Fault::kReplyLost, Fault::kExpiredNotDone}) {
    for (std::size_t request = 0; request < 5; ++request) {
      CAPTURE(request);
      Bench bench;
      bench.servers.Put("/l", 0);
      for (int i = 0; i < 3; ++i) bench.servers.Put("/l/_c_x-lock-", kSession, true);
      bench.store.PlaceFault(request, fault);
      Survey survey = bench.Look("/l");
      bench.store.Run();
      REQUIRE(survey.IsOver());
      REQUIRE_FALSE(survey.failure());
      CHECK(survey.result().locks.at(0).entries.size() == 3);
    }
  }
}

TEST_CASE("A connection that breaks over the same request each time is given up") {
  Bench bench;
  bench.servers.Put("/l", 0);
  for (std::size_t i = 0; i < 100; ++i) bench.store.PlaceFault(2 * i + 1, Fault::kNotDone);
  Survey survey = bench.Look("/l");
  for (int i = 0; i < 1000 && !survey.IsOver(); ++i) {
    bench.store.Connect();
    bench.store.Step();
  }
  REQUIRE(survey.failure());
  CHECK(std::holds_alternative<Unreachable>(*survey.failure()));
}

TEST_CASE("Without a server the survey ends after the connect time-out") {
  Bench bench;
  Survey survey = bench.Look("/l");
  bench.clock.Advance(14s);
  survey.OnReady(0);
  CHECK_FALSE(survey.IsOver());
  CHECK(survey.GetInterest().wake == bench.clock.Now() + 1s);
  bench.clock.Advance(1s);
  survey.OnReady(0);
  REQUIRE(survey.failure());
  CHECK(std::holds_alternative<Unreachable>(*survey.failure()));
  CHECK(survey.GetInterest().wake == kNever);
}

TEST_CASE("A server that does not answer is given up") {
  Bench bench;
  bench.store.Connect();
  Survey survey = bench.Look("/l");
  bench.clock.Advance(10s);
  survey.OnReady(0);
  CHECK(bench.store.server_given_up());
}

TEST_CASE("A survey may end before its answers come") {
  Bench bench;
  bench.servers.Put("/l", 0);
  bench.store.Connect();
  { Survey survey = bench.Look("/l"); }
  while (bench.store.Step()) {
  }
}

TEST_CASE("A tree is searched for locks that have contenders") {
  Bench bench;
  for (const char* const path : {"/j", "/j/a", "/j/a/b", "/j/empty", "/j/c", "/k"}) {
    bench.servers.Put(path, 0);
  }
  for (const char* const lock : {"/j/a", "/j/a/b", "/j/c", "/k"}) {
    bench.servers.Put(std::string(lock) + "/_c_x-lock-", kSession, true);
  }
  Survey survey = bench.Look("/j", Scope::kTree);
  bench.store.Run();
  REQUIRE(survey.IsOver());
  CHECK(Paths(survey.result()) == std::vector<std::string>{"/j/a", "/j/a/b", "/j/c"});
}

TEST_CASE("Contenders are not descended into, persistent ones with a number are") {
  Bench bench;
  bench.servers.Put("/j", 0);
  const std::string contender = bench.servers.Put("/j/_c_x-lock-", kSession, true);
  bench.servers.Put("/j/build-2024010203", 0);
  bench.servers.Put("/j/build-2024010203/_c_y-lock-", kSession, true);
  Survey survey = bench.Look("/j", Scope::kTree);
  bench.store.Run();
  CHECK(Paths(survey.result()) == std::vector<std::string>{"/j", "/j/build-2024010203"});
  const auto& log = bench.store.log();
  CHECK(std::find(log.begin(), log.end(), "list " + contender) == log.end());
}

TEST_CASE("The servers' own znodes are not searched, a user's of the same name are") {
  Bench bench;
  for (const char* const path : {"/zookeeper", "/app", "/app/zookeeper"})
    bench.servers.Put(path, 0);
  bench.servers.Put("/zookeeper/_c_x-lock-", kSession, true);
  bench.servers.Put("/app/zookeeper/_c_x-lock-", kSession, true);
  SECTION("from the root") {
    Survey survey = bench.Look("/", Scope::kTree);
    bench.store.Run();
    CHECK(Paths(survey.result()) == std::vector<std::string>{"/app/zookeeper"});
  }
  SECTION("from a chroot") {
    Survey survey = bench.Look("/app", Scope::kTree, "/app");
    bench.store.Run();
    CHECK(Paths(survey.result()) == std::vector<std::string>{"/zookeeper"});
  }
}

TEST_CASE("Contenders in the root of a chroot are read") {
  Bench bench;
  bench.servers.Put("/app", 0);
  bench.servers.Put("/app/_c_x-lock-", kSession, true, "said");
  Survey survey = bench.Look("/app", Scope::kTree, "/app");
  bench.store.Run();
  CHECK(Paths(survey.result()) == std::vector<std::string>{"/"});
  CHECK(survey.result().locks.at(0).entries.at(0).data == "said");
}

TEST_CASE("What we may not list in a tree is named, and the rest still found") {
  Bench bench;
  for (const char* const path : {"/j", "/j/a", "/j/b"}) {
    bench.servers.Put(path, 0);
    bench.servers.Put(std::string(path) + "/_c_x-lock-", kSession, true);
  }
  bench.servers.nodes.at("/j/a").readable = false;
  Survey survey = bench.Look("/j", Scope::kTree);
  bench.store.Run();
  REQUIRE_FALSE(survey.failure());
  CHECK(Paths(survey.result()) == std::vector<std::string>{"/j", "/j/b"});
  CHECK(survey.result().unlistable == std::vector<std::string>{"/j/a"});
}

TEST_CASE("A tree that is not there has no locks") {
  Bench bench;
  Survey survey = bench.Look("/j", Scope::kTree);
  bench.store.Run();
  REQUIRE(survey.IsOver());
  CHECK_FALSE(survey.failure());
  CHECK(survey.result().locks.empty());
}

TEST_CASE("A lost connection at any request of a walk does not change what is found") {
  for (std::size_t request = 0; request < 9; ++request) {
    CAPTURE(request);
    Bench bench;
    for (const char* const path : {"/j", "/j/a", "/j/a/b", "/j/c"}) bench.servers.Put(path, 0);
    bench.servers.Put("/j/a/_c_x-lock-", kSession, true);
    bench.servers.Put("/j/c/_c_x-lock-", kSession, true);
    bench.store.PlaceFault(request, Fault::kNotDone);
    Survey survey = bench.Look("/j", Scope::kTree);
    bench.store.Run();
    CHECK(Paths(survey.result()) == std::vector<std::string>{"/j/a", "/j/c"});
  }
}

}  // namespace zklock::lock
