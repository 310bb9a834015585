#include "lock/release_reservation.h"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "protocol/release_record.h"
#include "support/fake_store.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::FakeClock;
using test::FakeServers;
using test::FakeStore;
using test::Fault;

const std::string kName = "web1-6fa459ea-ee8a-4ca4-894e-db77e160355e-reserve-lock-";

std::string DataFor(const std::string& id, int token = 50) {
  return R"({"version":1,"host":"web1","reservation":{"id":")" + id + R"(","token":)" +
         std::to_string(token) + "}}";
}

struct Bench {
  Bench() {
    servers.Put("/l", 0, false, "zklock/1");
    path = servers.Put("/l/" + kName, 0, true, DataFor("freeze"));
  }
  ReleaseReservation Release(const std::string& id = "freeze") {
    return {store, clock, {"/l", ""}, path, id, 15s};
  }
  [[nodiscard]] std::string Record() const { return servers.nodes.at("/l").data; }

  FakeServers servers;
  FakeClock clock;
  FakeStore store{servers, clock};
  std::string path;
};

}  // namespace

TEST_CASE("A reservation is released with a record that is no run") {
  Bench bench;
  ReleaseReservation release = bench.Release();
  bench.store.Run();
  REQUIRE(release.IsOver());
  CHECK(release.has_released());
  CHECK_FALSE(bench.servers.Has(bench.path));
  const auto record = protocol::ParseLockData(bench.Record());
  REQUIRE((record && record->last_release));
  CHECK(record->last_release->contender == bench.path.substr(3));
  CHECK(record->last_release->token == 50);
  CHECK(record->last_release->host == "web1");
  CHECK(record->last_release->is_reservation);
}

TEST_CASE("What is not a reservation for the ID is left alone") {
  Bench bench;
  SECTION("of another ID") { bench.servers.Write(bench.path, DataFor("thaw")); }
  SECTION("an ephemeral znode") { bench.servers.nodes.at(bench.path).owner = 7; }
  SECTION("without data") { bench.servers.Write(bench.path, ""); }
  SECTION("with a token of the future") {
    bench.servers.Write(bench.path, DataFor("freeze", 1000000));
  }
  ReleaseReservation release = bench.Release();
  bench.store.Run();
  REQUIRE(release.IsOver());
  CHECK_FALSE(release.failure());
  CHECK_FALSE(release.has_released());
  CHECK(bench.servers.Has(bench.path));
}

TEST_CASE("A reservation is released even if no record can be left") {
  Bench bench;
  bench.servers.Write("/l", "of another program");
  ReleaseReservation release = bench.Release();
  bench.store.Run();
  CHECK(release.has_released());
  CHECK(bench.Record() == "of another program");
}

TEST_CASE("A reservation is released once, whatever reply is lost") {
  const Fault fault = GENERATE(Fault::kNotDone, Fault::kReplyLost, Fault::kExpiredReplyLost);
  for (std::size_t request = 0; request < 4; ++request) {
    CAPTURE(request);
    Bench bench;
    bench.store.PlaceFault(request, fault);
    ReleaseReservation release = bench.Release();
    bench.store.Run();
    REQUIRE(release.IsOver());
    CHECK_FALSE(release.failure());
    CHECK(release.has_released());
    CHECK_FALSE(bench.servers.Has(bench.path));
  }
}

TEST_CASE("A LOCK that is written to meanwhile is read again") {
  Bench bench;
  bench.store.Before("write", [&] { bench.servers.Write("/l", "zklock/1"); });
  ReleaseReservation release = bench.Release();
  bench.store.Run();
  CHECK(release.has_released());
  CHECK_FALSE(bench.servers.Has(bench.path));
}

TEST_CASE("A reservation that is gone was not released by us") {
  Bench bench;
  bench.servers.Remove(bench.path);
  ReleaseReservation release = bench.Release();
  bench.store.Run();
  REQUIRE(release.IsOver());
  CHECK_FALSE(release.has_released());
}

}  // namespace zklock::lock
