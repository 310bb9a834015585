#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "unit/lock/reserver.h"

// Overdue reservations that the contender directly after them does not delete.

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::Fault;
using test::kLosses;

/// Creates a contender of a program that does not delete reservations.
std::string PutOther(World& world, const std::string& queue = "/l",
                     const std::string& mark = "-lock-") {
  return world.servers.Put(queue + "/_c_0123abcd-0123-4123-8123-0123456789ab" + mark, 7, true);
}

void PassServersTime(World& world, std::chrono::milliseconds time) {
  world.clock.Set(world.clock.Now() + time);
  world.servers.now_ms += time.count();
}

}  // namespace

TEST_CASE("The first zklock after an overdue reservation deletes it, whoever is in between") {
  const bool joins_late = GENERATE(false, true);
  const Mode mode = GENERATE(Mode::kExclusive, Mode::kRead);
  auto [world, freeze] = ReservedWorld("freeze", {.lasts = 1h});
  // A contender of Curator's mutex or of its read/write lock.
  const std::string other = PutOther(world, "/l", mode == Mode::kRead ? "-__WRIT__" : "-lock-");
  if (joins_late) PassServersTime(world, 1h);
  JoinedReserver waiter(world, "", {.mode = mode});
  if (!joins_late) {
    waiter.Pass(59min);
    REQUIRE(world.servers.Has(freeze.path));
    waiter.Pass(1min);
  }
  CHECK_FALSE(world.servers.Has(freeze.path));
  CHECK(waiter.Waits());
  const auto data = protocol::ParseLockData(world.servers.nodes.at("/l").data);
  REQUIRE(data);
  REQUIRE(data->last_release);
  CHECK(data->last_release->contender == protocol::BaseOf(freeze.path));
  world.servers.Remove(other);
  waiter.Run();
  CHECK(waiter.Holds());
}

TEST_CASE("An overdue reservation after a holder is deleted without a record") {
  World world;
  const std::string holder = PutOther(world);
  const std::string forged = world.servers.Put(
      NameOf("0e"), 0, true, R"({"reservation":{"id":"x","for":1500,"token":1}})");
  PutOther(world);
  JoinedReserver waiter(world, "");
  waiter.Pass(2s);
  CHECK_FALSE(world.servers.Has(forged));
  CHECK(world.servers.nodes.at("/l").data == "zklock/1");
  CHECK(waiter.Waits());
}

TEST_CASE(
    "A zklock that lacks permission to delete an overdue reservation reports it, and the next one "
    "deletes it") {
  auto [world, freeze] = ReservedWorld("freeze", {.lasts = 1h});
  Reserver first(world, "");
  first.store.may_delete = false;
  first.Run();
  JoinedReserver second(world, "");
  PassServersTime(world, 1h);
  const std::size_t lists = second.store.CountSent("list /l");
  second.Run();
  first.Run();
  CHECK(first.notes.overdue == std::vector{freeze.path});
  CHECK(first.Waits());
  CHECK(world.servers.Has(freeze.path));
  CHECK(second.store.CountSent("list /l") == lists);
  second.Pass(1s);
  CHECK_FALSE(world.servers.Has(freeze.path));
  // One list before the delete, and one after it.
  CHECK(second.store.CountSent("list /l") == lists + 2);
  CHECK(second.notes.overdue.empty());
  first.Pass(30s);
  CHECK(first.Holds());
}

TEST_CASE("A contender created before the servers' clock is set back ends no new reservation") {
  const std::string id = GENERATE(as<std::string>{}, "", "another", "freeze");
  World world;
  world.servers.now_ms = 1'000'000'000;
  world.servers.Put("/l", 0);
  const std::string holder = PutOther(world);
  JoinedReserver maker(world, "freeze", {.lasts = 1h});
  JoinedReserver waiter(world, id);
  REQUIRE(waiter.Waits());
  world.servers.now_ms -= std::chrono::milliseconds(2h).count();
  world.servers.Remove(holder);
  maker.Run();
  REQUIRE(maker.HasReserved());
  const ReservedLock freeze = maker.made().front();
  maker.Leave();
  waiter.Run();
  CHECK(world.servers.Has(freeze.path));
  if (id == "freeze") {
    CHECK(waiter.HasFound());
  } else {
    waiter.Pass(59min);
    CHECK(world.servers.Has(freeze.path));
    waiter.Pass(1min);
    CHECK_FALSE(world.servers.Has(freeze.path));
    waiter.Pass(30s);
    CHECK(waiter.Holds());
  }
}

