// In Dialect::kSimple all contenders have the same name, so a contender that finds a znode with
// that name must check which session owns it.

#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
#include <string>

#include "lock/operations/contender_operations.h"
#include "unit/lock/contender.h"
#include "unit/lock/run_calls.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::Fault;

constexpr std::int64_t kSuccessor = 77;
const std::string kNode = "/l/lock";

AcquireRequest SimpleRequest() {
  return {.lock = {"/l", ""}, .dialect = protocol::Dialect::kSimple, .host = "host", .data = ""};
}

/// Deletes the znode by force, and lets another contender create it.
void Replace(FakeServers& servers) {
  servers.Remove(kNode);
  servers.Put(kNode, kSuccessor, false, "successor");
}

[[nodiscard]] bool IsSuccessors(const FakeServers& servers) {
  return servers.Has(kNode) && servers.nodes.at(kNode).owner == kSuccessor;
}

struct Holder {
  Holder() : self(world.servers, world.clock, SimpleRequest()) {
    REQUIRE(self.RunToHold());
    hold.emplace(self.store, world.clock, std::vector{self.ticket()}, 5s,
                 [this](const HoldEvent& event) { notes.Add(event); });
    hold->OnReady(0);
    self.store.Run();
  }
  void Heartbeat() {
    world.clock.Set(hold->GetInterest().wake);
    hold->OnReady(0);
  }

  struct Notes {
    void Add(const HoldEvent& event) {
      if (std::holds_alternative<LeaseEvent>(event)) ++leases;
      if (const auto* own = std::get_if<OwnDataEvent>(&event)) own_data.push_back(own->data);
    }
    int leases = 0;
    std::vector<std::string> own_data;
  };
  World world;
  Contender self;
  Notes notes;
  std::optional<Hold> hold;
};

}  // namespace

// ---- the waiter -----------------------------------------------------------------------------

TEST_CASE("A waiter creates LOCK again as often as the servers delete it after it was used") {
  World world;
  world.servers.Put(kNode, kSuccessor);
  Joined self(world, SimpleRequest());
  for (int i = 0; i < 12; ++i) {
    // The create finds no LOCK. Once LOCK exists again, another contender is faster.
    self.store.Before("create /l/lock", [&] {
      self.store.Before("create /l/lock", [&] { world.servers.Put(kNode, kSuccessor); });
    });
    world.servers.Remove(kNode);
    world.servers.Remove("/l");
    REQUIRE(self.RunToWait());
  }
  world.servers.Remove(kNode);
  CHECK(self.RunToHold());
}

// ---- the holder -----------------------------------------------------------------------------

TEST_CASE("A heartbeat that finds another znode with the name reports a loss, not a lease") {
  Holder holder;
  SECTION("replaced before the heartbeat") { Replace(holder.world.servers); }
  SECTION("replaced between the check and the read") {
    holder.self.store.Before("get /l/lock", [&] { Replace(holder.world.servers); });
  }
  // The watch is not delivered before the heartbeat is sent.
  holder.Heartbeat();
  const int leases = holder.notes.leases;
  holder.self.store.Run();
  REQUIRE(holder.hold->loss());
  CHECK(*holder.hold->loss() == EndCause::kRemoved);
  CHECK(holder.notes.leases == leases);
  CHECK(IsSuccessors(holder.world.servers));
}

TEST_CASE("A watch that fires for another znode with the name reports a loss at once") {
  Holder holder;
  Replace(holder.world.servers);
  holder.self.store.Run();
  CHECK(holder.hold->loss() == EndCause::kRemoved);
  CHECK(holder.notes.own_data == std::vector<std::string>{""});  // not the successor's data
}

TEST_CASE("A znode replaced before it was watched is reported as a loss") {
  World world;
  Joined self(world, SimpleRequest());
  Hold hold(self.store, world.clock, {self.ticket()}, 5s, Ignore);
  Replace(world.servers);
  hold.OnReady(0);
  self.store.Run();
  CHECK(hold.loss() == EndCause::kRemoved);
}

