#include "lock/reserve/release_reservation.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "lock/data/run_history.h"
#include "protocol/release_record.h"
#include "support/contender_names.h"
#include "support/fake_store.h"
#include "unit/lock/run_calls.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::Fault;

const std::string kPrefix = "web1-" + test::kUuid + "-reserve-";
const std::string kName = kPrefix + "lock-";

std::string DataFor(const std::string& id, int token = 50) {
  return R"({"version":1,"host":"web1","reservation":{"id":")" + id + R"(","token":)" +
         std::to_string(token) + "}}";
}

struct ReleaseBench : test::FakeBench {
  ReleaseBench() {
    servers.Put("/l", 0, false, "zklock/1");
    path = servers.Put("/l/" + kName, 0, true, DataFor("freeze"));
  }
  ReservationRelease Release(const std::string& id = "freeze") {
    return RunCalls(store, clock, [&](Calls& calls) {
      return ReleaseReservation(calls, {"/l", ""}, path, id);
    });
  }
  [[nodiscard]] std::string Record() const { return servers.nodes.at("/l").data; }

  std::string path;
};

}  // namespace

TEST_CASE("A reservation is released with a record that is not a run") {
  ReleaseBench bench;
  const ReservationRelease release = bench.Release();
  CHECK(release.has_released);
  CHECK_FALSE(bench.servers.Has(bench.path));
  const auto record = protocol::ParseLockData(bench.Record());
  REQUIRE((record && record->last_release));
  CHECK(record->last_release->contender == bench.path.substr(3));
  CHECK(record->last_release->token == 50);
  CHECK(record->last_release->host == "web1");
  CHECK(record->last_release->is_reservation);
}

TEST_CASE("A child that is not a reservation for the ID is left alone") {
  ReleaseBench bench;
  SECTION("of another ID") { bench.servers.Write(bench.path, DataFor("thaw")); }
  SECTION("an ephemeral znode") { bench.servers.nodes.at(bench.path).owner = 7; }
  SECTION("without data") { bench.servers.Write(bench.path, ""); }
  SECTION("with a token from the future") {
    bench.servers.Write(bench.path, DataFor("freeze", 1000000));
  }
  const ReservationRelease release = bench.Release();
  CHECK_FALSE(release.has_released);
  CHECK(bench.servers.Has(bench.path));
}

TEST_CASE("A reservation is released even if no record can be left") {
  ReleaseBench bench;
  bench.servers.Write("/l", "of another program");
  const ReservationRelease release = bench.Release();
  CHECK(release.has_released);
  CHECK(bench.Record() == "of another program");
}

TEST_CASE("A reservation is released once, whatever reply is lost") {
  const Fault fault = GENERATE(Fault::kNotDone, Fault::kReplyLost, Fault::kExpiredReplyLost);
  for (std::size_t request = 0; request < 4; ++request) {
    CAPTURE(request);
    ReleaseBench bench;
    bench.store.PlaceFault(request, fault);
    const ReservationRelease release = bench.Release();
    CHECK(release.has_released);
    CHECK_FALSE(bench.servers.Has(bench.path));
  }
}

TEST_CASE("A LOCK that is written to meanwhile is read again") {
  ReleaseBench bench;
  bench.store.Before("write", [&] { bench.servers.Write("/l", "zklock/1"); });
  const ReservationRelease release = bench.Release();
  CHECK(release.has_released);
  CHECK_FALSE(bench.servers.Has(bench.path));
}

TEST_CASE("A reservation that is gone was not released by us") {
  ReleaseBench bench;
  bench.servers.Remove(bench.path);
  const ReservationRelease release = bench.Release();
  CHECK_FALSE(release.has_released);
}

TEST_CASE("A reservation that another client deletes first was not released by us") {
  ReleaseBench bench;
  bench.store.Before("write", [&] { bench.servers.Remove(bench.path); });
  CHECK_FALSE(bench.Release().has_released);
}

// ---- the history ----------------------------------------------------------------------------

