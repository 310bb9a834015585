#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <variant>

#include "unit/lock/contender.h"

// The other ways to queue: a single-znode lock, --supersede, a queue of limited length. Also
// incompatible contenders found when the place in the queue is lost and a new one is taken.

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using protocol::Dialect;
using test::Fault;
using test::kLosses;

AcquireRequest Simple(bool try_only = false) {
  return {.lock = {"/l", ""},
          .dialect = Dialect::kSimple,
          .host = "host",
          .data = "",
          .try_only = try_only};
}

AcquireRequest Newest() {
  return {.lock = {"/l", ""}, .host = "host", .data = "", .supersede = true};
}

AcquireRequest WithMaxQueue(std::size_t waiting, Mode mode = Mode::kExclusive) {
  return {.lock = {"/l", ""}, .mode = mode, .host = "host", .data = "", .max_queue = waiting};
}

constexpr const char* kNewer = "/l/host-0f8fad5b-d9cb-469f-a165-70867728950e-newest-lock-";
constexpr const char* kKazoo = "/l/0123456789abcdef0123456789abcdef__lock__";

// ---- one znode ------------------------------------------------------------------------------

TEST_CASE(
    "In the simple dialect the znode's creator holds the lock, and the others watch the znode") {
  World world;
  Joined holder(world, Simple());
  REQUIRE(holder.Holds());
  CHECK(holder.ticket().path == "/l/lock");
  Joined waiter(world, Simple());
  REQUIRE_FALSE(waiter.acquire.outcome());
  Joined busy(world, Simple(true));
  CHECK(busy.why() == Busy::Why::kTaken);
  holder.Release(world.servers);
  CHECK(waiter.RunToHold());
}

TEST_CASE("A waiter watches the children of LOCK if it cannot read a simple lock's znode") {
  World world;
  world.servers.Put("/l/lock", 7);
  world.servers.nodes["/l/lock"].readable = false;
  Joined self(world, Simple());
  REQUIRE_FALSE(self.acquire.outcome());
  world.servers.Put("/l/something", 0);  // wakes the waiter, changes nothing
  REQUIRE(self.RunToWait());
  world.servers.Remove("/l/lock");
  CHECK(self.RunToHold());
}

TEST_CASE("A simple lock that is deleted just before its parent is watched is acquired") {
  const bool lock_too = GENERATE(false, true);
  World world;
  world.servers.Put("/l/lock", 7);
  world.servers.nodes["/l/lock"].readable = false;
  Contender self(world, Simple());
  self.store.Before("get /l/lock", [&] {
    self.store.Before("list /l", [&] {  // with the watch
      world.servers.Remove("/l/lock");
      if (lock_too) world.servers.Remove("/l");
    });
  });
  CHECK(self.RunToHold());
}

TEST_CASE("A wait for a simple lock is not over while an answer may show that the lock is free") {
  World world;
  world.servers.Put("/l/lock", 7);
  AcquireRequest request = Simple();
  request.wait = 500ms;
  const bool is_readable = GENERATE(true, false);
  world.servers.nodes.at("/l/lock").readable = is_readable;
  Contender self(world, request);
  self.store.Connect();
  while (self.notes.waits.empty()) REQUIRE(self.store.Step());
  const std::size_t lists = self.store.CountSent("list /l");
  while (!is_readable && self.store.CountSent("list /l") == lists) REQUIRE(self.store.Step());
  const bool was_released = GENERATE(true, false);
  if (was_released) world.servers.Remove("/l/lock");
  world.clock.Advance(1s);
  self.acquire.OnReady(0);
  CHECK_FALSE(self.acquire.outcome());
  self.store.Run();
  self.acquire.OnReady(0);
  CHECK(self.Holds() == was_released);
  if (!was_released) CHECK(self.why() == Busy::Why::kWaitOver);
}

TEST_CASE("A fault at any request leaves one simple znode, which is held") {
  const auto fault = GENERATE(from_range(kLosses));
  World plain;
  Joined sample(plain, Simple());
  for (std::size_t at = 0; at < sample.store.requests_sent(); ++at) {
    CAPTURE(static_cast<int>(fault), at);
    World world;
    Contender self(world, Simple());
    self.store.PlaceFault(at, fault);
    REQUIRE(self.RunToHold());
    CHECK(world.servers.nodes.at("/l/lock").owner == self.store.session_id());
    CHECK(self.ticket().token == world.servers.nodes.at("/l/lock").czxid);
  }
}

TEST_CASE("Another contender's simple znode is not adopted for a create that was not executed") {
  World world;
  const bool deleted = GENERATE(false, true);
  Contender self(world, Simple());
  self.store.PlaceFault("create /l/lock", Fault::kNotDone);
  self.store.Before("sync ", [&] { world.servers.Put("/l/lock", 7); });
  if (deleted) self.store.Before("get /l/lock", [&] { world.servers.Remove("/l/lock"); });
  self.store.Run();
  CHECK(self.Holds() == deleted);
  CHECK((self.acquire.outcome() != nullptr) == deleted);
}

