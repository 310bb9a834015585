// Dialect::kSimple has one name for all contenders: whatever finds a znode of that name has to
// find out whose it is.

#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
#include <string>

#include "lock/delete_contender.h"
#include "lock/ownership_check.h"
#include "lock/request_release.h"
#include "lock/wait_until_gone.h"
#include "unit/lock/contender.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::Fault;

constexpr std::int64_t kSuccessor = 77;
const std::string kNode = "/l/lock";

AcquireRequest SimpleRequest() {
  return {.lock = {"/l", ""}, .dialect = protocol::Dialect::kSimple, .host = "host", .data = ""};
}

/// Somebody deletes the znode by force, and the next one creates it.
void Replace(FakeServers& servers) {
  servers.Remove(kNode);
  servers.Put(kNode, kSuccessor, false, "theirs");
}

[[nodiscard]] bool IsSuccessors(const FakeServers& servers) {
  return servers.Has(kNode) && servers.nodes.at(kNode).owner == kSuccessor;
}

struct Holder {
  Holder() : self(world.servers, world.clock, SimpleRequest()) {
    self.store.Run();
    REQUIRE(self.Holds());
    hold.emplace(self.store, world.clock, std::vector{self.ticket()}, 5s, notes);
    hold->OnReady(0);
    self.store.Run();
  }
  void Heartbeat() {
    world.clock.Set(hold->GetInterest().wake);
    hold->OnReady(0);
  }

  struct Notes final : HoldObserver {
    void OnLease(TimePoint /*lease_end*/, Duration /*grace*/) override { ++leases; }
    void OnOwnData(const std::string& data) override { own_data.push_back(data); }
    int leases = 0;
    std::vector<std::string> own_data;
  };
  World world;
  Contender self;
  Notes notes;
  std::optional<Hold> hold;
};

}  // namespace

// ---- the holder -----------------------------------------------------------------------------

TEST_CASE("A heartbeat that finds another znode of the name is a lost lock, and no lease") {
  Holder holder;
  SECTION("replaced before the heartbeat") { Replace(holder.world.servers); }
  SECTION("replaced between the check and the read") {
    holder.self.store.Before(holder.self.store.requests_sent() + 1,
                             [&] { Replace(holder.world.servers); });
  }
  // Its watch is not delivered before the heartbeat goes out.
  holder.Heartbeat();
  const int leases = holder.notes.leases;
  holder.self.store.Run();
  REQUIRE(holder.hold->loss());
  CHECK(*holder.hold->loss() == Loss::kRemoved);
  CHECK(holder.notes.leases == leases);
  CHECK(IsSuccessors(holder.world.servers));
}

TEST_CASE("A watch that fires for another znode of the name is a lost lock at once") {
  Holder holder;
  Replace(holder.world.servers);
  holder.self.store.Run();
  CHECK(holder.hold->loss() == Loss::kRemoved);
  CHECK(holder.notes.own_data == std::vector<std::string>{""});  // the other's is not ours
}

TEST_CASE("A znode replaced before it was watched is a lost lock") {
  World world;
  Contender self(world.servers, world.clock, SimpleRequest());
  self.store.Run();
  NobodyTold nobody;
  Hold hold(self.store, world.clock, {self.ticket()}, 5s, nobody);
  Replace(world.servers);
  hold.OnReady(0);
  self.store.Run();
  CHECK(hold.loss() == Loss::kRemoved);
}

TEST_CASE("A znode replaced while there was no server is a lost lock at the reconnection") {
  Holder holder;
  holder.self.store.Disconnect();
  Replace(holder.world.servers);
  holder.self.store.Run();
  CHECK(holder.hold->loss() == Loss::kRemoved);
}

TEST_CASE("A heartbeat or its read whose reply is lost is asked again") {
  Holder holder;
  const std::size_t offset = GENERATE(0, 1);
  const bool replaced = GENERATE(false, true);
  holder.self.store.PlaceFault(holder.self.store.requests_sent() + offset, Fault::kReplyLost);
  holder.Heartbeat();
  if (replaced) Replace(holder.world.servers);
  holder.self.store.Run();
  CHECK(holder.hold->loss().has_value() == replaced);
}

TEST_CASE("A heartbeat whose read is refused proves nothing") {
  Holder holder;
  holder.self.store.Refuse(holder.self.store.requests_sent() + 1, zookeeper::Error::kNoAuth);
  const int leases = holder.notes.leases;
  holder.Heartbeat();
  while (holder.self.store.Step()) {
  }
  CHECK_FALSE(holder.hold->loss());
  CHECK(holder.notes.leases == leases);
  CHECK(holder.self.store.server_given_up());
}

TEST_CASE("A release never deletes by the name, and leaves the record") {
  Holder holder;
  const bool replaced = GENERATE(false, true);
  if (replaced) Replace(holder.world.servers);
  CHECK(holder.hold->Release({.ran = 1s, .status = 0, .host = "h"}) == 0);
  holder.self.store.Run();
  for (const std::string& request : holder.self.store.log()) {
    CHECK_THAT(request, !Catch::Contains("delete"));
  }
  holder.self.Leave(holder.world.servers);  // the close
  CHECK(IsSuccessors(holder.world.servers) == replaced);
  CHECK_THAT(holder.world.servers.nodes.at("/l").data, Catch::Contains("zklock/1 lock exclusive"));
}

// ---- the way to the lock --------------------------------------------------------------------

