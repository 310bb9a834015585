#include "lock/operations/contender_operations.h"

#include <catch2/catch.hpp>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "lock/survey/holders.h"
#include "support/fake_store.h"
#include "unit/lock/run_calls.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::FakeClock;
using test::FakeServers;
using test::FakeStore;
using test::Fault;

struct ContendersBench : test::FakeBench {
  ContendersBench() {
    servers.Put("/l", 0);
    first = servers.Put("/l/_c_x-lock-", 7, true, "old");
    second = servers.Put("/l/_c_y-lock-", 8, true, "waits");
  }

  bool Ask(const std::string& path) {
    const ContenderId id{path, servers.nodes.at(path).czxid};
    return RunCalls(store, clock, [&](Calls& calls) {
      return RequestRelease(calls, {"/l", ""}, id,
                            [](const std::string& old) { return old + "+"; });
    });
  }

  bool Delete(const std::string& path) {
    const ContenderId id{path, servers.Has(path) ? servers.nodes.at(path).czxid : 1};
    return RunCalls(store, clock, [&](Calls& calls) {
      return DeleteContender(calls, {"/l", ""}, id);
    });
  }

  /// Replaces the contender by a persistent znode of another version, as if its run reserved the
  /// lock.
  void Convert(const std::string& path) {
    servers.Remove(path);
    servers.Put(path, 0);
    servers.Write(path, "reserved");
  }

  std::string first;
  std::string second;
};

std::vector<Holder> HoldersOf(FakeStore& store, const FakeClock& clock, const std::string& lock) {
  return RunCalls(store, clock, [&](Calls& calls) { return ReadHolders(calls, {lock, ""}); });
}

TEST_CASE("A history that cannot be read is returned as an error, not thrown") {
  ContendersBench bench;
  std::function<void()> lose = [&] {
    bench.store.PlaceFault("get /l/last-run", Fault::kReplyLost);
    bench.store.Before("get /l/last-run", lose);
  };
  lose();
  const auto error = RunCalls(bench.store, bench.clock, [](Calls& calls) {
    return EnterTaken(calls, {"/l", ""}, 7, {.by = "root", .reason = ""});
  });
  bench.store.DropPlans();  // left over from attempts never made
  CHECK(error == zookeeper::Error::kConnectionLoss);
}

}  // namespace

TEST_CASE("Exactly the named contender is deleted") {
  ContendersBench bench;
  CHECK(bench.Delete(bench.first));
  CHECK_FALSE(bench.servers.Has(bench.first));
  CHECK(bench.servers.Has(bench.second));
}

TEST_CASE("A contender that was already gone is not deleted") {
  ContendersBench bench;
  bench.servers.Remove(bench.first);
  CHECK_FALSE(bench.Delete(bench.first));
}

TEST_CASE("A delete whose reply was lost counts") {
  for (const Fault fault :
       {Fault::kReplyLost, Fault::kExpiredReplyLost, Fault::kNotDone, Fault::kExpiredNotDone}) {
    ContendersBench bench;
    bench.store.PlaceFault("delete /l/", fault);
    CHECK(bench.Delete(bench.first));
    CHECK_FALSE(bench.servers.Has(bench.first));
  }
}

TEST_CASE("Only the named contender is written to, with the edited data") {
  ContendersBench bench;
  CHECK(bench.Ask(bench.first));
  CHECK(bench.servers.nodes.at(bench.first).data == "old+");
  CHECK(bench.servers.nodes.at(bench.second).data == "waits");
}

TEST_CASE("Data written meanwhile is not overwritten, but edited again") {
  ContendersBench bench;
  bench.store.Before("set /l/", [&] { bench.servers.Write(bench.first, "newer"); });
  CHECK(bench.Ask(bench.first));
  CHECK(bench.servers.nodes.at(bench.first).data == "newer+");
}

TEST_CASE("A contender that is deleted before the write does not count as asked") {
  for (const char* at : {"get /l/", "set /l/"}) {
    ContendersBench bench;
    bench.store.Before(at, [&] { bench.servers.Remove(bench.first); });
    CHECK_FALSE(bench.Ask(bench.first));
  }
}

