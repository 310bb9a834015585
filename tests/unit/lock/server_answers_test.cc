// Servers that are too old, full, or silent until the wait is over.

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <variant>

#include "unit/lock/contender.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::Fault;
using zookeeper::Error;

TEST_CASE("Three missing levels are created on servers without containers") {
  World world(false);
  world.servers.knows_containers = false;
  Joined self(world, {.lock = {"/a/b/c", ""}});
  REQUIRE(self.Holds());
  CHECK(world.servers.Has("/a/b/c"));
}

TEST_CASE("Servers without create2 are too old") {
  World world;
  world.servers.knows_create2 = false;
  Joined self(world);
  REQUIRE(self.Ended<Unusable>());
  CHECK(std::get<Unusable>(*self.acquire.outcome()).why == Unusable::Why::kOldServers);
}

TEST_CASE("A hard quota is reported with the znode that has it") {
  World world;
  world.servers.Put("/a", 0);
  world.servers.nodes.at("/a").full = true;
  for (const char* path : {"/zookeeper", "/zookeeper/quota", "/zookeeper/quota/a"}) {
    world.servers.Put(path, 0);
  }
  const bool readable = GENERATE(true, false);
  if (readable) world.servers.Put("/zookeeper/quota/a/zookeeper_limits", 0);
  // Either the LOCK exists, or it cannot even be created.
  if (GENERATE(true, false)) {
    world.servers.Put("/a/b", 0);
    world.servers.Put("/a/b/c", 0);
  }
  Joined self(world, {.lock = {"/a/b/c", ""}});
  REQUIRE(self.Ended<QuotaExceeded>());
  const auto& quota = std::get<QuotaExceeded>(*self.acquire.outcome());
  CHECK(quota.path == "/a/b/c");
  CHECK(quota.limit == (readable ? "/a" : ""));
}

TEST_CASE("Servers that list no LOCK though our contender in it exists end the wait as a defect") {
  auto [world, other, self] = BehindOther();
  REQUIRE_FALSE(self.acquire.outcome());
  const std::function<void()> deny = [&] {
    self.store.Refuse("list /l", Error::kNoNode);
    self.store.Before("list /l", deny);
  };
  self.store.Before("list /l", deny);
  self.store.Disconnect();
  self.store.Run();
  self.store.DropPlans();  // left over from attempts never made
  CHECK(self.Ended<Defect>());
}

TEST_CASE("A LOCK that is deleted with our contender ends the wait as removed") {
  World world;
  const std::string holder = world.servers.Put("/l/other-lock-", 1, true);
  Contender self(world);
  // This is between the contender's create and its list.
  self.store.Before("list /l", [&] {
    world.servers.Remove(self.notes.queued);
    world.servers.Remove(holder);
    world.servers.Remove("/l");
  });
  self.store.Run();
  CHECK(self.why() == Busy::Why::kRemoved);
}

TEST_CASE("A wait that is over before a server created the contender is not a conflict") {
  World world;
  Contender self(world, {.wait = 1s});
  self.store.Connect();  // but no request is answered
  world.clock.Advance(2s);
  CHECK(self.acquire.GetInterest().wake > world.clock.Now());
  self.acquire.OnReady(0);
  CHECK_FALSE(self.acquire.outcome());

  SECTION("without any answer, no server could be reached") {
    world.clock.Advance(14s);
    self.acquire.OnReady(0);
    CHECK(self.Ended<Unreachable>());
  }
  SECTION("with an answer after all, a free lock is acquired") { CHECK(self.RunToHold()); }
}

TEST_CASE("A LOCK is refused when a znode that shows its use cannot be read") {
  World world;
  AcquireRequest request{.lock = {"/l", ""}, .host = "host", .data = ""};
  std::string unreadable = "/l/leases";
  SECTION("permits") { world.servers.Put("/l/leases", 0); }
  SECTION("the lock of one znode") {
    unreadable = "/l/lock";
    world.servers.Put("/l/lock", 7);
  }
  SECTION("the LOCK of a semaphore") {
    unreadable = "/l";
    request.permits = 1;
    request.below = "leases";
  }
  world.servers.nodes.at(unreadable).readable = false;
  Joined self(world, request);
  REQUIRE(self.Ended<Refused>());
  CHECK(std::get<Refused>(*self.acquire.outcome()).right_path == unreadable);
}

}  // namespace
}  // namespace zklock::lock
