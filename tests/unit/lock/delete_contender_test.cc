#include "lock/delete_contender.h"

#include <catch2/catch.hpp>
#include <string>

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
    first = servers.Put("/l/_c_x-lock-", 7, true);
    second = servers.Put("/l/_c_y-lock-", 8, true);
  }

  DeleteContender Remove(const std::string& path) {
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
  DeleteContender removal = bench.Remove(bench.first);
  bench.store.Run();
  REQUIRE(removal.IsOver());
  CHECK(removal.has_removed());
  CHECK_FALSE(bench.servers.Has(bench.first));
  CHECK(bench.servers.Has(bench.second));
}

TEST_CASE("A contender that was already gone is not deleted") {
  Bench bench;
  bench.servers.Remove(bench.first);
  DeleteContender removal = bench.Remove(bench.first);
  bench.store.Run();
  REQUIRE(removal.IsOver());
  CHECK_FALSE(removal.failure());
  CHECK_FALSE(removal.has_removed());
}

TEST_CASE("A delete whose reply was lost counts") {
  for (const Fault fault :
       {Fault::kReplyLost, Fault::kExpiredReplyLost, Fault::kNotDone, Fault::kExpiredNotDone}) {
    Bench bench;
    bench.store.PlaceFault(0, fault);
    DeleteContender removal = bench.Remove(bench.first);
    bench.store.Run();
    REQUIRE(removal.IsOver());
    CHECK(removal.has_removed());
    CHECK_FALSE(bench.servers.Has(bench.first));
  }
}

}  // namespace zklock::lock