TEST_CASE("A znode replaced while the connection was lost is not taken for ours") {
  // Lost with the reply to the request that follows the create, whose own reply has come.
  World world;
  Contender self(world.servers, world.clock, SimpleRequest());
  self.store.PlaceFault(1, Fault::kNotDone);
  self.store.Connect();
  while (self.store.IsConnected()) self.store.Step();
  REQUIRE_FALSE(self.acquire.outcome());
  Replace(world.servers);
  self.store.Run();
  CHECK(self.Ended<Busy>());
  CHECK(self.why() == Busy::Why::kRemoved);
  CHECK(IsSuccessors(world.servers));
}

TEST_CASE("A znode replaced after its create's reply was lost is waited for") {
  World world;
  Contender self(world.servers, world.clock, SimpleRequest());
  self.store.PlaceFault(0, Fault::kReplyLost);
  self.store.Connect();
  self.store.Step();
  const std::size_t at = GENERATE(0, 1, 2, 3, 4, 5, 6, 7, 8);
  self.store.Before(self.store.requests_sent() + at, [&] { Replace(world.servers); });
  self.store.Run();
  CAPTURE(self.store.log());
  const bool was_replaced = IsSuccessors(world.servers);
  CHECK(self.Holds() != was_replaced);
  if (!was_replaced) return;
  if (!self.acquire.outcome()) {
    world.servers.Remove(kNode);
    self.store.Run();
    CHECK(self.Holds());
  } else {
    CHECK(self.why() == Busy::Why::kRemoved);
  }
}

TEST_CASE("A create that comes to light only by its znode is adopted, not waited for") {
  World world;
  Contender self(world.servers, world.clock, SimpleRequest());
  // Done behind the back of the first create, which finds it there, by our own session.
  self.store.Before(0, [&] { world.servers.Put(kNode, self.store.session_id()); });
  self.store.Run();
  REQUIRE(self.Holds());
  CHECK(self.ticket().token == world.servers.nodes.at(kNode).czxid);
}

TEST_CASE("Of a set, one that is replaced while the next is waited for loses all") {
  World world;
  world.servers.Put("/m", 0, false, "zklock/1");
  world.servers.Put("/m/lock", 5);
  Contender first(world.servers, world.clock, SimpleRequest());
  first.store.Run();
  AcquireRequest request = SimpleRequest();
  request.lock = {"/m", ""};
  request.held = {first.ticket().id()};
  AcquireNotes notes;
  Acquire second(first.store, world.clock, request, NextUuid, notes);
  first.store.Run();
  REQUIRE_FALSE(second.outcome());
  SECTION("noticed by its watch") { Replace(world.servers); }
  SECTION("noticed by the proof that ends the wait") {
    // Quicker than any watch.
    world.servers.Remove("/m/lock");
    while (first.store.log().back() != "get /m") REQUIRE(first.store.Step());
    Replace(world.servers);
  }
  first.store.Run();
  REQUIRE(second.outcome());
  REQUIRE(std::holds_alternative<Busy>(*second.outcome()));
  CHECK(std::get<Busy>(*second.outcome()).why == Busy::Why::kRemoved);
}

// ---- operations --------------------------------------------------------------------------------

TEST_CASE("What an outer zklock holds is held by its own znode alone") {
  Holder holder;
  const bool replaced = GENERATE(false, true);
  if (replaced) Replace(holder.world.servers);
  FakeStore store(holder.world.servers, holder.world.clock);
  OwnershipCheck check(store, holder.world.clock, {"/l", ""}, {holder.self.ticket().id()}, 15s);
  store.Run();
  REQUIRE(check.IsOver());
  CHECK(check.is_held() != replaced);
}

TEST_CASE("A forced release deletes the contender that was meant, and not the next one's") {
  Holder holder;
  FakeStore store(holder.world.servers, holder.world.clock);
  DeleteContender removal(store, holder.world.clock, {"/l", ""}, holder.self.ticket().id(), 15s);
  SECTION("it is there") {
    store.Run();
    CHECK(removal.has_removed());
    CHECK_FALSE(holder.world.servers.Has(kNode));
  }
  SECTION("replaced before") {
    Replace(holder.world.servers);
    store.Run();
    REQUIRE(removal.IsOver());
    CHECK_FALSE(removal.has_removed());
    CHECK(IsSuccessors(holder.world.servers));
  }
  SECTION("replaced after the delete whose reply was lost") {
    store.PlaceFault(1, Fault::kReplyLost);
    store.Before(2, [&] { holder.world.servers.Put(kNode, kSuccessor); });
    store.Run();
    CHECK(removal.has_removed());
    CHECK(IsSuccessors(holder.world.servers));
  }
  SECTION("replaced before the delete that was not done") {
    store.PlaceFault(1, Fault::kNotDone);
    store.Before(2, [&] { Replace(holder.world.servers); });
    store.Run();
    REQUIRE(removal.IsOver());
    CHECK(IsSuccessors(holder.world.servers));
  }
  SECTION("written to after the read") {
    store.Before(1, [&] { holder.world.servers.Write(kNode, "revoked"); });
    store.Run();
    CHECK(removal.has_removed());
    CHECK_FALSE(holder.world.servers.Has(kNode));
  }
}

TEST_CASE("Whoever has taken the name is neither asked to let go nor waited for") {
  Holder holder;
  Replace(holder.world.servers);
  FakeStore store(holder.world.servers, holder.world.clock);
  {
    RequestRelease revocation(
        store, holder.world.clock, {"/l", ""}, holder.self.ticket().id(),
        [](const std::string& old) { return old + "+"; }, 15s);
    store.Run();
    REQUIRE(revocation.IsOver());
    CHECK_FALSE(revocation.has_asked());
    CHECK(holder.world.servers.nodes.at(kNode).data == "theirs");
  }
  WaitUntilGone departure(store, holder.world.clock, {"/l", ""}, holder.self.ticket().id(), 15s);
  store.Run();
  CHECK(departure.IsOver());
}

}  // namespace zklock::lock
