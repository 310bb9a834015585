#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "lock/reserve/existing_reservations.h"
#include "unit/lock/reserver.h"

// --any --reserve: one of several LOCKs is reserved.

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::kLosses;

const ReserveOptions kPool{.locks = {"/a", "/b", "/c"}, .any = true};

/// A world with the LOCKs of kPool and no contenders.
struct PoolWorld : World {
  PoolWorld() {
    for (const std::string& lock : kPool.locks) servers.Put(lock, 0, false, "zklock/1");
  }
  std::string Occupy(const std::string& lock) {
    return servers.Put(lock + "/other-lock-", 1, true);
  }
};

/// Returns the LOCKs that have children, in order.
std::vector<std::string> Used(const World& world) {
  std::vector<std::string> used;
  for (const std::string& lock : kPool.locks) {
    if (!world.servers.Children(lock).empty()) used.push_back(lock);
  }
  return used;
}

std::string OnlyChild(const World& world, const std::string& lock) {
  const auto children = world.servers.Children(lock);
  REQUIRE(children.size() == 1);
  return lock + "/" + children.front();
}

}  // namespace

TEST_CASE("Any: one LOCK is reserved, and the other queues are left in the same transaction") {
  World world;
  Reserver pool(world, "ci", kPool);
  pool.store.Before("convert ", [&] { CHECK(Used(world) == kPool.locks); });
  pool.Run();
  REQUIRE(pool.HasReserved());
  CHECK(pool.made().front().lock.path == "/a");
  CHECK(Used(world) == std::vector<std::string>{"/a"});
  pool.Leave();
  CHECK(Used(world) == std::vector<std::string>{"/a"});
}

TEST_CASE("Any: a reservation with the ID is found in any LOCK, even after a free one") {
  World world;
  const ReservedLock made = MakeReservation(world, "ci", {.locks = {"/c"}});
  const JoinedReserver again(world, "ci", kPool);
  REQUIRE(again.HasFound());
  REQUIRE(again.found.size() == 1);
  CHECK(again.found.front().path == made.path);
  again.Leave();
  const JoinedReserver other(world, "other", kPool);
  REQUIRE(other.HasReserved());
  CHECK(other.made().front().lock.path == "/a");
}

TEST_CASE("Any: two pools with one ID end with one reservation, whichever reply is lost") {
  World world;
  ReserveOptions turned = kPool;
  std::reverse(turned.locks.begin(), turned.locks.end());
  Reserver first(world, "ci", kPool);
  Reserver second(world, "ci", turned);
  const std::string request = GENERATE("create all", "list", "convert ");
  const auto loss = GENERATE(from_range(kLosses));
  first.store.PlaceFault(request, loss);
  second.store.Step();  // begins before the first one runs
  for (int turn = 0; turn < 3; ++turn) {
    first.Run();
    second.Run();
  }
  first.Leave();
  second.Leave();
  CHECK((second.HasReserved() || second.HasFound()));
  REQUIRE(Used(world).size() == 1);
  const std::string path = OnlyChild(world, Used(world).front());
  for (Reserver* const one : {&first, &second}) {
    if (one->HasReserved()) CHECK(one->made().front().path == path);
    if (one->HasFound()) CHECK(one->found.front().path == path);
  }
}

TEST_CASE("Any: a pool leaves a LOCK to an earlier one with its ID that waits in another queue") {
  PoolWorld world;
  const std::string holder = world.Occupy("/b");
  world.Occupy("/a");
  world.Occupy("/c");
  JoinedReserver first(world, "ci", kPool);
  JoinedReserver second(world, "ci", kPool);
  REQUIRE(first.Waits());
  REQUIRE(second.Waits());
  // Deletes, by force, the contender of `first` in /a and everything before it.
  for (const std::string& child : world.servers.Children("/a")) {
    const std::string path = "/a/" + child;
    if (world.servers.nodes.at(path).owner != second.store.session_id()) {
      world.servers.Remove(path);
    }
  }
  first.Run();
  second.Run();
  REQUIRE(second.Waits());
  CHECK(world.servers.Children("/a").empty());
  SECTION("and uses the reservation that it makes there") {
    world.servers.Remove(holder);
    second.Run();
    first.Run();
    REQUIRE(first.HasReserved());
    CHECK(first.made().front().lock.path == "/b");
    second.Run();
    REQUIRE(second.HasFound());
    CHECK(second.found.front().path == first.made().front().path);
  }
  SECTION("and keeps waiting, when that one is gone") {
    first.Leave();
    second.Run();
    REQUIRE(second.Waits());
    world.servers.Remove(holder);
    second.Run();
    REQUIRE(second.HasReserved());
    CHECK(second.made().front().path == OnlyChild(world, "/b"));
  }
}

