// --preempt asks the contenders ahead to leave.

#include "lock/ahead/preemption.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lock/data/contender_data.h"
#include "lock/data/last_runs.h"
#include "protocol/run_records.h"
#include "unit/lock/contender.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::Fault;
using test::kLosses;

/// A queue of zklock contenders: a holder, three waiters, and one that preempts them.
struct Bench : test::FakeBench {
  Bench() {
    servers.Put("/l", 0, false, "zklock/1");
    for (const char* const label : {"holder", "first", "second", "third"}) {
      names.push_back(Put({.label = label}));
    }
  }
  std::string Put(const ContenderData& data, const std::string& mark = "-lock-") {
    return servers.Put("/l/host-" + NextUuid() + mark, 7, true, FormatContenderData(data));
  }
  void Run(Preempt preempt, std::optional<std::string> id = std::nullopt,
           Mode mode = Mode::kExclusive) {
    preempt.request.by = "root on db1";
    preempt.request.only_waiting = !preempt.holders;
    AcquireRequest request{.lock = {"/l", ""}, .mode = mode, .host = "host", .preempt = preempt};
    if (id) request.reserve = protocol::ReservationRequest{.id = *id};
    acquire = std::make_unique<Acquire>(store, clock, request, NextUuid, notes.Sink());
    store.Run();
  }
  [[nodiscard]] std::optional<ReleaseRequest> RequestIn(const std::string& path) const {
    return FindReleaseRequest(servers.nodes.at(path).data);
  }
  [[nodiscard]] std::vector<bool> AreAsked() const {
    std::vector<bool> asked;
    for (const std::string& name : names) asked.push_back(RequestIn(name).has_value());
    return asked;
  }

  AcquireNotes notes;
  std::vector<std::string> names;
  std::unique_ptr<Acquire> acquire;
};

}  // namespace

TEST_CASE("Waiters are asked to leave, the last one first, and holders only with `all`") {
  Bench bench;
  const bool all = GENERATE(false, true);
  bench.Run({.holders = all});
  CHECK(bench.AreAsked() == std::vector{all, true, true, true});
  const auto request = bench.RequestIn(bench.names[1]);
  CHECK(request->by == "root on db1");
  CHECK(request->only_waiting == !all);
  CHECK(ParseContenderData(bench.servers.nodes.at(bench.names[1]).data)->label == "first");
  std::vector<std::string> writes;
  for (const std::string& line : bench.store.log()) {
    if (line.starts_with("set ")) writes.push_back(line.substr(4));
  }
  std::vector<std::string> expected(bench.names.rbegin(), bench.names.rend());
  if (!all) expected.pop_back();
  CHECK(writes == expected);
  REQUIRE(bench.notes.preempted.size() == 1);
  CHECK(bench.notes.preempted.front().asked == expected.size());
  CHECK(bench.notes.preempted.front().left.empty());
}

TEST_CASE("Readers that hold the lock together are holders, and a reader after a writer waits") {
  Bench bench;
  for (const std::string& name : bench.names) bench.servers.Remove(name);
  bench.names = {bench.Put({}, "-__READ__"), bench.Put({}, "-__READ__"), bench.Put({}, "-__WRIT__"),
                 bench.Put({}, "-__READ__")};
  bench.Run({});
  CHECK(bench.AreAsked() == std::vector{false, false, true, true});
}

TEST_CASE("A reader asks no other readers, since it does not wait for them") {
  Bench bench;
  for (const std::string& name : bench.names) bench.servers.Remove(name);
  bench.names = {bench.Put({}, "-__READ__"), bench.Put({}, "-__WRIT__"), bench.Put({}, "-__READ__"),
                 bench.Put({}, "-__WRIT__")};
  bench.Run({.holders = true}, std::nullopt, Mode::kRead);
  CHECK(bench.AreAsked() == std::vector{false, true, false, true});
}