TEST_CASE("A waiter that knows the servers' time does not ask for it with each list") {
  auto [world, freeze] = ReservedWorld("freeze", {.lasts = 1h});
  JoinedReserver waiter(world, "");
  REQUIRE(waiter.Waits());
  // An hour passes, and the servers' clocks are set back by an hour.
  world.clock.Set(world.clock.Now() + 1h);
  waiter.Run();
  CHECK(waiter.store.CountSent("set ") == 1);
  for (int i = 0; i < 3; ++i) {
    waiter.store.Disconnect();
    waiter.store.Connect();
    waiter.Run();
  }
  CHECK(waiter.store.CountSent("set ") == 1);
  world.servers.now_ms += std::chrono::milliseconds(1h).count();
  world.clock.Set(world.clock.Now() + 1h);
  waiter.Run();
  CHECK_FALSE(world.servers.Has(freeze.path));
}

TEST_CASE("Waiters list the queue and delete an overdue reservation one after another") {
  constexpr std::size_t kWaiters = 40;
  auto [world, freeze] = ReservedWorld("freeze", {.lasts = 1h});
  std::vector<std::unique_ptr<Reserver>> waiters;
  for (std::size_t i = 0; i < kWaiters; ++i) {
    waiters.push_back(std::make_unique<Reserver>(world, ""));
    waiters.back()->store.may_delete = i + 1 == kWaiters;
    waiters.back()->Run();
    // Each sends one list, and reads the reservation once.
    CHECK(waiters.back()->store.CountSent("list ") == 1);
    CHECK(waiters.back()->store.CountSent("get " + freeze.path) == 1);
  }
  const auto requests = [&] {
    std::size_t sum = 0;
    for (const auto& one : waiters) {
      sum += one->store.CountSent("list ") + one->store.CountSent("delete " + freeze.path);
    }
    return sum;
  };
  PassServersTime(world, 1h);
  std::size_t before = requests();
  for (std::size_t second = 0; second + 1 < kWaiters; ++second) {
    for (const auto& one : waiters) one->Run();
    REQUIRE(world.servers.Has(freeze.path));
    REQUIRE(requests() - before <= 2);
    before = requests();
    PassServersTime(world, 1s);
  }
  for (const auto& one : waiters) one->Run();
  CHECK_FALSE(world.servers.Has(freeze.path));
}

TEST_CASE("A reservation that the first zklock deletes at its end costs the others one read") {
  auto [world, freeze] = ReservedWorld("freeze", {.lasts = 1h});
  std::vector<std::unique_ptr<Reserver>> waiters;
  for (int i = 0; i < 4; ++i) {
    waiters.push_back(std::make_unique<Reserver>(world, ""));
    waiters.back()->Run();
  }
  std::vector<std::size_t> lists;
  for (const auto& one : waiters) lists.push_back(one->store.CountSent("list "));
  PassServersTime(world, 1h);
  for (const auto& one : waiters) one->Run();
  PassServersTime(world, 1s);
  waiters.front()->Pass(20s);
  CHECK(waiters.front()->Holds());
  PassServersTime(world, 1s);
  for (std::size_t i = 1; i < waiters.size(); ++i) {
    waiters[i]->Run();
    CHECK(waiters[i]->store.CountSent("get " + freeze.path) == 2);
    CHECK(waiters[i]->store.CountSent("list ") == lists[i]);
    CHECK(waiters[i]->store.CountSent("delete ") == 0);
    CHECK(waiters[i]->store.CountSent("write ") == 0);
  }
}

TEST_CASE("Two overdue reservations in a row are deleted by the first zklock after them") {
  World world;
  const ReserveOptions reader{.mode = Mode::kRead, .lasts = 1h};
  const ReservedLock a = MakeReservation(world, "a", reader);
  const ReservedLock b = MakeReservation(world, "b", reader);
  PutOther(world);
  JoinedReserver waiter(world, "");
  waiter.Pass(1h);
  CHECK_FALSE(world.servers.Has(a.path));
  CHECK_FALSE(world.servers.Has(b.path));
}

TEST_CASE("A refused delete is tried again later") {
  auto [world, freeze] = ReservedWorld("freeze", {.lasts = 1h});
  Reserver waiter(world, "");
  waiter.store.may_delete = false;
  waiter.Run();
  waiter.Pass(1h);
  CHECK(waiter.notes.overdue.size() == 1);
  waiter.store.may_delete = true;
  waiter.Pass(9min);
  REQUIRE(world.servers.Has(freeze.path));
  waiter.Pass(2min);
  CHECK_FALSE(world.servers.Has(freeze.path));
}

TEST_CASE("A try deletes an overdue reservation before it leaves because of another contender") {
  auto [world, freeze] = ReservedWorld("freeze", {.lasts = 1h});
  std::unique_ptr<Reserver> helpless;
  if (GENERATE(false, true)) {
    helpless = std::make_unique<Reserver>(world, "");
    helpless->store.may_delete = false;
    helpless->Run();
  } else {
    PutOther(world);
  }
  PassServersTime(world, 1h);
  JoinedReserver self(world, "", {.try_only = true});
  CHECK(self.IsBusy());
  CHECK_FALSE(world.servers.Has(freeze.path));
}