TEST_CASE("A contender that becomes a reservation meanwhile is neither asked nor deleted") {
  const std::string at = GENERATE(as<std::string>(), "get /l/", "set /l/");
  CAPTURE(at);
  ContendersBench bench;
  bench.store.Before(at, [&] { bench.Convert(bench.first); });
  CHECK_FALSE(bench.Ask(bench.first));
  bench.store.Before("get /l/", [&] { bench.Convert(bench.second); });
  CHECK_FALSE(bench.Delete(bench.second));
  CHECK(bench.servers.nodes.at(bench.first).data == "reserved");
  CHECK(bench.servers.nodes.at(bench.second).data == "reserved");
}

TEST_CASE("A request whose reply was lost is sent again") {
  for (const Fault fault : {Fault::kReplyLost, Fault::kNotDone, Fault::kExpiredReplyLost}) {
    ContendersBench bench;
    bench.store.PlaceFault("set /l/", fault);
    CHECK(bench.Ask(bench.first));
  }
}

TEST_CASE("The wait for a contender's end survives writes and lost connections") {
  ContendersBench bench;
  std::deque<std::function<void(EventSource&)>> happens = {
      [&](EventSource&) { bench.servers.Write(bench.first, "written"); },
      [&](EventSource& source) {
        bench.clock.Advance(1h);
        source.OnReady(0);
      },
      [&](EventSource&) { bench.store.Disconnect(); },
      [&](EventSource&) { bench.servers.Remove(bench.first); },
  };
  const auto serve = [&](EventSource& source, const std::function<bool()>& is_done) {
    bench.store.Run();
    while (!is_done()) {
      REQUIRE_FALSE(happens.empty());
      happens.front()(source);
      happens.pop_front();
      bench.store.Run();
    }
  };
  Calls calls(bench.store, bench.clock, 15s, serve);
  WaitUntilGone(calls, {"/l", ""}, {bench.first, 0});
  CHECK(happens.empty());
}

TEST_CASE("The wait for a contender's end finds one that the servers do not report") {
  const bool may_read = GENERATE(true, false);
  ContendersBench bench;
  int looks = 0;
  const auto serve = [&](EventSource& source, const std::function<bool()>& is_done) {
    bench.store.Run();
    while (!is_done()) {
      bench.store.LoseWatches();
      if (++looks < 3) {
        bench.servers.nodes.at(bench.first).readable = may_read;
      } else {
        bench.servers.Remove(bench.first);
      }
      const TimePoint wake = source.GetInterest().wake;
      REQUIRE(wake != kNever);
      bench.clock.Advance(wake - bench.clock.Now());
      source.OnReady(0);
      bench.store.Run();
    }
  };
  Calls calls(bench.store, bench.clock, 15s, serve);
  WaitUntilGone(calls, {"/l", ""}, {bench.first, 0});
  CHECK(looks == 3);
}

TEST_CASE("The holders are the first contender or the first readers") {
  ContendersBench bench;
  const auto exclusive = HoldersOf(bench.store, bench.clock, "/l");
  REQUIRE(exclusive.size() == 1);
  CHECK(exclusive.front().data == "old");

  FakeServers servers;
  FakeStore store(servers, bench.clock);
  servers.Put("/r", 0);
  for (const char* mark : {"a-__READ__", "b-__READ__", "c-__WRIT__", "d-__READ__"}) {
    servers.Put("/r/" + std::string(mark), 7, true);
  }
  CHECK(HoldersOf(store, bench.clock, "/r").size() == 2);
}

TEST_CASE("A znode at the head of the queue that no session owns does not hide the holder") {
  ContendersBench bench;
  FakeServers servers;
  FakeStore store(servers, bench.clock);
  servers.Put("/h", 0);
  servers.Put("/h/_c_x-lock-", 0, true);
  const std::string holder = servers.Put("/h/_c_y-lock-", 7, true);
  servers.Put("/h/_c_z-lock-", 7, true);
  const auto holders = HoldersOf(store, bench.clock, "/h");
  REQUIRE(holders.size() == 1);
  CHECK(holders.front().path == holder);
}

TEST_CASE("The simple dialect's only znode holds the lock if a session owns it") {
  ContendersBench bench;
  FakeServers servers;
  FakeStore store(servers, bench.clock);
  servers.Put("/s", 0);
  servers.Put("/s/lock", GENERATE(0, 7), false, "data");
  const bool is_held = servers.nodes.at("/s/lock").owner != 0;
  const auto holders = HoldersOf(store, bench.clock, "/s");
  REQUIRE(holders.size() == (is_held ? 1 : 0));
  if (is_held) CHECK(holders.front().path == "/s/lock");
}

}  // namespace zklock::lock