TEST_CASE("A simple lock is refused where a queue exists") {
  World world;
  world.servers.Put("/l/other-lock-", 1, true);
  Joined self(world, Simple(GENERATE(false, true)));
  CHECK(self.Ended<Unusable>());
}

// ---- --supersede ----------------------------------------------------------------------------

TEST_CASE("A newer contender that supersedes ends the waits of older ones, but not a hold") {
  World world;
  Joined holder(world, Newest());
  REQUIRE(holder.Holds());
  Joined waiter(world, Newest());
  REQUIRE_FALSE(waiter.acquire.outcome());
  Contender patient(world);  // supersedes nobody, and is not superseded
  patient.store.Run();
  REQUIRE(waiter.RunToWait());
  Joined newest(world, Newest());
  holder.store.Run();
  waiter.store.Run();
  patient.store.Run();
  CHECK(waiter.why() == Busy::Why::kSuperseded);
  CHECK(holder.Holds());
  CHECK_FALSE(patient.acquire.outcome());
}

TEST_CASE("A newer contender that arrives while the turn is being proven still supersedes") {
  const bool with_record = GENERATE(true, false);
  const bool in_hand = GENERATE(true, false);
  // The requests that prove the turn: a list, or a check, a get and a list.
  for (std::size_t at = 0; at < (in_hand ? 1 : 3); ++at) {
    CAPTURE(at, with_record, in_hand);
    World fresh;
    Joined holder(fresh);
    Joined self(fresh, Newest());
    if (!in_hand) fresh.clock.Advance(kPastLeaseInHand);
    const std::size_t before = self.store.requests_sent();
    self.store.Before(before + at, [&] { fresh.servers.Put(kNewer, 77, true); });
    if (with_record) {
      holder.Release(fresh.servers);
    } else {
      holder.Leave(fresh.servers);
    }
    self.store.Run();
    CHECK(self.why() == Busy::Why::kSuperseded);
  }
}

TEST_CASE("A run that has lost its place does not supersede those that queued after it") {
  World world;
  Joined holder(world, Newest());
  Joined old(world, Newest());
  const int times = GENERATE(1, 2);
  for (int i = 0; i < times; ++i) {
    REQUIRE(old.RunToWait());
    old.store.Expire();
  }
  Joined newer(world, Newest());
  old.store.Run();
  CHECK(old.notes.places_lost == times);
  CHECK(old.why() == Busy::Why::kSuperseded);
  CHECK(newer.RunToWait());
}

TEST_CASE("A run that has lost its place waits for older ones, and leaves when a newer one joins") {
  World world;
  Joined holder(world, Newest());
  Joined old(world, Newest());
  old.store.Expire();
  REQUIRE(old.RunToWait());
  const bool joins = GENERATE(false, true);
  if (joins) {
    Joined newer(world, Newest());
    old.store.Run();
    CHECK(old.why() == Busy::Why::kSuperseded);
    CHECK(newer.RunToWait());
  } else {
    holder.Release(world.servers);
    CHECK(old.RunToHold());
  }
}

TEST_CASE("A contender that is deleted before the first list is not superseded by an older one") {
  World world;
  Joined holder(world, Newest());
  REQUIRE(holder.RunToHold());
  Contender self(world, Newest());
  self.store.Before("list /l", [&] { world.servers.Remove(self.notes.queued); });
  self.store.Connect();
  self.store.Run();
  CHECK(self.why() == Busy::Why::kRemoved);
}

TEST_CASE("A run that queues again supersedes no waiter, which therefore counts for max_queue") {
  World world;
  Joined holder(world);
  Joined older(world, Newest());
  AcquireRequest request = Newest();
  request.max_queue = 1;
  Joined self(world, request);
  REQUIRE_FALSE(self.acquire.outcome());
  self.store.Expire();
  self.store.Run();
  CHECK(self.why() == Busy::Why::kQueueFull);
}

TEST_CASE("A run that has lost its place does not run after a newer one that has already run") {
  const bool is_newest = GENERATE(true, false);
  World world;
  Joined holder(world, Newest());
  Joined old(world, Newest());
  old.store.Expire();
  Joined other(world, is_newest ? Newest() : AcquireRequest());
  holder.Release(world.servers);
  REQUIRE(other.RunToHold());
  world.servers.Write("/l", fmt::format("zklock/1 {} exclusive {} 1.000 0 host",
                                        Name(other.ticket().path), other.ticket().token));
  other.Leave(world.servers);
  old.store.Run();
  CHECK(old.Holds() == !is_newest);
  CHECK(old.why() == (is_newest ? std::optional(Busy::Why::kSuperseded) : std::nullopt));
}

