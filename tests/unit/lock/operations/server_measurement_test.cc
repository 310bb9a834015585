#include "lock/operations/server_measurement.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "support/fake_store.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::FakeStore;
using test::Fault;
using zookeeper::Error;

/// Runs the store again and again until nothing more happens: the store leaves a server that has
/// been given up only in the next run.
void RunToEnd(FakeStore& store) {
  constexpr int kMostConnects = 60;
  for (int i = 0; i < kMostConnects; ++i) store.Run();
}

struct MeasurementBench : test::FakeBench {
  MeasurementBench() {
    servers.Put("/zookeeper", 0);
    servers.Put("/zookeeper/config", 0, false, "server.1=a:1:2:participant\nversion=0");
    servers.Put("/zklock", 0);
    servers.now_ms = 5000;
  }
  ServerMeasurement Measure() {
    return {store,
            clock,
            [] { return 3000ms; },
            [] { return 7ms; },
            {.checked = "/", .stamps = {"/clock", "/zklock/clock"}, .rounds = 20, .connects = 3}};
  }
  [[nodiscard]] std::ptrdiff_t Count(const std::string& request) const {
    return std::count(store.log().begin(), store.log().end(), request);
  }
  /// Returns whether no znode of the measurement is left.
  [[nodiscard]] bool IsClean() const { return servers.nodes.size() == 4; }
};

}  // namespace

TEST_CASE("A measurement commits, stamps and connects as often as asked, and leaves nothing") {
  MeasurementBench bench;
  ServerMeasurement measurement = bench.Measure();
  RunToEnd(bench.store);
  REQUIRE(measurement.IsOver());
  CHECK(measurement.has_reached());
  CHECK(measurement.commits()->count == 20);
  CHECK(bench.Count("check /") == 20);
  CHECK(measurement.connects() == protocol::Spread{7ms, 7ms, 3});
  CHECK(measurement.clock_offset() == protocol::ClockOffset{2000500us, 500us});
  CHECK(measurement.configuration() == "server.1=a:1:2:participant\nversion=0");
  CHECK(bench.IsClean());
}

TEST_CASE("The clock is measured elsewhere, or not at all, where nothing may be created") {
  MeasurementBench bench;
  bench.servers.nodes.at("/").writable = false;
  {
    const ServerMeasurement measurement = bench.Measure();
    RunToEnd(bench.store);
    CHECK(measurement.IsOver());
    CHECK(measurement.clock_offset());
    CHECK(bench.Count("stamp /zklock/clock") == 3);
  }
  bench.servers.nodes.at("/zklock").writable = false;
  FakeStore other(bench.servers, bench.clock);
  ServerMeasurement measurement(
      other, bench.clock, [] { return 3000ms; }, [] { return 7ms; },
      {.checked = "/", .stamps = {"/clock", "/zklock/clock"}});
  RunToEnd(other);
  CHECK(measurement.IsOver());
  CHECK_FALSE(measurement.clock_offset());
  CHECK(measurement.commits()->count == 20);
  CHECK(measurement.connects()->count == 20);
}

TEST_CASE("A refused heartbeat was committed all the same, and counts") {
  MeasurementBench bench;
  bench.store.Refuse("check /", Error::kNoAuth);
  const ServerMeasurement measurement = bench.Measure();
  RunToEnd(bench.store);
  CHECK(measurement.IsOver());
  CHECK(measurement.commits()->count == 20);
}

TEST_CASE("An unanswered commit counts with the time elapsed so far") {
  MeasurementBench bench;
  const ServerMeasurement measurement = bench.Measure();
  bench.store.Connect();
  CHECK_FALSE(measurement.IsOver());
  bench.clock.Advance(5s);
  CHECK(measurement.commits() == protocol::Spread{5s, 5s, 1});
  // A lost connection ends the commit: the time after that does not count.
  bench.store.Disconnect();
  bench.clock.Advance(20s);
  CHECK(measurement.commits() == protocol::Spread{5s, 5s, 1});
  RunToEnd(bench.store);
  CHECK(measurement.commits()->count == 20);
  CHECK(measurement.commits()->worst < 5s);
}

TEST_CASE("A connection that is lost at any request is made again, and nothing is left behind") {
  for (std::size_t request = 0; request < 26; ++request) {
    for (const Fault fault : {Fault::kNotDone, Fault::kReplyLost}) {
      CAPTURE(request);
      MeasurementBench bench;
      bench.store.PlaceFault(request, fault);
      const ServerMeasurement measurement = bench.Measure();
      RunToEnd(bench.store);
      CHECK(measurement.IsOver());
      CHECK(measurement.commits()->count == 20);
      CHECK(measurement.clock_offset());
      CHECK(bench.IsClean());
    }
  }
}

TEST_CASE("A server that closes every connection is not measured forever") {
  MeasurementBench bench;
  bench.store.SetGranted(30s);
  for (std::size_t request = 0; request < 50; ++request) {
    bench.store.PlaceFault(request, Fault::kNotDone);
  }
  const ServerMeasurement measurement = bench.Measure();
  RunToEnd(bench.store);
  CHECK(measurement.IsOver());
  CHECK(measurement.has_reached());
  CHECK_FALSE(measurement.commits());
  CHECK_FALSE(measurement.clock_offset());
}

TEST_CASE("Refused credentials end the measurement of a server") {
  MeasurementBench bench;
  ServerMeasurement measurement = bench.Measure();
  measurement.OnRefused(Error::kAuthFailed);
  CHECK(measurement.IsOver());
  CHECK_FALSE(measurement.has_reached());
  CHECK(measurement.refusal() == Error::kAuthFailed);
}

TEST_CASE("A server that grants a session but requires credentials is refused, not measured") {
  MeasurementBench bench;
  bench.store.Refuse("check /", Error::kAuthRequired);
  const ServerMeasurement measurement = bench.Measure();
  RunToEnd(bench.store);
  CHECK(measurement.IsOver());
  CHECK_FALSE(measurement.has_reached());
  CHECK(measurement.refusal() == Error::kAuthRequired);
  CHECK_FALSE(measurement.commits());
}

TEST_CASE("A session that may own no znodes is local") {
  const bool is_local = GENERATE(false, true);
  MeasurementBench bench;
  bench.store.Refuse("stamp ", is_local ? Error::kLocalSession : Error::kNoAuth);
  const ServerMeasurement measurement = bench.Measure();
  RunToEnd(bench.store);
  CHECK(measurement.is_local() == is_local);
}

}  // namespace zklock::lock
