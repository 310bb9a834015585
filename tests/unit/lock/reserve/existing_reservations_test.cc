#include "lock/reserve/existing_reservations.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lock/data/reserved.h"
#include "protocol/reservation.h"
#include "support/contender_names.h"
#include "unit/lock/reserver.h"
#include "unit/lock/run_calls.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using test::Fault;

constexpr milliseconds kMade = 20'000 * 24h;

/// The data that another run's renewal writes.
const Reserved kLonger{.reservation = {.id = "x", .lasts = 5h}};

/// Another zklock, in a world in which /l and /m are reserved for "x".
struct ReservedBench {
  explicit ReservedBench(std::optional<milliseconds> lasts, const ReserveOptions& options = {}) {
    world.servers.now_ms = kMade.count();
    world.servers.Put("/m", 0, false, "zklock/1");
    ReserveOptions both = options;
    both.lasts = lasts;
    if (!both.permits) both.locks = {"/l", "/m"};
    JoinedReserver reserver(world, "x", both);
    REQUIRE(reserver.HasReserved());
    reserver.Leave();
    made = reserver.made();
  }
  std::optional<ReservedLock> Find(const std::string& id = "x") {
    return RunCalls(store, world.clock, [&](Calls& calls) {
      return FindHeldReservation(calls, {"/l", ""}, id);
    });
  }
  std::optional<std::vector<ReservedLock>> Renew(milliseconds lasts) {
    return RunCalls(store, world.clock,
                    [&](Calls& calls) { return RenewReservations(calls, made, {.lasts = lasts}); });
  }
  /// Returns the LOCKs whose reservations a command has outlived; "!" marks those whose end has
  /// passed.
  std::vector<std::string> FindOutlived() {
    std::vector<Ticket> tickets;
    for (const ReservedLock& one : made) {
      tickets.push_back(
          {.lock = one.lock, .path = one.path, .token = one.reserved.reservation.token});
    }
    std::vector<std::string> locks;
    for (const Outlived& one : RunCalls(store, world.clock, [&](Calls& calls) {
           return lock::FindOutlived(calls, tickets);
         })) {
      locks.push_back(one.lock.path + (one.overdue ? "!" : ""));
    }
    return locks;
  }
  /// Returns the end of each LOCK's reservation, according to its znode.
  std::vector<std::optional<milliseconds>> Ends() {
    std::vector<std::optional<milliseconds>> ends;
    for (const ReservedLock& one : made) {
      const auto& node = world.servers.nodes.at(one.path);
      const auto reserved = FindReservation(
          protocol::BaseOf(one.path), node.data,
          {.created_zxid = node.czxid, .created_ms = node.created_ms, .version = node.version});
      REQUIRE(reserved);
      ends.push_back(reserved->until);
    }
    return ends;
  }

  World world;
  std::vector<ReservedLock> made;
  FakeStore store{world.servers, world.clock};
};

}  // namespace

TEST_CASE("The reservation with the ID is found while it lasts by the servers' clock") {
  const std::optional<milliseconds> lasts = GENERATE(std::optional<milliseconds>(), 1h);
  const bool is_permit = GENERATE(false, true);
  ReservedBench bench(lasts, {.permits = is_permit ? std::optional<std::size_t>(2) : std::nullopt});
  bench.world.clock.Advance(GENERATE(0h, 3h));
  bench.world.servers.now_ms += std::chrono::milliseconds(1h).count() - 1;
  const auto found = bench.Find();
  REQUIRE(found);
  CHECK(found->path == bench.made.front().path);
  CHECK(found->reserved.reservation == bench.made.front().reserved.reservation);
  CHECK_FALSE(bench.Find("y"));
  bench.world.servers.now_ms += 1;
  CHECK(bench.Find().has_value() == !lasts);
}

TEST_CASE("The servers are only asked for their time if the reservation has an end") {
  const std::optional<milliseconds> lasts = GENERATE(std::optional<milliseconds>(), 1h);
  ReservedBench bench(lasts);
  REQUIRE(bench.Find());
  CHECK(bench.store.log().back().starts_with("stamp /l/zklock-clock-") == lasts.has_value());
}

