#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "support/contender_names.h"
#include "unit/lock/reserver.h"

// Reservations: made, found again, waited for, and ended.

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::Fault;
using test::kLosses;

constexpr std::int64_t kDay = 86'400'000;

}  // namespace

TEST_CASE("A reservation outlives the session that has made it, with its name and its token") {
  World world;
  world.servers.now_ms = 20'000 * kDay;
  JoinedReserver reserver(world, "freeze");
  REQUIRE(reserver.HasReserved());
  const Ticket ticket = reserver.tickets.front();
  const ReservedLock made = reserver.made().front();
  CHECK(made.path == ticket.path);
  CHECK(made.reserved.reservation ==
        protocol::Reservation{.id = "freeze", .reason = "why", .token = ticket.token});
  CHECK(made.reserved.since == std::chrono::milliseconds(20'000 * kDay));
  reserver.Leave();
  const auto& node = world.servers.nodes.at(ticket.path);
  CHECK(node.owner == 0);
  CHECK(node.czxid > ticket.token);
}

TEST_CASE("A LOCK that does not exist is reserved on servers with and without containers") {
  World world(false);
  // A reservation is an ordinary persistent znode: it needs neither containers nor time-to-live.
  world.servers.knows_containers = GENERATE(true, false);
  const ReservedLock made = MakeReservation(world, "freeze", {.locks = {"/a/b"}, .lasts = 60s});
  CHECK(world.servers.Children("/a/b") == std::vector{std::string(protocol::BaseOf(made.path))});
  JoinedReserver again(world, "freeze", {.locks = {"/a/b"}});
  CHECK(again.HasFound());
  JoinedReserver other(world, "", {.locks = {"/a/b"}});
  REQUIRE(other.Waits());
  other.Pass(61s);
  CHECK(other.Holds());
  CHECK_FALSE(world.servers.Has(made.path));
}

TEST_CASE("A LOCK whose numbers are used up cannot be reserved, and nothing is left there") {
  World world;
  world.servers.nodes["/l"].next_number = GENERATE(2147480000, 2147483647);
  JoinedReserver reserver(world, "freeze", {.try_only = GENERATE(false, true)});
  REQUIRE(reserver.outcome);
  CHECK(std::get<Unusable>(*reserver.outcome).why == Unusable::Why::kNumbersUsedUp);
  reserver.Leave();
  CHECK(world.servers.Children("/l").empty());
}

TEST_CASE("A reservation exists and is found and released after the last number was used") {
  World world;
  world.servers.nodes["/l"].next_number = 2147479999;
  const ReservedLock made = MakeReservation(world, "freeze", {.lasts = 60s});
  JoinedReserver other(world, "other");
  REQUIRE(other.outcome);
  CHECK(std::get<Unusable>(*other.outcome).why == Unusable::Why::kNumbersUsedUp);
  other.Leave();
  CHECK(world.servers.Children("/l").size() == 1);
  JoinedReserver again(world, "freeze");
  REQUIRE(again.HasFound());
  CHECK(again.found.front().path == made.path);
  Release(world, made);
  CHECK(world.servers.Children("/l").empty());
}

TEST_CASE("Other contenders wait for a reservation until it is released") {
  const bool reads = GENERATE(false, true);
  const std::string id = GENERATE(as<std::string>{}, "", "other");
  auto [world, freeze] = ReservedWorld("freeze");
  JoinedReserver waiter(world, id, {.mode = reads ? Mode::kRead : Mode::kExclusive});
  REQUIRE(waiter.Waits());
  SECTION("with a record") { Release(world, freeze); }
  SECTION("by force") { world.servers.Remove(freeze.path); }
  waiter.Run();
  CHECK(waiter.Holds());
}

TEST_CASE("A contender that waits while its predecessor is converted keeps waiting") {
  World world;
  Reserver first(world, "freeze");
  Reserver second(world, "");
  first.store.Before("convert ", [&] {
    second.Run();
    REQUIRE(second.Waits());
  });
  first.Run();
  REQUIRE(first.HasReserved());
  first.Leave();
  second.Run();
  CHECK(second.Waits());
  Release(world, first.made().front());
  second.Run();
  CHECK(second.Holds());
  CHECK(second.tickets.front().token > first.tickets.front().token);
}

TEST_CASE("The same ID finds its reservation without queueing, whoever waits for it") {
  World world;
  const ReservedLock made = MakeReservation(world, "ci:1");
  JoinedReserver other(world, "ci:2");
  REQUIRE(other.Waits());
  JoinedReserver again(world, "ci:1", {.try_only = GENERATE(false, true)});
  REQUIRE(again.HasFound());
  CHECK(again.found.front().path == made.path);
  CHECK(again.found.front().reserved.reservation == made.reserved.reservation);
  CHECK(again.notes.queued.empty());
  CHECK(world.servers.Children("/l").size() == 2);
}

TEST_CASE("The same ID in another mode is refused") {
  auto [world, made] = ReservedWorld("x");
  JoinedReserver again(world, "x", {.mode = Mode::kRead});
  REQUIRE(again.outcome);
  const auto& unusable = std::get<Unusable>(*again.outcome);
  CHECK(unusable.why == Unusable::Why::kReservedInOtherMode);
  CHECK(unusable.reserved_mode == Mode::kExclusive);
  CHECK(unusable.child == protocol::BaseOf(made.path));
}

TEST_CASE("One of two runs with the same ID makes the reservation and the other finds it") {
  const Mode mode = GENERATE(Mode::kExclusive, Mode::kWrite, Mode::kRead);
  const bool with_one_between = GENERATE(false, true);
  World world;
  Reserver first(world, "x", {.mode = mode});
  Reserver between(world, "");
  Reserver second(world, "x", {.mode = mode});
  first.store.Before("convert ", [&] {
    if (with_one_between) between.Run();
    second.Run();
    REQUIRE(second.Waits());
  });
  first.Run();
  REQUIRE(first.HasReserved());
  second.Run();
  REQUIRE(second.HasFound());
  CHECK(second.found.front().path == first.made().front().path);
  first.Leave();
  second.Leave();
  CHECK(world.servers.Children("/l").size() == (with_one_between ? 2 : 1));
}

TEST_CASE("If the first of two runs with the same ID gives up, the second makes the reservation") {
  const Mode mode = GENERATE(Mode::kExclusive, Mode::kRead);
  World world;
  Reserver first(world, "x", {.mode = mode});
  Reserver second(world, "x", {.mode = mode});
  bool has_left = false;
  first.store.Before("convert ", [&] {
    second.Run();
    REQUIRE(second.Waits());
    has_left = true;
    first.store.Expire();
  });
  first.Run();
  REQUIRE(has_left);
  CHECK_FALSE(first.HasReserved());
  second.Run();
  CHECK(second.HasReserved());
}

TEST_CASE("Readers of different IDs reserve side by side") {
  World world;
  MakeReservation(world, "a", {.mode = Mode::kRead});
  MakeReservation(world, "b", {.mode = Mode::kRead});
  JoinedReserver reader(world, "", {.mode = Mode::kRead});
  CHECK(reader.Holds());
  JoinedReserver writer(world, "", {.mode = Mode::kWrite});
  CHECK(writer.Waits());
}

TEST_CASE("Several LOCKs are reserved together, or none of them") {
  World world;
  world.servers.Put("/m", 0, false, "zklock/1");
  SECTION("both are free") {
    JoinedReserver both(world, "x", {.locks = {"/l", "/m"}});
    REQUIRE(both.HasReserved());
    CHECK(both.made().size() == 2);
    both.Leave();
    CHECK(world.servers.Children("/l").size() == 1);
    CHECK(world.servers.Children("/m").size() == 1);
    JoinedReserver again(world, "x", {.locks = {"/l", "/m"}, .try_only = true});
    CHECK(again.HasFound());
    CHECK(again.found.size() == 2);
  }
  SECTION("one is held") {
    const std::string holder = world.servers.Put("/m/other-lock-", 7, true);
    JoinedReserver both(world, "x", {.locks = {"/l", "/m"}});
    REQUIRE(both.Waits());
    both.Leave();
    CHECK(world.servers.Children("/l").empty());
  }
  SECTION("one is deleted before the conversion") {
    Reserver both(world, "x", {.locks = {"/l", "/m"}});
    both.store.Before("convert ", [&] { world.servers.Remove(both.notes.queued); });
    both.Run();
    CHECK(both.obstacle().why == NotReserved::Why::kRemoved);
    both.Leave();
    CHECK(world.servers.Children("/l").empty());
    CHECK(world.servers.Children("/m").empty());
  }
  SECTION("one is released before the answer has been read") {
    const bool is_first = GENERATE(false, true);
    const std::optional<Fault> fault =
        GENERATE(std::optional<Fault>(), Fault::kNotDone, Fault::kReplyLost, Fault::kExpiredNotDone,
                 Fault::kExpiredReplyLost);
    Reserver both(world, "x", {.locks = {"/l", "/m"}});
    bool has_released = false;
    both.store.Before("convert ", [&] {
      both.store.Before("get ", [&] {
        const Ticket& one = is_first ? both.tickets.front() : both.tickets.back();
        has_released = world.servers.nodes.at(one.path).owner == 0;
        world.servers.Remove(one.path);
        if (fault) both.store.PlaceFault("delete ", *fault);
      });
    });
    both.Run();
    REQUIRE(has_released);
    CHECK(both.result);
    CHECK_FALSE(both.HasReserved());
    both.Leave();
    CHECK(world.servers.Children("/l").empty());
    CHECK(world.servers.Children("/m").empty());
  }
  SECTION("one is released before the answer has been read, and the other cannot be deleted") {
    Reserver both(world, "x", {.locks = {"/l", "/m"}});
    both.store.Before("convert ", [&] {
      both.store.Before("get ", [&] {
        world.servers.Remove(both.tickets.front().path);
        both.store.may_delete = false;
      });
    });
    both.Run();
    REQUIRE(both.failure);
    CHECK(both.failure->may_be_made());
  }
  SECTION("one is reserved already") {
    const ReservedLock made = MakeReservation(world, "x");
    Reserver both(world, "x", {.locks = {"/l", "/m"}});
    SECTION("and stays") {
      both.Run();
      REQUIRE(both.HasReserved());
      CHECK(both.found.size() == 1);
      CHECK(both.made().size() == 1);
    }
    SECTION("and is released meanwhile") {
      both.store.Before("convert ", [&] { world.servers.Remove(made.path); });
      both.Run();
      CHECK(both.obstacle().why == NotReserved::Why::kRemoved);
      both.Leave();
      CHECK(world.servers.Children("/m").empty());
    }
  }
}

TEST_CASE(
    "No contender stays in a LOCK already reserved for the ID even if the connection is lost") {
  World world;
  const bool has_permits = GENERATE(false, true);
  ReserveOptions options{.lasts = 1h};
  if (has_permits) options.permits = 1;
  MakeReservation(world, "ci", options);
  options.locks = {"/m"};
  const JoinedReserver holder(world, "", options);
  options.locks = {"/l", "/m"};
  Reserver self(world, "ci", options);
  self.store.PlaceFault("delete /l/", Fault::kNotDone);
  self.Run();
  REQUIRE(self.Waits());
  if (has_permits) {
    CHECK(world.servers.Children("/l/locks").empty());
    CHECK(world.servers.Children("/l/leases").size() == 1);
  } else {
    CHECK(world.servers.Children("/l").size() == 1);
  }
}

TEST_CASE("A fault at any request leaves one reservation, or nothing") {
  const auto fault = GENERATE(from_range(kLosses));
  World plain;
  JoinedReserver sample(plain, "x");
  for (std::size_t at = 0; at < sample.store.requests_sent(); ++at) {
    CAPTURE(static_cast<int>(fault), at, sample.store.log()[at]);
    World world;
    Reserver self(world, "x");
    self.store.PlaceFault(at, fault);
    self.Run();
    REQUIRE(self.result);
    self.Leave();
    CHECK(world.servers.Children("/l").size() == (self.HasReserved() ? 1 : 0));
    // The place is lost only if the session, and so the contender, expires.
    const bool may_lose = fault == Fault::kExpiredNotDone || fault == Fault::kExpiredReplyLost;
    if (!may_lose) CHECK(self.HasReserved());
    if (self.HasReserved()) {
      CHECK(self.made().front().reserved.reservation.token == self.tickets.front().token);
    }
  }
}

TEST_CASE("If the session expires before the conversion was done, nothing is reserved or removed") {
  World world;
  world.servers.Put("/m", 0, false, "zklock/1");
  Reserver self(world, "x", {.locks = {"/l", "/m"}});
  self.store.PlaceFault("convert ", Fault::kExpiredNotDone);
  self.Run();
  CHECK(self.obstacle().why == NotReserved::Why::kExpired);
  CHECK(world.servers.Children("/l").empty());
  CHECK(world.servers.Children("/m").empty());
}

TEST_CASE("A request to leave that arrives before the conversion is not lost with the contender") {
  World world;
  Reserver self(world, "x");
  self.store.Before("convert ", [&] {
    const std::string path = self.tickets.front().path;
    world.servers.Write(path, AddReleaseRequest(world.servers.nodes.at(path).data,
                                                {.by = "root on web1", .reason = "please"}));
  });
  self.Run();
  CHECK(self.obstacle().why == NotReserved::Why::kAskedToLeave);
  CHECK(self.obstacle().request.by == "root on web1");
  self.Leave();
  CHECK(world.servers.Children("/l").empty());
}

TEST_CASE("The mark of a forced release that was never carried out prevents no reservation") {
  World world;
  Reserver self(world, "x");
  self.store.Before("convert ", [&] {
    const std::string path = self.tickets.front().path;
    world.servers.Write(path, AddReleaseRequest(world.servers.nodes.at(path).data,
                                                {.by = "root on web1", .forced = true}));
  });
  self.Run();
  CHECK(self.HasReserved());
}

TEST_CASE(
    "A version that a contender had before the conversion is never a version of the reservation") {
  World world;
  JoinedReserver reserver(world, "deploy-1");
  REQUIRE(reserver.HasReserved());
  const std::string path = reserver.made().front().path;
  // A client that has read the contender might send a request to leave, or a delete, with version
  // 0.
  CHECK_FALSE(world.servers.HasVersion(path, 0));
}

TEST_CASE("A contender that another session owns at the conversion is not converted") {
  World world;
  Reserver self(world, "x");
  self.store.Before("convert ", [&] {
    const std::string path = self.tickets.front().path;
    world.servers.nodes.at(path).owner = 7;
    world.servers.Write(path, world.servers.nodes.at(path).data);
  });
  self.Run();
  CHECK(self.obstacle().why == NotReserved::Why::kRemoved);
  CHECK(world.servers.nodes.at(self.tickets.front().path).owner == 7);
}

TEST_CASE(
    "If only some of several contenders are found converted the conversion is not the run's own") {
  World world;
  world.servers.Put("/m", 0, false, "zklock/1");
  Reserver self(world, "x", {.locks = {"/l", "/m"}});
  self.store.Before("convert ", [&] {
    const Ticket& first = self.tickets.front();
    auto& node = world.servers.nodes.at(first.path);
    node.owner = 0;
    node.czxid = ++world.servers.zxid;
    world.servers.Write(first.path, FormatReservation(node.data, {.id = "x"}, first.token));
  });
  self.Run();
  CHECK(self.obstacle().why == NotReserved::Why::kRemoved);
  self.Leave();
  CHECK(world.servers.Children("/m").empty());
}

TEST_CASE("Without permission to delete in LOCK nothing is reserved") {
  World world;
  Reserver self(world, "x");
  self.store.Refuse("convert ", zookeeper::Error::kNoAuth);
  self.Run();
  REQUIRE(self.failure);
  CHECK(std::get<Refused>(self.failure->failure()).right == "DELETE");
  CHECK_FALSE(self.failure->may_be_made());
}

TEST_CASE("A persistent child that is not a reservation is nobody's contender") {
  World world;
  SECTION("without valid data") { world.servers.Put(NameOf("0e"), 0, true, "{}"); }
  SECTION("without the name of a contender that reserves") {
    world.servers.Put(NameOf("0e", "-lock-"), 0, true, FormatReservation("{}", {.id = "x"}, 1));
  }
  SECTION("with a token from the future") {
    world.servers.Put(NameOf("0e"), 0, true, FormatReservation("{}", {.id = "x"}, 1'000'000));
  }
  JoinedReserver self(world, GENERATE(as<std::string>{}, "", "x", "y"));
  REQUIRE(self.outcome);
  CHECK(std::get<Unusable>(*self.outcome).why == Unusable::Why::kNobodysContender);
}

TEST_CASE("An ephemeral contender with the data of a reservation is an ordinary contender") {
  World world;
  const std::string forged =
      world.servers.Put(NameOf("0e"), 7, true, FormatReservation("{}", {.id = "x"}, 1));
  JoinedReserver self(world, "x");
  REQUIRE(self.Waits());
  world.servers.Remove(forged);
  self.Run();
  CHECK(self.HasReserved());
}

// ---- permits --------------------------------------------------------------------------------

TEST_CASE("A reserved permit counts as taken, and the same ID has only one") {
  World world;
  const ReserveOptions two{.permits = 2};
  const ReservedLock a = MakeReservation(world, "a", two);
  CHECK(protocol::ParentOf(a.path) == "/l/leases");
  JoinedReserver again(world, "a", two);
  CHECK(again.HasFound());
  again.Leave();
  const ReservedLock b = MakeReservation(world, "b", two);
  CHECK(world.servers.Children("/l/leases").size() == 2);
  CHECK(world.servers.Children("/l/locks").empty());

  JoinedReserver third(world, "c", two);
  CHECK(third.Waits());
  JoinedReserver busy(world, "d", {.try_only = true, .permits = 2});
  CHECK(busy.IsBusy());
  busy.Leave();
  world.servers.Remove(a.path);
  third.Run();
  CHECK(third.HasReserved());
}

TEST_CASE("Two runs with the same ID in the turnstile get one permit") {
  World world;
  Reserver first(world, "x", {.permits = 3});
  Reserver second(world, "x", {.permits = 3});
  first.store.Before("convert ", [&] {
    second.Run();
    REQUIRE(second.Waits());
  });
  first.Run();
  REQUIRE(first.HasReserved());
  first.Leave();
  second.Run();
  CHECK(second.HasFound());
  second.Leave();
  CHECK(world.servers.Children("/l/leases").size() == 1);
}

TEST_CASE("A waiter for a permit deletes the reservation whose end comes first") {
  World world;
  MakeReservation(world, "a", {.permits = 2});
  const ReservedLock b = MakeReservation(world, "b", {.permits = 2, .lasts = 1min});
  JoinedReserver waiter(world, "", {.permits = 2});
  REQUIRE(waiter.Waits());
  waiter.Pass(59s);
  CHECK(waiter.Waits());
  waiter.Pass(2s);
  CHECK_FALSE(world.servers.Has(b.path));
  waiter.Pass(30s);
  CHECK(waiter.Holds());
}

// ---- the end --------------------------------------------------------------------------------

TEST_CASE("A waiter ends a reservation that has lasted long enough, and leaves its record") {
  auto [world, freeze] = ReservedWorld("freeze", {.lasts = 4h});
  JoinedReserver waiter(world, "", {.mode = GENERATE(Mode::kExclusive, Mode::kRead)});
  for (int quarter = 0; quarter < 15; ++quarter) {
    waiter.Pass(16min);
    REQUIRE(world.servers.Has(freeze.path) == (quarter < 14));
    if (quarter < 14) REQUIRE(waiter.Waits());
  }
  waiter.Pass(30s);
  CHECK(waiter.Holds());
  const auto data = protocol::ParseLockData(world.servers.nodes.at("/l").data);
  REQUIRE(data);
  REQUIRE(data->last_release);
  CHECK(data->last_release->is_reservation);
  CHECK(data->last_release->token == freeze.reserved.reservation.token);
  CHECK(data->last_release->contender == protocol::BaseOf(freeze.path));
}

TEST_CASE("The servers' clock ends a reservation, not the waiter's") {
  World world;
  world.servers.now_ms = 20'000 * kDay;
  const ReservedLock freeze = MakeReservation(world, "freeze", {.lasts = 1h});
  JoinedReserver waiter(world, "");
  SECTION("the waiter's is ahead") {
    world.clock.Set(world.clock.Now() + 2h);
    waiter.Run();
    CHECK(world.servers.Has(freeze.path));
    CHECK(waiter.Waits());
    waiter.Pass(2h);
    CHECK(waiter.Holds());
  }
  SECTION("the servers' is set forward") {
    world.servers.now_ms += 3 * kDay;
    waiter.Run();
    CHECK(world.servers.Has(freeze.path));
    world.clock.Set(world.clock.Now() + 1h + 1ms);
    waiter.Run();
    CHECK_FALSE(world.servers.Has(freeze.path));
    waiter.Pass(30s);
    CHECK(waiter.Holds());
  }
}

TEST_CASE("A contender that joins after the end gets the lock at once, even a try") {
  const std::string id = GENERATE(as<std::string>{}, "", "freeze", "other");
  const bool try_only = GENERATE(false, true);
  auto [world, freeze] = ReservedWorld("freeze", {.lasts = 1h});
  world.servers.now_ms += 3'600'000;
  JoinedReserver self(world, id, {.try_only = try_only});
  CHECK_FALSE(world.servers.Has(freeze.path));
  CHECK(self.Holds());
  if (!id.empty()) CHECK(self.HasReserved());
}

TEST_CASE("A try that joins before the end leaves, and the same ID finds its reservation") {
  auto [world, freeze] = ReservedWorld("freeze", {.lasts = 1h});
  world.servers.now_ms += 3'599'999;
  JoinedReserver other(world, GENERATE(as<std::string>{}, "", "other"), {.try_only = true});
  CHECK(other.IsBusy());
  other.Leave();
  JoinedReserver again(world, "freeze", {.try_only = GENERATE(false, true)});
  CHECK(again.HasFound());
  again.Leave();
  CHECK(world.servers.Children("/l").size() == 1);
}

TEST_CASE("A try gets a permit whose reservation has ended") {
  World world;
  MakeReservation(world, "a", {.permits = 2});
  const ReservedLock b = MakeReservation(world, "b", {.permits = 2, .lasts = 1min});
  world.servers.now_ms += 60'000;
  JoinedReserver self(world, "", {.try_only = true, .permits = 2});
  CHECK_FALSE(world.servers.Has(b.path));
  CHECK(self.Holds());
}

TEST_CASE("A reader with the same ID replaces its reservation that has ended") {
  auto [world, old] = ReservedWorld("x", {.mode = Mode::kRead, .lasts = 1h});
  world.servers.now_ms += 3'600'000;
  JoinedReserver self(world, "x", {.mode = Mode::kRead});
  REQUIRE(self.HasReserved());
  self.Leave();
  CHECK_FALSE(world.servers.Has(old.path));
  CHECK(world.servers.Children("/l").size() == 1);
}

TEST_CASE("A reservation that is written to or deleted at its end is checked again") {
  auto [world, freeze] = ReservedWorld("freeze", {.lasts = 1h});
  JoinedReserver waiter(world, "");
  SECTION("it gets more time") {
    waiter.store.Before("write /l", [&] {
      world.servers.Write(freeze.path, FormatReservation("{}", {.id = "freeze", .lasts = 2h},
                                                         freeze.reserved.reservation.token));
    });
    waiter.Pass(1h + 1s);
    CHECK(world.servers.Has(freeze.path));
    CHECK(waiter.Waits());
    waiter.Pass(1h + 30s);
    CHECK(waiter.Holds());
  }
  SECTION("it is released") {
    waiter.store.Before("write /l", [&] { Release(world, freeze); });
    waiter.Pass(1h + 31s);
    CHECK(waiter.Holds());
  }
}

TEST_CASE(
    "A waiter that cannot delete a reservation that has ended keeps waiting, and a try leaves") {
  const bool try_only = GENERATE(false, true);
  auto [world, freeze] = ReservedWorld("freeze", {.lasts = 1h});
  world.servers.now_ms += 3'600'000;
  Reserver self(world, "", {.try_only = try_only});
  self.store.Refuse("write /l", zookeeper::Error::kNoAuth);
  self.store.Refuse("delete " + freeze.path, zookeeper::Error::kNoAuth);
  self.Run();
  CHECK(self.IsBusy() == try_only);
  CHECK(self.Waits() == !try_only);
  if (try_only) return;
  Release(world, freeze);
  self.Run();
  CHECK(self.Holds());
}

TEST_CASE("A forged reservation after a holder gives nobody a turn, and leaves no record") {
  World world;
  JoinedReserver holder(world, "");
  REQUIRE(holder.Holds());
  // This only takes CREATE permission.
  const std::string forged = world.servers.Put(
      NameOf("0e"), 0, true, R"({"reservation":{"id":"x","for":1500,"token":1}})");
  const Mode mode = GENERATE(Mode::kRead, Mode::kExclusive);
  std::vector<std::unique_ptr<Reserver>> waiters;
  for (int i = 0; i < 4; ++i) {
    waiters.push_back(std::make_unique<Reserver>(world, "", ReserveOptions{.mode = mode}));
    waiters.back()->Run();
  }
  for (int i = 0; i < 3; ++i) {
    for (const auto& one : waiters) one->Pass(1s);
  }
  REQUIRE_FALSE(world.servers.nodes.contains(forged));
  CHECK(world.servers.nodes.at("/l").data == "zklock/1");
  for (const auto& one : waiters) CHECK(one->Waits());
  holder.Leave();
  waiters.front()->Run();
  CHECK(waiters.front()->Holds());
}

TEST_CASE(
    "A forged reservation for our ID after a holder does not let us run while the holder does") {
  const Mode mode = GENERATE(Mode::kExclusive, Mode::kRead);
  const bool joins_before = GENERATE(false, true);
  const bool try_only = GENERATE(false, true);
  World world;
  JoinedReserver holder(world, "");
  REQUIRE(holder.Holds());
  const auto forge = [&] {
    for (const char* const uuid : {"0e", "0f"}) {
      world.servers.Put(NameOf(uuid, mode == Mode::kRead ? "-reserve-__READ__" : "-reserve-lock-"),
                        0, true, R"({"reservation":{"id":"x","token":1}})");
    }
  };
  if (!joins_before) forge();
  JoinedReserver self(world, "x", {.mode = mode, .try_only = try_only});
  if (joins_before) forge();
  self.Pass(30s);
  CHECK(self.IsBusy() == try_only);
  CHECK(self.Waits() == !try_only);
  if (try_only) return;
  holder.Leave();
  self.Run();
  // The forged reservation holds now, and whoever knows the ID counts as its owner.
  CHECK((joins_before ? self.Holds() : self.HasFound()));
}

TEST_CASE("A forged permit for our ID beyond the number of permits does not count") {
  const bool try_only = GENERATE(false, true);
  auto [world, a] = ReservedWorld("a", {.permits = 2});
  MakeReservation(world, "b", {.permits = 2});
  world.servers.Put("/l/leases/host-" + test::kUuid + "-reserve-lease-", 0, true,
                    R"({"reservation":{"id":"x","token":1}})");
  JoinedReserver self(world, "x", {.try_only = try_only, .permits = 2});
  CHECK(self.IsBusy() == try_only);
  CHECK(self.Waits() == !try_only);
  if (try_only) return;
  world.servers.Remove(a.path);
  self.Run();
  CHECK(self.HasFound());
}

TEST_CASE("In another program's LOCK a reservation ends without a record") {
  World world(true, "theirs");
  MakeReservation(world, "freeze", {.lasts = 1h});
  world.servers.now_ms += 3'600'000;
  JoinedReserver self(world, "");
  CHECK(self.Holds());
  CHECK(world.servers.nodes.at("/l").data == "theirs");
}

TEST_CASE("A fault at any request of a waiter ends a reservation once, and never too early") {
  const auto fault = GENERATE(from_range(kLosses));
  for (std::size_t at = 0; at < 60; ++at) {
    CAPTURE(static_cast<int>(fault), at);
    auto [world, freeze] = ReservedWorld("freeze", {.lasts = 30s});
    Reserver waiter(world, "");
    waiter.store.PlaceFault(at, fault);
    waiter.Run();
    waiter.Pass(29s);
    REQUIRE(waiter.Waits());
    REQUIRE(world.servers.Has(freeze.path));
    waiter.Pass(1min);
    REQUIRE_FALSE(world.servers.Has(freeze.path));
    REQUIRE(waiter.Holds());
  }
}

}  // namespace zklock::lock
