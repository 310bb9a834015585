#include "lock/several/acquire_set.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <variant>
#include <vector>

#include "unit/lock/contender.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::Fault;
using test::kLosses;

std::vector<AcquireRequest> Requests(bool try_only, std::optional<Duration> wait) {
  std::vector<AcquireRequest> requests;
  for (const char* path : {"/a", "/b", "/c"}) {
    requests.push_back({.lock = {path, ""},
                        .mode = Mode::kExclusive,
                        .host = "host",
                        .data = "",
                        .try_only = try_only,
                        .wait = wait});
  }
  return requests;
}

/// Acquires /a, /b and /c.
struct SetCaller : private World, SetContender {
  explicit SetCaller(bool try_only = false, std::optional<Duration> wait = std::nullopt)
      : World(false), SetContender(static_cast<World&>(*this), Requests(try_only, wait)) {
    for (const char* path : {"/a", "/b", "/c"}) servers.Put(path, 0);
  }
  using World::clock;
  using World::servers;

  /// Counts the contenders of this session.
  [[nodiscard]] std::size_t Contenders(const std::string& path) const {
    const auto children = servers.Children(path);
    return static_cast<std::size_t>(
        std::count_if(children.begin(), children.end(), [&](const std::string& child) {
          return servers.nodes.at(path + "/" + child).owner == store.session_id();
        }));
  }
  /// Checks that all are held, each by the one contender that its ticket names.
  void CheckHolds() const {
    REQUIRE(Holds());
    REQUIRE(set.tickets().size() == 3);
    std::size_t i = 0;
    for (const char* path : {"/a", "/b", "/c"}) {
      const Ticket ticket = set.tickets()[i++];
      CHECK(ticket.lock.path == path);
      CHECK(servers.Has(ticket.path));
      CHECK(ticket.session == store.session_id());
      CHECK(Contenders(path) == 1);
    }
  }
  [[nodiscard]] std::size_t Creates() const { return store.CountSent("create"); }
};

TEST_CASE("Free LOCKs are acquired in order, and proven together at the end") {
  SetCaller caller;
  caller.Run();
  caller.CheckHolds();
  CHECK(caller.set.tickets()[0].token < caller.set.tickets()[1].token);
  CHECK(caller.set.tickets()[1].token < caller.set.tickets()[2].token);
  // The proof is the last request but one, sent together with the read of the last LOCK's data.
  const std::string& proof = caller.store.log().at(caller.store.log().size() - 2);
  CHECK(proof.rfind("check ", 0) == 0);
  for (const Ticket& ticket : caller.set.tickets())
    CHECK(proof.find(ticket.path) != std::string::npos);
}

TEST_CASE("A set is near its turn as long as it holds a LOCK, however long another's queue is") {
  SetCaller caller;
  for (std::size_t i = 0; i <= protocol::QueueAhead::kNear; ++i) {
    caller.servers.Put("/b/other-lock-", 1, true);
  }
  caller.Run();
  CHECK(caller.set.lock().path == "/b");
  CHECK(caller.set.IsNearTurn());
  CHECK_FALSE(caller.set.IsFarFromTurn());
}

TEST_CASE("A set is far from its turn only while it waits in a long queue") {
  SetCaller caller;
  std::vector<std::string> others(protocol::QueueAhead::kNear + 1);
  for (std::string& other : others) other = caller.servers.Put("/a/other-lock-", 1, true);
  CHECK_FALSE(caller.set.IsFarFromTurn());
  caller.Run();
  CHECK(caller.set.IsFarFromTurn());
  CHECK_FALSE(caller.set.IsNearTurn());
  for (const std::string& other : others) caller.servers.Remove(other);
  caller.Run();
  caller.CheckHolds();
  CHECK_FALSE(caller.set.IsFarFromTurn());
}

TEST_CASE(
    "While a set waits for a LOCK, it holds those before it, and has not queued for those after "
    "it") {
  SetCaller caller;
  const std::string holder = caller.servers.Put("/b/other-lock-", 1, true);
  caller.Run();
  CHECK_FALSE(caller.set.outcome());
  CHECK(caller.set.lock().path == "/b");
  CHECK(caller.Contenders("/a") == 1);
  CHECK(caller.Contenders("/b") == 1);
  CHECK(caller.Contenders("/c") == 0);
  caller.servers.Remove(holder);
  caller.Run();
  caller.CheckHolds();
}

TEST_CASE("A set that waits for its next LOCK ends if the contender of a held one is deleted") {
  SetCaller caller;
  caller.servers.Put("/c/other-lock-", 1, true);
  caller.Run();
  REQUIRE_FALSE(caller.set.outcome());
  caller.servers.Remove(caller.set.tickets()[0].path);
  caller.Run();
  REQUIRE(caller.set.outcome());
  CHECK(caller.why() == Busy::Why::kRemoved);
}

TEST_CASE("A held LOCK whose contender is deleted is noticed before the set is acquired") {
  SetCaller caller;
  // The contender is deleted before each request up to the proof.
  caller.Run();
  const std::size_t proof = caller.store.requests_sent() - 2;
  for (std::size_t at = 0; at <= proof; ++at) {
    CAPTURE(at);
    SetCaller other;
    bool removed = false;
    other.store.Before(at, [&] {
      if (other.set.tickets().empty() || other.set.outcome()) return;
      other.servers.Remove(other.set.tickets().front().path);
      removed = true;
    });
    other.Run();
    REQUIRE(other.set.outcome());
    CHECK(other.Holds() == !removed);
  }
}