TEST_CASE("A reservation that does not hold is not found, whoever made it") {
  World world;
  JoinedReserver holder(world, "");
  REQUIRE(holder.Holds());
  world.servers.Put(NameOf("0e"), 0, true, R"({"reservation":{"id":"x","token":1}})");
  FakeStore store(world.servers, world.clock);
  const auto found = RunCalls(store, world.clock, [](Calls& calls) {
    return FindHeldReservation(calls, {"/l", ""}, "x");
  });
  CHECK_FALSE(found);
}

TEST_CASE("A forged permit beyond the number of permits is not found until another is released") {
  auto [world, first] = ReservedWorld("a", {.permits = 2});
  MakeReservation(world, "b", {.permits = 2});
  world.servers.Put("/l/leases/host-" + test::kUuid + "-reserve-lease-", 0, true,
                    R"({"reservation":{"id":"x","token":1}})");
  FakeStore store(world.servers, world.clock);
  const auto find = [&store, &clock = world.clock] {
    return RunCalls(store, clock, [](Calls& calls) {
      return FindHeldReservation(calls, {"/l", ""}, "x");
    });
  };
  CHECK_FALSE(find());
  world.servers.Remove(first.path);
  CHECK(find());
}

TEST_CASE("A renewal moves the ends of all reservations, counted from now, in one transaction") {
  ReservedBench bench(1h);
  bench.world.clock.Advance(GENERATE(0h, 3h));  // the servers' clock does not follow
  bench.world.servers.now_ms += milliseconds(40min).count();
  const auto renewed = bench.Renew(30min);
  REQUIRE(renewed);
  CHECK(renewed->front().reserved.until == kMade + 70min);
  CHECK(bench.Ends() == std::vector<std::optional<milliseconds>>(2, kMade + 70min));
  CHECK(bench.store.log().back() ==
        "write " + bench.made[0].path + ", write " + bench.made[1].path);
  CHECK(renewed->front().reserved.version ==
        bench.world.servers.nodes.at(bench.made[0].path).version);
}

TEST_CASE("A renewal never shortens a reservation, nor gives an end to one that has none") {
  const std::optional<milliseconds> lasts = GENERATE(std::optional<milliseconds>(), 1h);
  ReservedBench bench(lasts);
  const auto ends = bench.Ends();
  bench.world.servers.now_ms += milliseconds(10min).count();
  const auto renewed = bench.Renew(50min);
  REQUIRE(renewed);
  CHECK(bench.Ends() == ends);
  for (const std::string& request : bench.store.log()) CHECK_FALSE(request.starts_with("write"));
}

TEST_CASE("Reservations that were renewed again and again stay readable") {
  ReservedBench bench(24h * 300);
  bench.world.servers.now_ms += milliseconds(24h * 200).count();
  REQUIRE(bench.Renew(24h * 300));
  CHECK(bench.Ends().front() == kMade + protocol::kLongestReservation);
}

TEST_CASE("A reservation that is gone or has ended is not renewed") {
  ReservedBench bench(1h);
  bench.world.servers.now_ms += milliseconds(30min).count();
  SECTION("one was released") { bench.world.servers.Remove(bench.made.back().path); }
  SECTION("one was released before the write") {
    bench.store.Before("write", [&] { bench.world.servers.Remove(bench.made.back().path); });
  }
  SECTION("they have ended") { bench.world.servers.now_ms += milliseconds(30min).count(); }
  SECTION("one has another ID") {
    auto& node = bench.world.servers.nodes.at(bench.made.back().path);
    node.data =
        FormatReservation(node.data, {.id = "y"}, bench.made.back().reserved.reservation.token);
  }
  const std::string data = bench.world.servers.nodes.at(bench.made.front().path).data;
  CHECK_FALSE(bench.Renew(1h));
  CHECK(bench.world.servers.nodes.at(bench.made.front().path).data == data);
}