TEST_CASE("Any: a run that needs all its LOCKs is not a rival of a pool with the same ID") {
  PoolWorld world;
  world.Occupy("/b");
  const JoinedReserver set(world, "ci", {.locks = {"/b"}});
  REQUIRE(set.Waits());
  const JoinedReserver pool(world, "ci", kPool);
  CHECK(pool.HasReserved());
}

TEST_CASE("Any: a reservation that has ended by our clock alone is to be looked for again") {
  PoolWorld world;
  MakeReservation(world, "ci", {.locks = {"/c"}, .lasts = 2s});
  const bool seems_over = GENERATE(false, true);
  Reserver pool(world, "ci", kPool);
  // Since the create was sent, the servers' clock may have advanced as far as this host's.
  pool.store.Before("list /c", [&] {
    if (seems_over) world.clock.Set(world.clock.Now() + 3s);
  });
  pool.Run();
  CHECK(pool.HasFound() != seems_over);
  CHECK(pool.may_be_reserved == seems_over);
}

TEST_CASE("Any: a pool with the same ID that cannot take the LOCK is not a rival") {
  PoolWorld world;
  world.Occupy("/b");
  world.Occupy("/c");
  const JoinedReserver first(world, "ci", {.locks = {"/b", "/c"}, .any = true});
  REQUIRE(first.Waits());
  const JoinedReserver second(world, "ci", kPool);
  REQUIRE(second.HasReserved());
  CHECK(second.made().front().lock.path == "/a");
}

TEST_CASE("Any: an earlier pool in a queue that was left is found, and a later one is not") {
  PoolWorld world;
  for (const std::string& lock : kPool.locks) world.Occupy(lock);
  JoinedReserver first(world, "ci", kPool);
  JoinedReserver second(world, "ci", kPool);
  const auto is_after_another = [&](JoinedReserver& one) {
    Ticket own{.lock = {"/a", ""}};
    for (const auto& [path, node] : world.servers.nodes) {
      if (node.owner == one.store.session_id()) own.token = node.czxid;
    }
    one.set.reset();
    return RunCalls(one.store, world.clock, [&](Calls& calls) {
      return CountWaitingAtEarlierPool(calls, {"/b", ""}, "ci", own).has_value();
    });
  };
  CHECK(is_after_another(second));
  CHECK_FALSE(is_after_another(first));
}

TEST_CASE("Any: a LOCK named `lock` below the queue of an earlier pool is no holder there") {
  PoolWorld world;
  world.servers.Put("/b/lock", 0);
  for (const std::string& lock : kPool.locks) world.Occupy(lock);
  JoinedReserver first(world, "ci", kPool);
  Ticket own{.lock = {"/a", ""}, .token = world.servers.zxid + 1};
  first.set.reset();
  const auto waiting = RunCalls(first.store, world.clock, [&](Calls& calls) {
    return CountWaitingAtEarlierPool(calls, {"/b", ""}, "ci", own);
  });
  CHECK(waiting == std::optional<std::size_t>(1));
}

TEST_CASE(
    "Any: a contender that was deleted meanwhile does not keep the LOCK from being reserved") {
  World world;
  Reserver pool(world, "ci", kPool);
  pool.store.Before("convert ", [&] { world.servers.Remove(OnlyChild(world, "/b")); });
  pool.Run();
  REQUIRE(pool.HasReserved());
  CHECK(Used(world) == std::vector<std::string>{"/a"});
}

}  // namespace zklock::lock