TEST_CASE("After the session expires the set starts again with the first LOCK") {
  SetCaller caller;
  const std::string holder = caller.servers.Put("/c/other-lock-", 1, true);
  caller.Run();
  REQUIRE(caller.set.tickets().size() == 2);
  caller.store.Expire();
  caller.store.Disconnect();
  caller.store.Connect();
  caller.Run();
  CHECK(caller.notes.lost_in == std::vector<std::string>{"/a", "/b", "/c"});
  CHECK_FALSE(caller.set.outcome());
  caller.servers.Remove(holder);
  caller.Run();
  caller.CheckHolds();
}

TEST_CASE("A set that starts again does not supersede a newer run in any LOCK") {
  World world(false);
  std::vector<AcquireRequest> requests = Requests(false, std::nullopt);
  for (const AcquireRequest& one : requests) world.servers.Put(one.lock.path, 0);
  for (AcquireRequest& one : requests) one.supersede = true;
  world.servers.Put("/b/other-lock-", 1, true);
  SetContender old(world, requests);
  old.Run();
  REQUIRE(old.set.tickets().size() == 1);
  old.store.Expire();
  Contender newer(world, {.lock = {"/a", ""}, .supersede = true});
  REQUIRE(newer.RunToHold());
  old.Run();
  CHECK(old.why() == Busy::Why::kSuperseded);
}

TEST_CASE("A set is acquired although any one request or its reply is lost, or the session too") {
  SetCaller plain;
  plain.Run();
  const std::size_t requests = plain.store.requests_sent();
  for (const Fault fault : kLosses) {
    for (std::size_t at = 0; at < requests; ++at) {
      CAPTURE(static_cast<int>(fault), at);
      SetCaller caller;
      caller.store.PlaceFault(at, fault);
      caller.Run();
      caller.CheckHolds();
    }
  }
}

TEST_CASE("A try joins no queue of a set if one LOCK is busy") {
  SetCaller caller(true);
  caller.servers.Put("/c/other-lock-", 1, true);
  caller.Run();
  REQUIRE(caller.set.outcome());
  CHECK(caller.why() == Busy::Why::kTaken);
  CHECK(caller.set.lock().path == "/c");
  CHECK(caller.Creates() == 0);
}

TEST_CASE("A try acquires a free set") {
  SetCaller caller(true);
  caller.Run();
  caller.CheckHolds();
}

TEST_CASE("A server that accepts the session of a try and then does not answer is given up") {
  SetCaller caller(true);
  caller.store.Connect();
  caller.clock.Advance(9s);
  caller.set.OnReady(0);
  CHECK_FALSE(caller.store.server_given_up());
  caller.clock.Advance(2s);
  REQUIRE(caller.set.GetInterest().wake <= caller.clock.Now());
  caller.set.OnReady(0);
  CHECK(caller.store.server_given_up());
  caller.Run();
  caller.CheckHolds();
}

TEST_CASE("A wait that expires while a free LOCK is being joined does not end the acquisition") {
  SetCaller caller(false, 10s);
  const std::string first = caller.servers.Put("/a/other-lock-", 1, true);
  caller.Run();
  caller.clock.Advance(9s);
  caller.Run();
  caller.servers.Remove(first);
  // The create in /b has been answered, but not the list.
  while (!caller.notes.queued.starts_with("/b/")) {
    if (!caller.store.Step()) caller.set.OnReady(0);
  }
  caller.clock.Advance(2s);
  caller.set.OnReady(0);
  caller.Run();
  caller.CheckHolds();
}

TEST_CASE("The wait limits the whole set, not each LOCK") {
  SetCaller caller(false, 10s);
  const std::string first = caller.servers.Put("/a/other-lock-", 1, true);
  caller.servers.Put("/c/other-lock-", 1, true);
  caller.Run();
  caller.clock.Advance(6s);
  caller.Run();
  caller.servers.Remove(first);
  caller.Run();
  CHECK(caller.set.lock().path == "/c");
  caller.clock.Advance(3s);
  caller.Run();
  CHECK_FALSE(caller.set.outcome());
  caller.clock.Advance(1s + 1ms);
  caller.Run();
  REQUIRE(caller.set.outcome());
  CHECK(caller.why() == Busy::Why::kWaitOver);
}

TEST_CASE("The wait of a set continues while it cannot queue for a later LOCK") {
  SetCaller caller(false, 10s);
  caller.servers.Put("/b/other-lock-", 1, true);
  caller.store.PlaceFault("create /b/host-", Fault::kNotDone);
  caller.store.Connect();
  while (caller.store.IsConnected()) {
    if (!caller.store.Step()) caller.ServeTimers();
  }
  const TimePoint end = caller.clock.Now() + 10s;
  caller.clock.Advance(9s);
  caller.ServeTimers();
  caller.Run();
  CHECK_FALSE(caller.set.outcome());
  CHECK(caller.set.wait_end() == end);
  caller.clock.Advance(1s);
  caller.Run();
  CHECK(caller.why() == Busy::Why::kWaitOver);
}

}  // namespace
}  // namespace zklock::lock