TEST_CASE("Contenders with the same ID, spared ones and others that preempt are not asked") {
  Bench bench;
  const std::string same = bench.Put({.reserve = "freeze"});
  const std::string rival = bench.Put({.preempts = true});
  const std::string ours = bench.Put({.label = "ours"});
  bench.Run({.holders = true,
             .spares =
                 [&](const std::string& path, const std::string& data) {
                   return path == ours && ParseContenderData(data)->label == "ours";
                 }},
            "freeze");
  for (const std::string& path : {same, rival, ours}) CHECK_FALSE(bench.RequestIn(path));
  CHECK(bench.AreAsked() == std::vector(4, true));
}

TEST_CASE(
    "A contender that cannot be asked is named with the reason, and the others are still asked") {
  Bench bench;
  const std::string reserved = bench.servers.Put("/l/host-" + NextUuid() + "-reserve-lock-", 0,
                                                 true, R"({"reservation":{"id":"x","token":1}})");
  const std::string foreign =
      bench.servers.Put("/l/_c_6a1d0d2e-7d6f-4a39-8a1a-0d7e1b2c3d4e-lock-", 9, true, "{}");
  bench.store.Refuse("set " + bench.names[2], zookeeper::Error::kNoAuth);
  bench.Run({});
  CHECK(bench.AreAsked() == std::vector{false, true, false, true});
  REQUIRE(bench.notes.preempted.size() == 1);
  const auto& left = bench.notes.preempted.front().left;
  REQUIRE(left.size() == 3);
  CHECK("/l/" + left[0].name == foreign);
  CHECK(left[0].why == Preempted::Why::kOtherProgram);
  CHECK("/l/" + left[1].name == reserved);
  CHECK(left[1].why == Preempted::Why::kReservation);
  CHECK("/l/" + left[2].name == bench.names[2]);
  CHECK(left[2].why == Preempted::Why::kNoRight);
}

TEST_CASE("A run that could not begin yet asks nobody to leave") {
  using Nobody = Preempted::Nobody;
  Bench bench;
  const bool in_another = GENERATE(false, true);  // of several LOCKs
  const std::string lock = in_another ? "/m" : "/l";
  if (in_another) bench.servers.Put(lock, 0, false, "zklock/1");
  const bool starts = GENERATE(true, false);
  const std::string child = lock + (starts ? "/last-start" : "/last-run");
  const RunIntervals intervals =
      starts ? RunIntervals{.since_start = 1h} : RunIntervals{.since_success = 1h};
  const auto age = GENERATE(59min, 61min);
  bench.servers.Put(child, 0, false,
                    starts ? protocol::FormatStartRecord({.token = 7, .host = "host"})
                           : protocol::FormatLastSuccess({.began = 0ms, .host = "host"}));
  bench.servers.now_ms = std::chrono::milliseconds(age).count();
  std::optional<Nobody> nobody;
  if (age < 1h) nobody = Nobody::kTooSoon;
  SECTION("the record is as zklock writes it") {}
  SECTION("nobody may read the record") {
    bench.servers.nodes.at(child).readable = false;
    nobody = Nobody::kRecord;
  }
  SECTION("the record is not zklock's") {
    bench.servers.nodes.at(child).data = "something else";
    nobody = Nobody::kRecord;
  }
  SECTION("a session owns the record, and could take it away") {
    bench.servers.nodes.at(child).owner = 7;
    nobody = Nobody::kRecord;
  }
  SECTION("the start of this run could not be recorded") {
    if (starts) {
      bench.store.Refuse("set " + child, zookeeper::Error::kNoAuth);
      nobody = Nobody::kRecord;
    }
  }
  CAPTURE(child, age.count());
  bench.Run({.holders = true, .intervals = intervals, .locks = {"/l", lock}});
  CHECK(bench.AreAsked() == std::vector(4, !nobody.has_value()));
  REQUIRE(bench.notes.preempted.size() == 1);
  CHECK(bench.notes.preempted.front().nobody == nobody);
  CHECK(bench.notes.preempted.front().left.size() == (nobody ? 4 : 0));
}