TEST_CASE("A renewal that another run writes meanwhile is read again, and not shortened") {
  ReservedBench bench(1h);
  bench.store.Before("write", [&] {
    auto& node = bench.world.servers.nodes.at(bench.made.front().path);
    bench.world.servers.Write(bench.made.front().path, Rewritten(node.data, kLonger));
  });
  const auto renewed = bench.Renew(2h);
  REQUIRE(renewed);
  CHECK(renewed->front().reserved.until == kMade + 5h);
  CHECK(bench.Ends() == std::vector<std::optional<milliseconds>>{kMade + 5h, kMade + 2h});
}

TEST_CASE("A reservation that is renewed while the servers' time is requested has not ended") {
  ReservedBench bench(1h);
  bench.world.servers.now_ms += std::chrono::milliseconds(1h).count() - 1;
  bench.store.Before("stamp", [&] {
    for (const ReservedLock& one : bench.made) {
      const auto& node = bench.world.servers.nodes.at(one.path);
      bench.world.servers.Write(one.path, Rewritten(node.data, kLonger));
    }
    bench.world.servers.now_ms += 2;
  });
  SECTION("for --resume") { CHECK(bench.Find()); }
  SECTION("for a renewal") { CHECK(bench.Renew(2h)); }
  SECTION("for a command that has ended") { CHECK(bench.FindOutlived().empty()); }
  CHECK(bench.Ends() == std::vector<std::optional<milliseconds>>{kMade + 5h, kMade + 5h});
}

TEST_CASE("A command has outlived the reservations that are gone, or whose ends have passed") {
  using Locks = std::vector<std::string>;
  ReservedBench bench(1h);
  bench.world.clock.Advance(GENERATE(0h, 3h));  // not that of the servers
  bench.world.servers.now_ms += std::chrono::milliseconds(1h).count() - 1;
  CHECK(bench.FindOutlived() == Locks());
  bench.world.servers.now_ms += 1;
  CHECK(bench.FindOutlived() == Locks{"/l!", "/m!"});
  bench.world.servers.Remove(bench.made.back().path);
  CHECK(bench.FindOutlived() == Locks{"/l!", "/m"});
  auto& node = bench.world.servers.nodes.at(bench.made.front().path);
  node.data =
      FormatReservation("{}", {.id = "x"}, bench.made.front().reserved.reservation.token - 1);
  CHECK(bench.FindOutlived() == Locks{"/l", "/m"});
}

TEST_CASE("A renewal is done after a fault at any of its requests") {
  const Fault fault = GENERATE(Fault::kNotDone, Fault::kReplyLost, Fault::kExpiredNotDone,
                               Fault::kExpiredReplyLost, Fault::kAnsweredAndClosed);
  for (std::size_t at = 0; at < 4; ++at) {
    CAPTURE(static_cast<int>(fault), at);
    ReservedBench bench(1h);
    bench.store.PlaceFault(at, fault);
    REQUIRE(bench.Renew(2h));
    CHECK(bench.Ends() == std::vector<std::optional<milliseconds>>(2, kMade + 2h));
  }
}

TEST_CASE("A refused renewal names the missing permission") {
  ReservedBench bench(1h);
  const auto [request, right] = GENERATE(table<std::string, std::string>(
      {{"get ", "READ"}, {"stamp ", "CREATE and DELETE"}, {"write ", "WRITE"}}));
  bench.store.Refuse(request, zookeeper::Error::kNoAuth);
  const auto failure = RunFailingCalls(bench.store, bench.world.clock, [&](Calls& calls) {
    return RenewReservations(calls, bench.made, {.lasts = 2h});
  });
  REQUIRE(std::holds_alternative<Refused>(failure));
  CHECK(std::get<Refused>(failure).right == right);
  CHECK(bench.Ends().front() == kMade + 1h);
}

TEST_CASE("A session that may not own znodes cannot tell whether a reservation has ended") {
  ReservedBench bench(1h);
  bench.store.Refuse("stamp ", zookeeper::Error::kLocalSession);
  const auto failure = RunFailingCalls(bench.store, bench.world.clock, [](Calls& calls) {
    return FindHeldReservation(calls, {"/l", ""}, "x");
  });
  REQUIRE(std::holds_alternative<Unusable>(failure));
  CHECK(std::get<Unusable>(failure).why == Unusable::Why::kLocalSessions);
}

}  // namespace zklock::lock