namespace {

/// A reservation of /l, or of a permit, whose start was recorded in the history.
struct HistoryBench : test::FakeBench {
  explicit HistoryBench(bool semaphore = false) {
    servers.now_ms = 1'000'000;
    servers.Put("/l", 0, false, semaphore ? "" : "zklock/1");
    if (semaphore) servers.Put("/l/leases", 0, false, "2");
    path =
        servers.Put((semaphore ? "/l/leases/" : "/l/") + kPrefix + (semaphore ? "lease-" : "lock-"),
                    0, true, DataFor("freeze"));
    begun = {.began = protocol::ServerTime(1'000'000),
             .waited = 7s,
             .host = "web1",
             .user = "ci",
             .token = 50,
             .contender = path.substr(path.rfind('/') + 1)};
    other = {.began = protocol::ServerTime(900'000), .token = 40, .contender = "other"};
    PutHistory({other, begun});
  }
  void PutHistory(const std::vector<RunRecord>& runs) {
    RunHistory history;
    for (const RunRecord& run : runs) history.Enter(run);
    if (!servers.Has("/l/last-run")) servers.Put("/l/last-run", 0);
    servers.Write("/l/last-run", history.Format(kMostRuns));
  }
  [[nodiscard]] std::string LastRun() const { return servers.nodes.at("/l/last-run").data; }
  /// Releases the reservation, a minute after it was made.
  ReservationRelease Release() { return RunCalls(store, clock, Work()); }
  std::function<ReservationRelease(Calls&)> Work() {
    servers.now_ms = 1'060'000;
    return [this](Calls& calls) { return ReleaseReservation(calls, {"/l", ""}, path, "freeze"); };
  }
  [[nodiscard]] RunRecord EntryOf(std::int64_t token) const {
    const auto history = RunHistory::Parse(LastRun());
    REQUIRE((history && history->Find(token) != nullptr));
    return *history->Find(token);
  }
  [[nodiscard]] bool HasEnd() const { return EntryOf(50).end == RunRecord::End::kEnded; }
  /// Writes last-run, as another holder of a permit does.
  void WriteByOther() { servers.Write("/l/last-run", LastRun()); }

  std::string path;
  RunRecord begun;
  RunRecord other;
};

void CheckReleased(const HistoryBench& bench, const ReservationRelease& release) {
  CHECK(release.has_released);
  CHECK_FALSE(bench.servers.Has(bench.path));
}

}  // namespace

TEST_CASE("The end of a reservation is written by the transaction that releases it") {
  const bool semaphore = GENERATE(false, true);
  HistoryBench bench(semaphore);
  const ReservationRelease release = bench.Release();
  CheckReleased(bench, release);
  RunRecord ended = bench.begun;
  ended.end = RunRecord::End::kEnded;
  ended.duration = 60s;
  ended.contender.clear();
  CHECK(bench.EntryOf(50) == ended);
  CHECK(bench.EntryOf(40) == bench.other);
  CHECK_FALSE(release.unkept);
  CHECK(bench.store.log().back() ==
        std::string(semaphore ? "" : "write /l, ") + "write /l/last-run, delete " + bench.path);
  CHECK(bench.servers.Children("/l").size() == (semaphore ? 2 : 1));  // nothing is left
}

TEST_CASE("The history is not touched unless it has an entry without an end") {
  HistoryBench bench;
  SECTION("no last-run") { bench.servers.Remove("/l/last-run"); }
  SECTION("no entry") { bench.PutHistory({bench.other}); }
  SECTION("of another contender") {
    bench.begun.contender = "other";
    bench.PutHistory({bench.begun});
  }
  SECTION("lost") {
    bench.begun.end = RunRecord::End::kLost;
    bench.PutHistory({bench.begun});
  }
  SECTION("lost, as another program writes it") {
    bench.servers.Write("/l/last-run", R"(
{"began":1,"contender":")" + bench.begun.contender +
                                           R"(","ended":"lost","mode":"exclusive","token":50})");
  }
  SECTION("of another program") { bench.servers.Write("/l/last-run", "yesterday"); }
  SECTION("of a later version") {
    bench.servers.Write("/l/last-run", "zklock/2\n" + bench.LastRun());
  }
  const bool exists = bench.servers.Has("/l/last-run");
  const std::string data = exists ? bench.LastRun() : "";
  const std::int32_t version = exists ? bench.servers.nodes.at("/l/last-run").version : 0;
  const ReservationRelease release = bench.Release();
  CheckReleased(bench, release);
  CHECK_FALSE(release.unkept);
  CHECK(bench.servers.Has("/l/last-run") == exists);
  if (exists) CHECK(bench.LastRun() == data);
  if (exists) CHECK(bench.servers.nodes.at("/l/last-run").version == version);
  CHECK(bench.store.log().back() == "write /l, delete " + bench.path);
}

TEST_CASE("A reservation is released once with its end, whatever reply is lost") {
  const bool semaphore = GENERATE(false, true);
  const Fault fault = GENERATE(Fault::kNotDone, Fault::kReplyLost, Fault::kExpiredReplyLost);
  for (std::size_t request = 0; request < 5; ++request) {
    CAPTURE(semaphore, static_cast<int>(fault), request);
    HistoryBench bench(semaphore);
    bench.store.PlaceFault(request, fault);
    const ReservationRelease release = bench.Release();
    CheckReleased(bench, release);
    CHECK(bench.HasEnd());
    CHECK(bench.EntryOf(50).duration == 60s);
    CHECK_FALSE(release.unkept);
  }
}

TEST_CASE("After another holder's write the end is written again") {
  HistoryBench bench(GENERATE(false, true));
  bench.store.Before("write ", [&] {
    bench.other.end = RunRecord::End::kEnded;
    bench.other.duration = 5s;
    bench.PutHistory({bench.other, bench.begun});
  });
  const ReservationRelease release = bench.Release();
  CheckReleased(bench, release);
  CHECK(bench.HasEnd());
  CHECK(bench.EntryOf(40).duration == 5s);
}

TEST_CASE("A reservation is released although others write its history again and again") {
  HistoryBench bench(true);
  int conflicts = 0;
  std::function<void()> write = [&] {
    bench.WriteByOther();
    ++conflicts;
    bench.store.Before("write /l/last-run", write);
  };
  bench.store.Before("write /l/last-run", write);
  const ReservationRelease release = bench.Release();
  bench.store.DropPlans();  // left over from attempts never made
  CheckReleased(bench, release);
  CHECK(conflicts == 100);
  CHECK_FALSE(bench.HasEnd());
  CHECK(release.unkept == zookeeper::Error::kBadVersion);
}

TEST_CASE("A reservation is released without a history that cannot be written") {
  const zookeeper::Error error =
      GENERATE(zookeeper::Error::kNoAuth, zookeeper::Error::kQuotaExceeded,
               zookeeper::Error::kLocalSession, zookeeper::Error::kOther);
  const std::string request = GENERATE(as<std::string>{}, "stamp ", "write /l, write /l/last-run");
  CAPTURE(static_cast<int>(error), request);
  HistoryBench bench;
  bench.store.Refuse(request, error);
  const ReservationRelease release = bench.Release();
  CheckReleased(bench, release);
  CHECK_FALSE(bench.HasEnd());
  CHECK(release.unkept == error);
  CHECK(protocol::ParseLockData(bench.servers.nodes.at("/l").data)->last_release);
}

TEST_CASE("A reservation is released though neither record nor history may be written") {
  HistoryBench bench;
  bench.store.Refuse("write /l, write /l/last-run", zookeeper::Error::kNoAuth);
  bench.store.Refuse("write /l, delete",
                     GENERATE(zookeeper::Error::kNoAuth, zookeeper::Error::kQuotaExceeded));
  const ReservationRelease release = bench.Release();
  CheckReleased(bench, release);
  CHECK(bench.store.log().back() == "delete " + bench.path);
}

TEST_CASE("A write of the history that loses the connection again and again is given up") {
  const std::string request = GENERATE(as<std::string>{}, "stamp ", "write /l, write /l/last-run");
  HistoryBench bench;
  std::function<void()> lose = [&] {
    bench.store.PlaceFault(request, Fault::kNotDone);
    bench.store.Before(request, lose);
  };
  bench.store.PlaceFault(request, Fault::kNotDone);
  bench.store.Before(request, lose);
  const ReservationRelease release = bench.Release();
  bench.store.DropPlans();  // left over from attempts never made
  CheckReleased(bench, release);
  CHECK_FALSE(bench.HasEnd());
  CHECK(release.unkept == zookeeper::Error::kConnectionLoss);
}

TEST_CASE("A reservation that cannot be deleted stays, and so does its entry") {
  HistoryBench bench;
  const std::string before = bench.LastRun();
  for (const char* const request : {"write /l, write", "write /l, delete", "delete "}) {
    bench.store.Refuse(request, zookeeper::Error::kNoAuth);
  }
  const auto failure = RunFailingCalls(bench.store, bench.clock, bench.Work());
  REQUIRE(std::holds_alternative<Refused>(failure));
  CHECK(std::get<Refused>(failure).right == "DELETE");
  CHECK(bench.servers.Has(bench.path));
  CHECK(bench.LastRun() == before);
}

}  // namespace zklock::lock
