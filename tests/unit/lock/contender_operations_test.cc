#include "lock/contender_operations.h"

#include <catch2/catch.hpp>
#include <string>

#include "lock/holders.h"
#include "support/fake_store.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::FakeClock;
using test::FakeServers;
using test::FakeStore;
using test::Fault;

struct Bench {
  Bench() {
    servers.Put("/l", 0);
    first = servers.Put("/l/_c_x-lock-", 7, true, "old");
    second = servers.Put("/l/_c_y-lock-", 8, true, "waits");
  }

  RequestRelease Ask(const std::string& path) {
    return {store,
            clock,
            {"/l", ""},
            {path, servers.nodes.at(path).czxid},
            [](const std::string& old) { return old + "+"; },
            15s};
  }

  DeleteContender Delete(const std::string& path) {
    return {store, clock, {"/l", ""}, {path}, 15s};
  }

  FakeServers servers;
  FakeClock clock;
  FakeStore store{servers, clock};
  std::string first;
  std::string second;
};

}  // namespace

TEST_CASE("Exactly the named contender is deleted") {
  Bench bench;
  DeleteContender deletion = bench.Delete(bench.first);
  bench.store.Run();
  REQUIRE(deletion.IsOver());
  CHECK(deletion.has_removed());
  CHECK_FALSE(bench.servers.Has(bench.first));
  CHECK(bench.servers.Has(bench.second));
}

TEST_CASE("A contender that was already gone is not deleted") {
  Bench bench;
  bench.servers.Remove(bench.first);
  DeleteContender deletion = bench.Delete(bench.first);
  bench.store.Run();
  REQUIRE(deletion.IsOver());
  CHECK_FALSE(deletion.failure());
  CHECK_FALSE(deletion.has_removed());
}

TEST_CASE("A delete whose reply was lost counts") {
  for (const Fault fault :
       {Fault::kReplyLost, Fault::kExpiredReplyLost, Fault::kNotDone, Fault::kExpiredNotDone}) {
    Bench bench;
    bench.store.PlaceFault("delete /l/", fault);
    DeleteContender deletion = bench.Delete(bench.first);
    bench.store.Run();
    REQUIRE(deletion.IsOver());
    CHECK(deletion.has_removed());
    CHECK_FALSE(bench.servers.Has(bench.first));
  }
}

TEST_CASE("Only the named contender is written to, with the edited data") {
  Bench bench;
  RequestRelease request = bench.Ask(bench.first);
  bench.store.Run();
  REQUIRE(request.IsOver());
  CHECK(request.has_asked());
  CHECK(bench.servers.nodes.at(bench.first).data == "old+");
  CHECK(bench.servers.nodes.at(bench.second).data == "waits");
}

TEST_CASE("Data written meanwhile is not overwritten, but edited again") {
  Bench bench;
  RequestRelease request = bench.Ask(bench.first);
  bench.store.Before("set /l/", [&] { bench.servers.Write(bench.first, "newer"); });
  bench.store.Run();
  CHECK(request.has_asked());
  CHECK(bench.servers.nodes.at(bench.first).data == "newer+");
}

TEST_CASE("A contender that is deleted before the write was not asked") {
  for (const char* at : {"get /l/", "set /l/"}) {
    Bench bench;
    RequestRelease request = bench.Ask(bench.first);
    bench.store.Before(at, [&] { bench.servers.Remove(bench.first); });
    bench.store.Run();
    REQUIRE(request.IsOver());
    CHECK_FALSE(request.failure());
    CHECK_FALSE(request.has_asked());
  }
}

TEST_CASE("A request whose reply was lost is sent again") {
  for (const Fault fault : {Fault::kReplyLost, Fault::kNotDone, Fault::kExpiredReplyLost}) {
    Bench bench;
    RequestRelease request = bench.Ask(bench.first);
    bench.store.PlaceFault("set /l/", fault);
    bench.store.Run();
    CHECK(request.has_asked());
  }
}

TEST_CASE("The wait for a contender's end survives writes and lost connections") {
  Bench bench;
  WaitUntilGone wait(bench.store, bench.clock, {"/l", ""}, {bench.first, 0}, 15s);
  bench.store.Run();
  bench.servers.Write(bench.first, "written");
  bench.store.Run();
  bench.clock.Advance(1h);
  wait.OnReady(0);
  bench.store.Disconnect();
  bench.store.Run();
  REQUIRE_FALSE(wait.IsOver());
  bench.servers.Remove(bench.first);
  bench.store.Run();
  CHECK(wait.IsOver());
  CHECK_FALSE(wait.failure());
}

TEST_CASE("The holders are the first contender or the first readers") {
  Bench bench;
  Holders exclusive(bench.store, bench.clock, {"/l", ""}, 15s);
  bench.store.Run();
  REQUIRE(exclusive.holders().size() == 1);
  CHECK(exclusive.holders().front().data == "old");

  FakeServers servers;
  FakeStore store(servers, bench.clock);
  servers.Put("/r", 0);
  for (const char* mark : {"a-__READ__", "b-__READ__", "c-__WRIT__", "d-__READ__"}) {
    servers.Put("/r/" + std::string(mark), 7, true);
  }
  Holders readers(store, bench.clock, {"/r", ""}, 15s);
  store.Run();
  CHECK(readers.holders().size() == 2);
}

TEST_CASE("A znode at the head of the queue that no session owns does not hide the holder") {
  Bench bench;
  FakeServers servers;
  FakeStore store(servers, bench.clock);
  servers.Put("/h", 0);
  servers.Put("/h/_c_x-lock-", 0, true);
  const std::string holder = servers.Put("/h/_c_y-lock-", 7, true);
  servers.Put("/h/_c_z-lock-", 7, true);
  Holders holders(store, bench.clock, {"/h", ""}, 15s);
  store.Run();
  REQUIRE(holders.holders().size() == 1);
  CHECK(holders.holders().front().path == holder);
}

TEST_CASE("The one znode of the simple dialect holds if a session owns it") {
  Bench bench;
  FakeServers servers;
  FakeStore store(servers, bench.clock);
  servers.Put("/s", 0);
  servers.Put("/s/lock", GENERATE(0, 7), false, "data");
  const bool is_held = servers.nodes.at("/s/lock").owner != 0;
  Holders holders(store, bench.clock, {"/s", ""}, 15s);
  store.Run();
  REQUIRE(holders.IsOver());
  REQUIRE(holders.holders().size() == (is_held ? 1 : 0));
  if (is_held) CHECK(holders.holders().front().path == "/s/lock");
}

}  // namespace zklock::lock