TEST_CASE("A znode replaced while there was no server is reported as a loss at the reconnect") {
  Holder holder;
  holder.self.store.Disconnect();
  Replace(holder.world.servers);
  holder.self.store.Run();
  CHECK(holder.hold->loss() == EndCause::kRemoved);
}

TEST_CASE("A heartbeat or its read whose reply is lost is sent again") {
  Holder holder;
  const std::string request = GENERATE("check /l/lock", "get /l/lock");
  const bool replaced = GENERATE(false, true);
  const int before = holder.notes.leases;
  holder.self.store.PlaceFault(request, Fault::kReplyLost);
  holder.Heartbeat();
  if (replaced) Replace(holder.world.servers);
  holder.self.store.Run();
  CHECK(holder.hold->loss().has_value() == replaced);
  if (!replaced) CHECK(holder.notes.leases > before);
}

TEST_CASE("A heartbeat whose read is refused proves nothing") {
  Holder holder;
  holder.self.store.Refuse("get /l/lock", zookeeper::Error::kNoAuth);
  const int leases = holder.notes.leases;
  holder.Heartbeat();
  while (holder.self.store.Step()) {
  }
  CHECK_FALSE(holder.hold->loss());
  CHECK(holder.notes.leases == leases);
  CHECK(holder.self.store.server_given_up());
}

TEST_CASE("A release never deletes the znode by name, and leaves a record") {
  Holder holder;
  const bool replaced = GENERATE(false, true);
  if (replaced) Replace(holder.world.servers);
  CHECK(holder.hold->Release({.duration = 1s, .status = 0, .host = "h"}) == 0);
  holder.self.store.Run();
  for (const std::string& request : holder.self.store.log()) {
    CHECK_THAT(request, !Catch::Contains("delete"));
  }
  holder.self.Leave(holder.world.servers);  // the close
  CHECK(IsSuccessors(holder.world.servers) == replaced);
  CHECK_THAT(holder.world.servers.nodes.at("/l").data, Catch::Contains("zklock/1 lock exclusive"));
}

// ---- the contender --------------------------------------------------------------------------

TEST_CASE("A znode replaced while the connection was lost is not taken for the contender's own") {
  // The reply to the create has arrived; the connection is lost with the next request.
  World world;
  Contender self(world, SimpleRequest());
  self.store.PlaceFault("get /l", Fault::kNotDone);
  self.store.Connect();
  while (self.store.IsConnected()) self.store.Step();
  REQUIRE_FALSE(self.acquire.outcome());
  Replace(world.servers);
  self.store.Run();
  CHECK(self.Ended<Busy>());
  CHECK(self.why() == Busy::Why::kRemoved);
  CHECK(IsSuccessors(world.servers));
}

TEST_CASE("A znode replaced after the reply to its create was lost is not adopted") {
  World world;
  Contender self(world, SimpleRequest());
  self.store.PlaceFault("create /l/lock", Fault::kReplyLost);
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
    CHECK(self.RunToHold());
  } else {
    CHECK(self.why() == Busy::Why::kRemoved);
  }
}

TEST_CASE("A znode of the contender's own session is adopted, not waited for") {
  World world;
  Contender self(world, SimpleRequest());
  // The first create finds a znode of the contender's own session.
  self.store.Before("create /l/lock", [&] { world.servers.Put(kNode, self.store.session_id()); });
  REQUIRE(self.RunToHold());
  CHECK(self.ticket().token == world.servers.nodes.at(kNode).czxid);
}