TEST_CASE("A try deletes readers' reservations that have ended, even after one that has not") {
  auto [world, a] = ReservedWorld("a", {.mode = Mode::kRead});
  const ReservedLock b = MakeReservation(world, "b", {.mode = Mode::kRead, .lasts = 1h});
  PassServersTime(world, 1h);
  JoinedReserver self(world, "", {.try_only = true});
  CHECK(self.IsBusy());
  CHECK(world.servers.Has(a.path));
  CHECK_FALSE(world.servers.Has(b.path));
}

TEST_CASE("A try that lacks permission to delete an overdue reservation reports it and leaves") {
  auto [world, freeze] = ReservedWorld("freeze", {.lasts = 1h});
  PutOther(world);
  PassServersTime(world, 1h);
  Reserver self(world, "", {.try_only = true});
  self.store.may_delete = false;
  self.Run();
  CHECK(self.IsBusy());
  CHECK(self.notes.overdue == std::vector{freeze.path});
}

TEST_CASE("A wait does not end before an overdue reservation has been deleted") {
  const std::string id = GENERATE(as<std::string>{}, "", "freeze", "other");
  const std::optional<std::size_t> permits = GENERATE(std::optional<std::size_t>{}, 1);
  auto [world, freeze] = ReservedWorld("freeze", {.permits = permits, .lasts = 1h});
  PassServersTime(world, 1h);
  Reserver self(world, id, {.permits = permits, .wait = 1ms});
  CAPTURE(id, permits.has_value());
  self.store.Connect();
  while (self.set && self.store.Step()) {
    PassServersTime(world, 2ms);
    self.RunSet();
  }
  CHECK_FALSE(self.IsBusy());
  CHECK_FALSE(world.servers.Has(freeze.path));
}

TEST_CASE("A wait ends in time if the reservation has not ended") {
  World world;
  MakeReservation(world, "freeze", {.lasts = 1h});
  JoinedReserver self(world, GENERATE(as<std::string>{}, "", "other"), {.wait = 1min});
  CHECK(self.Waits());
  self.Pass(1min);
  CHECK(self.IsBusy());
}

TEST_CASE("A new --reserve deletes an overdue reservation at once, wherever it queues") {
  const std::string id = GENERATE(as<std::string>{}, "freeze", "other");
  auto [world, freeze] = ReservedWorld("freeze", {.lasts = 1h});
  const std::string other = PutOther(world);
  Reserver helpless(world, "");
  helpless.store.may_delete = false;
  helpless.Run();
  PassServersTime(world, 1h);
  JoinedReserver self(world, id, {.lasts = 1h});
  CHECK_FALSE(world.servers.Has(freeze.path));
  REQUIRE(self.Waits());
  world.servers.Remove(other);
  helpless.Leave();
  self.Run();
  CHECK(self.HasReserved());
}

TEST_CASE("A full queue is left only after an overdue reservation was deleted") {
  auto [world, freeze] = ReservedWorld("freeze", {.lasts = 1h});
  const std::string other = PutOther(world);
  PassServersTime(world, 1h);
  JoinedReserver self(world, "", {.max_queue = 1});
  CHECK_FALSE(world.servers.Has(freeze.path));
  CHECK(self.Waits());
  JoinedReserver late(world, "", {.max_queue = 1});
  REQUIRE(late.IsBusy());
  CHECK(std::get<Busy>(*late.outcome).why == Busy::Why::kQueueFull);
}

TEST_CASE("A contender that reserves after it was listed is noticed within ten minutes") {
  World world;
  Reserver first(world, "freeze", {.lasts = 5min});
  std::unique_ptr<Reserver> waiter;
  first.store.Before("convert ", [&] {
    PutOther(world);
    waiter = std::make_unique<Reserver>(world, "");
    waiter->Run();
    REQUIRE(waiter->Waits());
  });
  first.Run();
  REQUIRE(first.HasReserved());
  const std::string reservation = first.made().front().path;
  first.Leave();
  waiter->Pass(9min);
  REQUIRE(world.servers.Has(reservation));
  waiter->Pass(2min);
  CHECK_FALSE(world.servers.Has(reservation));
}

TEST_CASE("Only a few of many contenders that want to reserve are read") {
  World world;
  for (int i = 0; i < 100; ++i) world.servers.Put(NameOf("0e"), 7, true, "{}");
  JoinedReserver waiter(world, "");
  CHECK(waiter.store.CountSent("get /l/") <= 18);
}