TEST_CASE("A run that may not reserve the lock asks nobody to leave, and still waits") {
  Bench bench;
  const bool reserves = GENERATE(true, false);
  const bool in_another = GENERATE(false, true);  // of several LOCKs
  bench.servers.Put("/m", 0, false, "zklock/1");
  bench.store.may_delete = false;
  if (in_another) bench.store.may_delete_below = "/l";
  bench.Run({.holders = true, .locks = {"/l", "/m"}},
            reserves ? std::optional<std::string>("freeze") : std::nullopt);
  CHECK(bench.AreAsked() == std::vector(4, !reserves));
  REQUIRE(bench.notes.preempted.size() == 1);
  CHECK(bench.notes.preempted.front().nobody.has_value() == reserves);
  CHECK_FALSE(bench.acquire->outcome());
}

TEST_CASE("A contender is asked once, unless the first request left holders alone") {
  Bench bench;
  const auto ask = [&](bool only_waiting, bool forced = false) {
    for (const std::string& path : bench.names) {
      bench.servers.Write(
          path, AddReleaseRequest(bench.servers.nodes.at(path).data,
                                  {.by = "other", .only_waiting = only_waiting, .forced = forced}));
    }
  };
  SECTION("first of waiters only, then of all") {
    ask(true);
    bench.Run({.holders = true});
    for (const std::string& path : bench.names) CHECK(bench.RequestIn(path)->by == "root on db1");
  }
  SECTION("of waiters only, twice") {
    ask(true);
    bench.Run({});
    for (const std::string& path : bench.names) CHECK(bench.RequestIn(path)->by == "other");
  }
  SECTION("a request that includes holders is not weakened") {
    ask(false);
    bench.Run({});
    for (const std::string& path : bench.names) CHECK_FALSE(bench.RequestIn(path)->only_waiting);
  }
  SECTION("the mark of a forced release asks for nothing") {
    ask(false, true);
    bench.Run({.holders = true});
    for (const std::string& path : bench.names) CHECK_FALSE(bench.RequestIn(path)->forced);
  }
}

TEST_CASE("Data written to a contender while it is being asked is kept") {
  Bench bench;
  bench.store.Before("set " + bench.names[2], [&] {
    bench.servers.Write(bench.names[2], FormatContenderData({.label = "renamed"}));
  });
  bench.Run({});
  const auto data = ParseContenderData(bench.servers.nodes.at(bench.names[2]).data);
  CHECK(data->label == "renamed");
  CHECK(data->release_request);
}

TEST_CASE("All contenders are asked despite a fault at any request") {
  const Fault fault = GENERATE(from_range(kLosses));
  const bool has_intervals = GENERATE(false, true);
  for (std::size_t at = 0; at < (has_intervals ? 19 : 14); ++at) {
    CAPTURE(static_cast<int>(fault), at);
    Bench bench;
    bench.store.PlaceFault(at, fault);
    bench.Run(has_intervals ? Preempt{.intervals = {1h, 1h}} : Preempt{});
    CHECK(bench.AreAsked() == std::vector{false, true, true, true});
    CHECK(bench.notes.preempted.size() == 1);
    for (const std::string& name : bench.names) bench.servers.Remove(name);
    bench.store.Run();
    CHECK(bench.acquire->outcome());
  }
}

TEST_CASE("After a lost connection a run does not ask contenders that joined after it") {
  Bench bench;
  bench.Run({});
  const std::string later = bench.Put({.label = "later"});
  bench.servers.Remove(bench.names[3]);
  bench.store.Disconnect();
  bench.store.Run();
  CHECK_FALSE(bench.RequestIn(later));
}

TEST_CASE("Any number of contenders of other programs can be left alone") {
  constexpr std::size_t kMany = 200'000;
  Bench bench;
  const AcquireRequest request{.lock = {"/l", ""}, .host = "host", .preempt = Preempt{}};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kMany; ++i) {
    names.push_back(fmt::format("_c_0f8fad5b-d9cb-469f-a165-70867728950e-lock-{:010d}", i));
  }
  std::size_t left = 0;
  Preemption preemption(bench.store, request, "/l", std::move(names), 0ms,
                        [&left](const Preempted& result) { left = result.left.size(); });
  preemption.Begin();
  CHECK(left == kMany);
}

}  // namespace zklock::lock