TEST_CASE("A set that waits for its next LOCK ends if a znode that it holds is replaced") {
  World world;
  world.servers.Put("/m", 0, false, "zklock/1");
  world.servers.Put("/m/lock", 5);
  Joined first(world, SimpleRequest());
  AcquireRequest request = SimpleRequest();
  request.lock = {"/m", ""};
  request.held = {first.ticket().id()};
  AcquireNotes notes;
  Acquire second(first.store, world.clock, request, NextUuid, notes.Sink());
  first.store.Run();
  REQUIRE_FALSE(second.outcome());
  SECTION("shown by its watch") { Replace(world.servers); }
  SECTION("just before the create that ends the wait") {
    first.store.Before("create /m/lock", [&] { Replace(world.servers); });
    world.servers.Remove("/m/lock");
  }
  SECTION("shown by the proof that ends the wait") {
    // Before any watch fires.
    world.clock.Advance(kPastLeaseInHand);
    world.servers.Remove("/m/lock");
    while (first.store.log().back() != "get /m") REQUIRE(first.store.Step());
    Replace(world.servers);
  }
  first.store.Run();
  REQUIRE(second.outcome());
  REQUIRE(std::holds_alternative<Busy>(*second.outcome()));
  CHECK(std::get<Busy>(*second.outcome()).why == Busy::Why::kRemoved);
}

// ---- operations -----------------------------------------------------------------------------

TEST_CASE("An ancestor holds only through its own znode") {
  Holder holder;
  const bool replaced = GENERATE(false, true);
  if (replaced) Replace(holder.world.servers);
  FakeStore store(holder.world.servers, holder.world.clock);
  const bool is_held = RunCalls(store, holder.world.clock, [&](Calls& calls) {
    return AreHeld(calls, {"/l", ""}, {holder.self.ticket().id()});
  });
  CHECK(is_held != replaced);
}

TEST_CASE("A forced release deletes the named contender and no successor") {
  Holder holder;
  FakeStore store(holder.world.servers, holder.world.clock);
  const auto remove = [&] {
    return RunCalls(store, holder.world.clock, [&](Calls& calls) {
      return DeleteContender(calls, {"/l", ""}, holder.self.ticket().id());
    });
  };
  SECTION("it exists") {
    CHECK(remove());
    CHECK_FALSE(holder.world.servers.Has(kNode));
  }
  SECTION("replaced before") {
    Replace(holder.world.servers);
    CHECK_FALSE(remove());
    CHECK(IsSuccessors(holder.world.servers));
  }
  SECTION("replaced after the delete whose reply was lost") {
    store.PlaceFault("delete /l/lock", Fault::kReplyLost);
    store.Before("delete /l/lock", [&] {
      store.Before("get /l/lock", [&] { holder.world.servers.Put(kNode, kSuccessor); });
    });
    CHECK(remove());
    CHECK(IsSuccessors(holder.world.servers));
  }
  SECTION("replaced after the delete that was not executed") {
    store.PlaceFault("delete /l/lock", Fault::kNotDone);
    store.Before("delete /l/lock",
                 [&] { store.Before("get /l/lock", [&] { Replace(holder.world.servers); }); });
    (void)remove();
    CHECK(IsSuccessors(holder.world.servers));
  }
  SECTION("written to after the read") {
    store.Before("delete /l/lock", [&] { holder.world.servers.Write(kNode, "asked to release"); });
    CHECK(remove());
    CHECK_FALSE(holder.world.servers.Has(kNode));
  }
}

TEST_CASE("A request to release and a wait for its end ignore a successor with the same name") {
  Holder holder;
  Replace(holder.world.servers);
  FakeStore store(holder.world.servers, holder.world.clock);
  const bool was_asked = RunCalls(store, holder.world.clock, [&](Calls& calls) {
    WaitUntilGone(calls, {"/l", ""}, holder.self.ticket().id());
    return RequestRelease(calls, {"/l", ""}, holder.self.ticket().id(),
                          [](const std::string& old) { return old + "+"; });
  });
  CHECK_FALSE(was_asked);
  CHECK(holder.world.servers.nodes.at(kNode).data == "successor");
}

}  // namespace zklock::lock