TEST_CASE("A record with a token newer than all contenders', as after a restore, is ignored") {
  World world;
  world.servers.Write("/l", "zklock/1 " + Name(kNewer) + "0000000000 exclusive 9000 1.000 0 host");
  Joined holder(world);
  Joined self(world, Newest());
  REQUIRE_FALSE(self.acquire.outcome());
  self.store.Expire();
  CHECK(self.RunToWait());
}

TEST_CASE("A newer run is recognized even if LOCK was deleted and its numbers began again") {
  World world;
  Joined holder(world, Newest());
  Joined old(world, Newest());
  old.store.Expire();
  holder.Leave(world.servers);
  world.servers.Remove("/l");
  world.servers.Put("/l", 0, false, "zklock/1");
  Joined newer(world, Newest());
  REQUIRE(newer.Holds());
  old.store.Run();
  CHECK(old.why() == Busy::Why::kSuperseded);
}

TEST_CASE("A second contender from a repeated create does not supersede the first") {
  World world;
  Joined holder(world);
  Joined self(world, Newest());
  const std::string own = self.notes.queued;
  world.servers.Put(own.substr(0, own.size() - 10), self.store.session_id(), true);
  if (GENERATE(false, true)) self.store.Disconnect();
  REQUIRE(self.RunToWait());
  holder.Release(world.servers);
  CHECK(self.RunToHold());
}

// ---- a queue of limited length --------------------------------------------------------------

TEST_CASE("A contender leaves when max_queue others wait already, and holders do not count") {
  World world;
  Joined holder(world, WithMaxQueue(0));
  CHECK(holder.Holds());
  Joined first(world, WithMaxQueue(1));
  CHECK_FALSE(first.acquire.outcome());
  Joined second(world, WithMaxQueue(1));
  CHECK(second.why() == Busy::Why::kQueueFull);
}

TEST_CASE("Contenders that a new one supersedes do not fill the queue, but all others do") {
  World world;
  const auto newest_of_one = [] {
    AcquireRequest request = Newest();
    request.max_queue = 1;
    return request;
  };
  // A holder is not superseded, even if it has --supersede.
  Joined holder(world, Newest());
  REQUIRE(holder.Holds());
  Joined older(world, newest_of_one());
  CHECK_FALSE(older.acquire.outcome());
  Joined newer(world, newest_of_one());
  CHECK_FALSE(newer.acquire.outcome());
  older.store.Run();
  CHECK(older.why() == Busy::Why::kSuperseded);
  older.Leave(world.servers);
  // A contender without --supersede counts every waiter.
  Joined plain(world, WithMaxQueue(1));
  CHECK(plain.why() == Busy::Why::kQueueFull);
  plain.Leave(world.servers);
  Joined patient(world);
  Joined refused(world, newest_of_one());
  CHECK(refused.why() == Busy::Why::kQueueFull);
  newer.store.Run();
  CHECK_FALSE(newer.acquire.outcome());
}

TEST_CASE("A contender that supersedes others stays even if the queue fills while it joins") {
  World world;
  const bool was_free = GENERATE(false, true);
  std::optional<Joined> holder;
  std::optional<Joined> older;
  std::optional<Joined> late;
  const auto fill = [&] {
    holder.emplace(world);
    older.emplace(world, Newest());
  };
  if (!was_free) fill();
  AcquireRequest request = Newest();
  request.max_queue = 1;
  Contender newer(world, request);
  newer.store.Before("create /l", [&] {
    if (was_free) fill();
    late.emplace(world);
  });
  newer.store.Connect();
  newer.store.Run();
  REQUIRE(late);
  older->store.Run();
  CHECK(older->why() == Busy::Why::kSuperseded);
  CHECK_FALSE(newer.acquire.outcome());
}

// ---- incompatible contenders ----------------------------------------------------------------

TEST_CASE("An incompatible contender that arrives before we queue again is refused") {
  auto [world, holder, self] = BehindOther();
  REQUIRE_FALSE(self.acquire.outcome());
  const auto incompatible = GENERATE(as<std::string>{}, kKazoo, "/l/lock");
  world.servers.Put(incompatible, 2, incompatible == kKazoo);
  self.store.Expire();
  self.store.Run();
  CHECK(self.notes.places_lost == 1);
  CHECK(self.Ended<Unusable>());
}

TEST_CASE(
    "An incompatible contender that arrives between the list and the create of a try is refused") {
  World world;
  Contender self(world, {.try_only = true});
  self.store.Before("create /l/host-", [&] { world.servers.Put(kKazoo, 2, true); });
  self.store.Run();
  CHECK(self.Ended<Unusable>());
}

}  // namespace
}  // namespace zklock::lock