TEST_CASE("A waiter after another program's contender ends a reservation despite any fault") {
  const auto fault = GENERATE(from_range(kLosses));
  for (std::size_t at = 0; at < 60; ++at) {
    CAPTURE(static_cast<int>(fault), at);
    auto [world, freeze] = ReservedWorld("freeze", {.lasts = 30s});
    const std::string other = PutOther(world);
    Reserver waiter(world, "");
    waiter.store.PlaceFault(at, fault);
    waiter.Run();
    waiter.Pass(29s);
    REQUIRE(waiter.Waits());
    REQUIRE(world.servers.Has(freeze.path));
    waiter.Pass(1min);
    REQUIRE_FALSE(world.servers.Has(freeze.path));
    world.servers.Remove(other);
    waiter.Pass(30s);
    REQUIRE(waiter.Holds());
  }
}

// ---- permits --------------------------------------------------------------------------------

namespace {

/// Creates a Curator contender that has passed the turnstile and waits for a permit.
void PutOtherWithoutPermit(World& world) {
  PutOther(world, "/l/locks");
  PutOther(world, "/l/leases", "-lease-");
}

}  // namespace

TEST_CASE("A waiter in the turnstile deletes an overdue permit that another program waits for") {
  const std::string id = GENERATE(as<std::string>{}, "", "freeze", "other");
  const bool joins_late = GENERATE(false, true);
  auto [world, freeze] = ReservedWorld("freeze", {.permits = 1, .lasts = 1h});
  PutOtherWithoutPermit(world);
  if (joins_late) PassServersTime(world, 1h);
  JoinedReserver waiter(world, id, {.permits = 1});
  if (!joins_late) {
    if (id == "freeze") {
      CHECK(waiter.HasFound());
      return;
    }
    waiter.Pass(59min);
    REQUIRE(world.servers.Has(freeze.path));
    waiter.Pass(2min);
  }
  CHECK_FALSE(world.servers.Has(freeze.path));
  CHECK(waiter.Waits());
}

TEST_CASE("A second waiter in the turnstile waits before it deletes an overdue permit") {
  auto [world, freeze] = ReservedWorld("freeze", {.permits = 1, .lasts = 1h});
  PutOtherWithoutPermit(world);
  Reserver first(world, "", {.permits = 1});
  first.store.may_delete = false;
  first.store.may_delete_below = "/l/locks";
  first.Run();
  JoinedReserver second(world, "", {.permits = 1});
  PassServersTime(world, 1h);
  second.Run();
  first.Run();
  CHECK(first.notes.overdue == std::vector{freeze.path});
  CHECK(world.servers.Has(freeze.path));
  second.Pass(1s);
  CHECK_FALSE(world.servers.Has(freeze.path));
}

TEST_CASE("A waiter in the turnstile notices within ten minutes that a permit was reserved") {
  World world;
  world.servers.Put("/l/leases", 0, false, "1");
  world.servers.Put("/l/locks", 0);
  PutOtherWithoutPermit(world);
  JoinedReserver waiter(world, "", {.permits = 1});
  REQUIRE(waiter.Waits());
  const std::string made =
      world.servers.Put("/l/leases/host-0f8fad5b-d9cb-469f-a165-70867728950e-reserve-lease-", 0,
                        true, R"({"reservation":{"id":"x","for":1000,"token":1}})");
  waiter.Pass(9min);
  REQUIRE(world.servers.Has(made));
  waiter.Pass(2min);
  CHECK_FALSE(world.servers.Has(made));
}

TEST_CASE("A try in the turnstile deletes an overdue permit before it leaves") {
  auto [world, freeze] = ReservedWorld("freeze", {.permits = 1, .lasts = 1h});
  PutOtherWithoutPermit(world);
  PassServersTime(world, 1h);
  const bool may_delete = GENERATE(false, true);
  Reserver self(world, GENERATE(as<std::string>{}, "", "freeze", "other"),
                {.try_only = true, .permits = 1});
  self.store.may_delete = may_delete;
  self.store.may_delete_below = "/l/locks";
  self.Run();
  CHECK(self.IsBusy());  // the other one gets the permit
  CHECK(world.servers.Has(freeze.path) == !may_delete);
  CHECK(self.notes.overdue.empty() == may_delete);
}

TEST_CASE("A full turnstile is left only after an overdue permit was deleted") {
  auto [world, freeze] = ReservedWorld("freeze", {.permits = 1, .lasts = 1h});
  PutOtherWithoutPermit(world);
  PassServersTime(world, 1h);
  JoinedReserver self(world, "", {.permits = 1, .max_queue = 1});
  CHECK_FALSE(world.servers.Has(freeze.path));
}

}  // namespace zklock::lock
