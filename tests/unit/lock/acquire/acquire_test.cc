#include "lock/acquire/acquire.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "unit/lock/contender.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::Fault;
using test::kLosses;

TEST_CASE("A free lock is acquired with one create, one get of LOCK and one list, sent together") {
  World world;
  Contender self(world);
  self.store.Connect();
  CHECK(self.store.requests_sent() == 3);
  REQUIRE(self.RunToHold());
  CHECK(self.store.requests_sent() == 3);
  CHECK(self.ticket().token == world.servers.nodes.at(self.ticket().path).czxid);
  CHECK(self.ticket().session == self.store.session_id());
}

TEST_CASE("A contender is near its turn while its create or its proof is being committed") {
  World world;
  std::vector<std::string> others(protocol::QueueAhead::kNear + 1);
  for (std::string& other : others) other = world.servers.Put("/l/other-lock-", 1, true);
  Contender self(world);
  CHECK_FALSE(self.acquire.IsNearTurn());
  self.store.Connect();
  CHECK(self.acquire.IsNearTurn());
  self.store.Run();
  CHECK_FALSE(self.acquire.IsNearTurn());
  CHECK(self.acquire.IsFarFromTurn());
  for (const std::string& other : others) world.servers.Remove(other);
  bool at_proof = false;
  while (self.store.Step()) at_proof = at_proof || self.acquire.IsNearTurn();
  CHECK(at_proof);
  CHECK(self.Holds());
  CHECK(self.acquire.IsNearTurn());
}

TEST_CASE("A waiter with few contenders before it is near its turn") {
  World world;
  const std::size_t others = GENERATE(std::size_t{1}, protocol::QueueAhead::kNear);
  for (std::size_t i = 0; i < others; ++i) world.servers.Put("/l/other-lock-", 1, true);
  Joined self(world);
  CHECK(self.acquire.IsNearTurn());
  CHECK_FALSE(self.acquire.IsFarFromTurn());
}

TEST_CASE("A missing LOCK is created with its parents, as containers where the servers know them") {
  const bool containers = GENERATE(true, false);
  World world(false);
  world.servers.knows_containers = containers;
  Joined self(world, {.lock = {"/a/b/c", ""}});
  REQUIRE(self.Holds());
  for (const char* path : {"/a", "/a/b", "/a/b/c"}) {
    CHECK(world.servers.nodes.at(path).is_container == containers);
  }
}

TEST_CASE("A missing chroot is created as a persistent znode") {
  World world(false);
  Joined self(world, {.lock = {"/a/b/c/d", "/a/b"}});
  REQUIRE(self.Holds());
  for (const char* path : {"/a", "/a/b"}) CHECK_FALSE(world.servers.nodes.at(path).is_container);
  for (const char* path : {"/a/b/c", "/a/b/c/d"}) {
    CHECK(world.servers.nodes.at(path).is_container);
  }
}

TEST_CASE("A LOCK deleted before its contender is created is created again, a few times") {
  World world(false);
  Contender self(world);
  // The first create finds no LOCK. LOCK is then created, but deleted again before the second
  // create.
  const std::string create = "create /l/host-";
  self.store.Before(create,
                    [&] { self.store.Before(create, [&] { world.servers.Remove("/l"); }); });
  CHECK(self.RunToHold());
  CHECK(std::count(self.store.log().begin(), self.store.log().end(), "create /l") == 2);

  Contender luckless(world, {.lock = {"/m", ""}});
  const std::function<void()> remove = [&] {
    world.servers.Remove("/m");
    luckless.store.Before("create /m/host-", remove);
  };
  luckless.store.Before("create /m/host-", remove);
  luckless.store.Run();
  luckless.store.DropPlans();  // left over from attempts never made
  CHECK(luckless.Ended<Defect>());
}

TEST_CASE(
    "A waiter watches its predecessor and its own contender, and takes the lock once the "
    "predecessor is deleted") {
  auto [world, holder, self] = BehindOther();
  REQUIRE_FALSE(self.acquire.outcome());
  world.clock.Advance(kPastLeaseInHand);
  world.servers.Remove(holder);
  REQUIRE(self.RunToHold());
  // The last requests, sent together, are the proof and a read of LOCK's data, which the release
  // needs.
  CHECK(self.store.log().rbegin()[1] == "check " + self.ticket().path);
  CHECK(self.store.log().back() == "get /l");
}

TEST_CASE("The predecessor can be deleted before any request of an acquisition") {
  for (std::size_t at = 0; at < 8; ++at) {
    CAPTURE(at);
    World world;
    const std::string holder = world.servers.Put("/l/other-lock-", 1, true);
    Contender self(world);
    bool removed = false;
    self.store.Before(at, [&] {
      world.servers.Remove(holder);
      removed = true;
    });
    self.store.Run();
    if (!removed) world.servers.Remove(holder);
    CHECK(self.RunToHold());
  }
}

TEST_CASE("A waiter in the middle that leaves wakes the next one, which keeps waiting") {
  World world;
  const std::string first = world.servers.Put("/l/a-lock-", 1, true);
  const std::string second = world.servers.Put("/l/b-lock-", 2, true);
  Joined self(world);
  world.servers.Remove(second);
  REQUIRE(self.RunToWait());
  world.servers.Remove(first);
  CHECK(self.RunToHold());
}

TEST_CASE("Readers hold together; a reader after a waiting writer waits") {
  World world;
  Contender first(world, {.mode = Mode::kRead});
  Contender second(world, {.mode = Mode::kRead});
  first.store.Run();
  second.store.Run();
  CHECK(first.Holds());
  CHECK(second.Holds());
  Joined writer(world, {.mode = Mode::kWrite});
  Joined late(world, {.mode = Mode::kRead});
  CHECK_FALSE(writer.acquire.outcome());
  CHECK_FALSE(late.acquire.outcome());
  first.Leave(world.servers);
  CHECK(writer.RunToWait());
  second.Leave(world.servers);
  writer.store.Run();
  late.store.Run();
  CHECK(writer.Holds());
  CHECK_FALSE(late.acquire.outcome());
  writer.Leave(world.servers);
  CHECK(late.RunToHold());
}

TEST_CASE("A try creates nothing when the lock is visibly busy") {
  auto [world, other, self] = BehindOther({.try_only = true});
  CHECK(self.why() == Busy::Why::kTaken);
  for (const std::string& line : self.store.log()) CHECK(line.find("create") == std::string::npos);
}

TEST_CASE("A try that loses the race between list and create leaves with the conflict") {
  World world;
  Contender self(world, {.try_only = true});
  self.store.Before("create /l/host-", [&] { world.servers.Put("/l/other-lock-", 1, true); });
  self.store.Run();
  CHECK(self.why() == Busy::Why::kTaken);
}

TEST_CASE("A try acquires a lock whose holder is deleted after the list and before it is read") {
  World world;
  const std::string holder = world.servers.Put("/l/other-lock-", 1, true);
  Contender self(world, {.try_only = true});
  self.store.Before("get " + holder, [&] { world.servers.Remove(holder); });
  CHECK(self.RunToHold());
}

TEST_CASE("An expired wait ends with a conflict, however often the connection was lost") {
  auto [world, other, self] = BehindOther({.wait = 10s});
  world.clock.Advance(6s);
  self.store.Disconnect();
  CHECK(self.RunToWait());
  world.clock.Advance(5s);
  REQUIRE(self.acquire.GetInterest().wake <= world.clock.Now());
  self.acquire.OnReady(0);
  CHECK(self.why() == Busy::Why::kWaitOver);
}

TEST_CASE("A waiter whose contender is deleted leaves") {
  auto [world, other, self] = BehindOther();
  for (const std::string& child : world.servers.Children("/l")) {
    if (child.rfind("host-", 0) == 0) world.servers.Remove("/l/" + child);
  }
  self.store.Run();
  CHECK(self.why() == Busy::Why::kRemoved);
}

TEST_CASE("A waiter reports each write to its contender, and keeps waiting") {
  auto [world, holder, self] = BehindOther();
  const std::string own = "/l/" + world.servers.Children("/l").front();
  world.servers.Write(own, "leave");
  self.store.Run();
  world.servers.Write(own, "at once");
  self.store.Run();
  CHECK(self.notes.own_data == std::vector<std::string>{"", "leave", "at once"});
  CHECK_FALSE(self.acquire.outcome());
  world.servers.Remove(holder);
  CHECK(self.RunToHold());
}

TEST_CASE("A contender deleted at any moment never takes the lock") {
  const bool in_hand = GENERATE(true, false);
  for (std::size_t at = 3; at < 9; ++at) {
    CAPTURE(at);
    World world;
    const std::string holder = world.servers.Put("/l/other-lock-", 1, true);
    Contender self(world);
    self.store.Before(at, [&] {
      for (const std::string& child : world.servers.Children("/l")) {
        if (child.rfind("host-", 0) == 0) world.servers.Remove("/l/" + child);
      }
    });
    self.store.Run();
    if (!in_hand) world.clock.Advance(kPastLeaseInHand);
    world.servers.Remove(holder);
    self.store.Run();
    // Once the last list or heartbeat is answered, the contender holds the lock, and learns of the
    // loss as a holder.
    const auto& log = self.store.log();
    const auto proof = std::find_if(log.rbegin(), log.rend(), [&](const std::string& line) {
      return line == "list /l" || line == "check " + self.notes.queued;
    });
    const auto proven_at = static_cast<std::size_t>(log.rend() - proof) - 1;
    if (at < log.size() && at <= proven_at) CHECK_FALSE(self.Holds());
  }
}

// ---- lost replies, lost connections, lost sessions ------------------------------------------

/// Queues a contender after another, with one fault at one request; then the other one leaves.
void CheckOneFault(std::size_t at, Fault fault, Mode mode, bool lock_exists) {
  CAPTURE(at, static_cast<int>(fault), static_cast<int>(mode), lock_exists);
  World world(lock_exists);
  Contender holder(world);
  if (lock_exists) holder.store.Run();
  Contender self(world, {.mode = mode});
  self.store.PlaceFault(at, fault);
  self.store.Run();
  if (lock_exists) {
    REQUIRE(holder.Holds());
    REQUIRE_FALSE(self.Holds());
    // The contender is in the queue exactly once: it is neither missing nor duplicated.
    REQUIRE(world.servers.Children("/l").size() == 2);
    holder.Leave(world.servers);
    self.store.Run();
  }
  REQUIRE(self.Holds());
  REQUIRE(world.servers.Children("/l").size() == 1);
  const auto& node = world.servers.nodes.at(self.ticket().path);
  REQUIRE(node.owner == self.store.session_id());
  REQUIRE(node.czxid == self.ticket().token);
}

TEST_CASE("One lost reply, connection or session at any request leaves one holder") {
  const auto fault = GENERATE(from_range(kLosses));
  const auto mode = GENERATE(Mode::kExclusive, Mode::kRead);
  const bool lock_exists = GENERATE(true, false);
  for (std::size_t at = 0; at < 12; ++at) CheckOneFault(at, fault, mode, lock_exists);
}

TEST_CASE("Two faults at any two requests leave one holder") {
  for (std::size_t first = 0; first < 9; ++first) {
    for (std::size_t second = first + 1; second < 14; ++second) {
      for (const Fault one : {Fault::kNotDone, Fault::kReplyLost, Fault::kExpiredReplyLost}) {
        for (const Fault two : {Fault::kNotDone, Fault::kReplyLost, Fault::kExpiredReplyLost}) {
          CAPTURE(first, second, static_cast<int>(one), static_cast<int>(two));
          World world;
          const std::string holder = world.servers.Put("/l/other-lock-", 1, true);
          Contender self(world);
          self.store.PlaceFault(first, one);
          self.store.PlaceFault(second, two);
          self.store.Run();
          REQUIRE_FALSE(self.Holds());
          REQUIRE(world.servers.Children("/l").size() == 2);
          world.servers.Remove(holder);
          REQUIRE(self.RunToHold());
          REQUIRE(world.servers.Children("/l").size() == 1);
        }
      }
    }
  }
}

TEST_CASE("A create whose reply was lost is adopted in the same session, after an answered check") {
  World world;
  Contender self(world);
  self.store.PlaceFault("create /l/host-", Fault::kReplyLost);
  REQUIRE(self.RunToHold());
  CHECK(world.servers.nodes.at("/l").next_number == 1);  // never created a second time
  CHECK(self.store.log()[3].substr(0, 4) == "sync");
  bool checked = false;
  for (const std::string& line : self.store.log()) checked |= line.rfind("check", 0) == 0;
  CHECK(checked);
}

TEST_CASE("An old session's contender is not adopted though it is still listed") {
  World world;
  Contender self(world);
  // The create is executed, its reply is lost, and the session expires. Its znode is still listed
  // for a while, but does not have the new session's UUID.
  self.store.PlaceFault("create /l/host-", Fault::kReplyLost);
  self.store.Connect();
  self.store.Step();
  const std::string ghost = "/l/" + world.servers.Children("/l").front();
  const std::int64_t old_session = self.store.session_id();
  self.store.Expire();
  world.servers.nodes[ghost] = {.data = "", .owner = old_session, .czxid = 7};
  self.store.Run();
  REQUIRE_FALSE(self.Holds());
  world.servers.Remove(ghost);
  REQUIRE(self.RunToHold());
  CHECK(self.ticket().path != ghost);
  CHECK(self.ticket().session != old_session);
}

/// Makes the contender's first create take effect only after it was repeated.
void RepeatCreate(World& world, Contender& self) {
  self.store.PlaceFault("create /l/host-", Fault::kNotDone);
  self.store.Before("sync", [&world, &self] {
    const std::size_t next_create = self.store.requests_sent();  // the list has been sent
    self.store.Before(next_create, [&world, &self, next_create] {
      const std::string line = self.store.log().at(next_create);
      REQUIRE(line.starts_with("create /l/host-"));
      world.servers.Put(line.substr(line.find('/')), self.store.session_id(), true);
    });
  });
}

TEST_CASE(
    "A run that may not delete its own first contender reports it instead of waiting for it") {
  World world;
  const bool is_held = GENERATE(false, true);
  const std::string other = is_held ? world.servers.Put("/l/other-lock-", 1, true) : "";
  Contender self(world);
  self.store.may_delete = false;
  RepeatCreate(world, self);
  self.store.Run();
  REQUIRE(self.Ended<Refused>());
  CHECK(std::get<Refused>(*self.acquire.outcome()).right == std::string("DELETE"));
}

TEST_CASE("A reader is not kept waiting by its own first contender, which it may not delete") {
  World world;
  Contender self(world, {.mode = Mode::kRead});
  self.store.may_delete = false;
  RepeatCreate(world, self);
  CHECK(self.RunToHold());
}

TEST_CASE("Our own first contender, which is deleted, does not fill the queue") {
  World world;
  const bool is_held = GENERATE(false, true);
  const std::string other = is_held ? world.servers.Put("/l/other-lock-", 1, true) : "";
  Contender self(world, {.max_queue = is_held ? 1 : 0});
  RepeatCreate(world, self);
  self.store.Run();
  CHECK(self.Holds() == !is_held);
  CHECK(self.why() == std::nullopt);
}

TEST_CASE("A second contender with our UUID is deleted") {
  auto [world, other, self] = BehindOther();
  std::string own;
  for (const std::string& child : world.servers.Children("/l")) {
    if (child.rfind("host-", 0) == 0) own = child;
  }
  const std::string ghost =
      world.servers.Put("/l/" + own.substr(0, own.size() - 10), self.store.session_id(), true);
  self.store.Disconnect();
  self.store.Run();
  CHECK_FALSE(world.servers.Has(ghost));
  CHECK(world.servers.Has("/l/" + own));
}

TEST_CASE("A waiter keeps waiting however often its session expires and LOCK is deleted") {
  World world;
  std::string other = world.servers.Put("/l/other-lock-", 1, true);
  Joined self(world);
  for (int i = 0; i < 10; ++i) {
    self.store.Expire();
    world.servers.Remove(other);
    world.servers.Remove("/l");
    // The first create finds no LOCK. Before the second one, another contender joins the new LOCK.
    self.store.Before("create /l/host-", [&] {
      self.store.Before("create /l/host-",
                        [&] { other = world.servers.Put("/l/other-lock-", 1, true); });
    });
    REQUIRE(self.RunToWait());
  }
  world.servers.Remove(other);
  CHECK(self.RunToHold());
}

TEST_CASE("A session that expires in the queue loses the place, which is reported once") {
  auto [world, other, self] = BehindOther();
  const std::string next = world.servers.Put("/l/next-lock-", 2, true);
  self.store.Expire();
  self.store.Run();
  CHECK(self.notes.places_lost == 1);
  world.servers.Remove("/l/other-lock-0000000000");
  CHECK(self.RunToWait());
  world.servers.Remove(next);
  CHECK(self.RunToHold());
}

TEST_CASE(
    "Without a server a run gives up after the connect timeout, or the session's if it is queued") {
  World world;
  Contender self(world);
  world.clock.Advance(14s);
  self.acquire.OnReady(0);
  CHECK_FALSE(self.acquire.outcome());
  world.clock.Advance(2s);
  self.acquire.OnReady(0);
  CHECK(self.Ended<Unreachable>());

  world.servers.Put("/l/other-lock-", 1, true);
  Joined waiter(world);
  waiter.store.Disconnect();
  world.clock.Advance(29s);
  waiter.acquire.OnReady(0);
  CHECK_FALSE(waiter.acquire.outcome());
  world.clock.Advance(2s);
  waiter.acquire.OnReady(0);
  CHECK(waiter.Ended<Unreachable>());
}

TEST_CASE("A server that accepts the session and then does not answer is given up") {
  World world;
  Contender self(world);
  self.store.Connect();
  world.clock.Advance(11s);
  REQUIRE(self.acquire.GetInterest().wake <= world.clock.Now());
  self.acquire.OnReady(0);
  CHECK(self.store.server_given_up());
}

TEST_CASE("A server that stops answering a waiter is given up") {
  auto [world, other, self] = BehindOther();
  for (int i = 0; i < 4 && !self.store.server_given_up(); ++i) {
    const auto wake = self.acquire.GetInterest().wake;
    REQUIRE(wake != kNever);
    world.clock.Set(wake);
    self.acquire.OnReady(0);  // reads its own contender; no answer
  }
  CHECK(self.store.server_given_up());
}

TEST_CASE("A waiter keeps its lease fresh by a small read every quarter of T") {
  auto [world, holder, self] = BehindOther();
  for (int i = 0; i < 40; ++i) {
    world.clock.Advance(7500ms);
    self.acquire.OnReady(0);
    self.store.Run();
  }
  world.servers.Remove(holder);
  REQUIRE(self.RunToHold());
  const auto lease_end = self.store.lease().End();
  REQUIRE(lease_end);
  CHECK(*lease_end - world.clock.Now() > 10s);
}

TEST_CASE("A waiter that was suspended for long does not take the lock with a stale lease") {
  auto [world, holder, self] = BehindOther();
  world.clock.Advance(29s);  // no reads: this process was suspended
  world.servers.Remove(holder);
  REQUIRE(self.RunToWait());
  world.clock.Advance(7502ms);
  self.acquire.OnReady(0);
  CHECK(self.RunToHold());
}

// ---- unusable LOCKs -------------------------------------------------------------------------

TEST_CASE("A run reports a predecessor that no session owns instead of waiting for it") {
  const bool try_only = GENERATE(false, true);
  World world;
  world.servers.nodes["/l"].next_number = 2024010203;
  world.servers.Put("/l/build-", 0, true);
  Joined self(world, {.try_only = try_only});
  REQUIRE(self.Ended<Unusable>());
  CHECK(std::get<Unusable>(*self.acquire.outcome()).child == "build-2024010203");
}

TEST_CASE("Used-up sequence numbers are refused") {
  World world;
  world.servers.nodes["/l"].next_number = 2147480000;
  Joined self(world);
  CHECK(self.Ended<Unusable>());
}

TEST_CASE("The recipe of another program's contender decides whether its LOCK is refused") {
  struct Case {
    const char* name;
    Mode mode;
    bool refused;
  };
  const auto one = GENERATE(values<Case>({
      {"/l/0123456789abcdef0123456789abcdef__lock__", Mode::kExclusive, true},
      {"/l/0123456789abcdef0123456789abcdef__rlock__", Mode::kRead, true},
      {"/l/_c_00000000-0000-4000-8000-000000000000-lock-", Mode::kRead, true},
      {"/l/_c_00000000-0000-4000-8000-000000000000-lock-", Mode::kWrite, true},
      {"/l/_c_00000000-0000-4000-8000-000000000000-lock-", Mode::kExclusive, false},
      {"/l/_c_00000000-0000-4000-8000-000000000000-__WRIT__", Mode::kExclusive, true},
      {"/l/_c_00000000-0000-4000-8000-000000000000-__READ__", Mode::kWrite, false},
  }));
  const bool try_only = GENERATE(false, true);
  CAPTURE(one.name, static_cast<int>(one.mode));
  World world;
  world.servers.Put(one.name, 1, true);
  Joined self(world, {.mode = one.mode, .try_only = try_only});
  CHECK(self.Ended<Unusable>() == one.refused);
}

TEST_CASE("An incompatible contender that arrives later is reported once") {
  auto [world, other, self] = BehindOther();
  world.servers.Put("/l/0123456789abcdef0123456789abcdef__lock__", 2, true);
  self.store.Disconnect();
  self.store.Run();
  self.store.Disconnect();
  self.store.Run();
  CHECK(self.notes.incompatible.size() == 1);
  CHECK_FALSE(self.acquire.outcome());
}

TEST_CASE("A child that may be another program's lock is refused if it is ephemeral or numbered") {
  const bool ephemeral = GENERATE(true, false);
  const bool try_only = GENERATE(true, false);
  // The names are a single-znode lock and permits of kazoo's Semaphore, one of which ends in a
  // number.
  const std::string name = GENERATE(as<std::string>{}, "lock", "0123456789abcdef0123456789abcdef",
                                    "0123456789abcdef01234a0000000000");
  CAPTURE(ephemeral, try_only, name);
  World world;
  world.servers.Put("/l/ffffffffffffffffffffffffffffffff", 0);
  world.servers.Put("/l/" + name, ephemeral ? 1 : 0);
  Joined self(world, {.try_only = try_only});
  // The number makes it a contender, and a contender without a session would never be deleted.
  const bool refused = ephemeral || name.ends_with("0000000000");
  CHECK(self.Ended<Unusable>() == refused);
  CHECK(self.Holds() == !refused);
}

TEST_CASE("A permit of kazoo that arrives later is reported once, and the wait continues") {
  auto [world, other, self] = BehindOther();
  for (const char* name :
       {"0123456789abcdef0123456789abcdef", "f123456789abcdef0123456789abcdef"}) {
    world.servers.Put(std::string("/l/") + name, 2);
    self.store.Disconnect();
    self.store.Run();
  }
  CHECK(self.notes.incompatible == std::vector<std::string>{"0123456789abcdef0123456789abcdef"});
  CHECK_FALSE(self.acquire.outcome());
}

TEST_CASE("A LOCK with a kazoo permit is refused whichever reply is lost") {
  for (std::size_t at = 0; at < 8; ++at) {
    CAPTURE(at);
    World world;
    world.servers.Put("/l/0123456789abcdef0123456789abcdef", 1);
    Contender self(world);
    self.store.PlaceFault(at, test::Fault::kReplyLost);
    self.store.Run();
    CHECK(self.Ended<Unusable>());
  }
}

TEST_CASE("A request that the servers refuse ends as Refused") {
  World world;
  SECTION("to create a contender") {
    world.servers.nodes["/l"].writable = false;
    Joined self(world);
    CHECK(self.Ended<Refused>());
  }
  SECTION("to list the children") {
    world.servers.nodes["/l"].readable = false;
    Joined self(world);
    CHECK(self.Ended<Refused>());
  }
  SECTION("to create the LOCK") {
    world.servers.nodes["/"].writable = false;
    Joined self(world, {.lock = {"/m/n", ""}});
    CHECK(self.Ended<Refused>());
  }
  SECTION("an ephemeral znode is not usable as a LOCK") {
    world.servers.Put("/e", 5);
    Joined self(world, {.lock = {"/e", ""}});
    CHECK(self.Ended<Unusable>());
  }
}

TEST_CASE("A waiter watches the children of LOCK if it cannot read its predecessor") {
  World world;
  const std::string first = world.servers.Put("/l/a-lock-", 1, true);
  const std::string second = world.servers.Put("/l/b-lock-", 2, true);
  world.servers.nodes[first].readable = false;
  world.servers.nodes[second].readable = false;
  Joined self(world);
  REQUIRE_FALSE(self.acquire.outcome());
  world.servers.Put("/l/c-lock-", 3, true);  // wakes the waiter, changes nothing
  self.store.Run();
  world.servers.Remove(first);
  REQUIRE(self.RunToWait());
  world.servers.Remove(second);
  CHECK(self.RunToHold());
}

TEST_CASE("A waiter whose session timeout a server has shortened reads more often") {
  auto [world, other, self] = BehindOther();
  self.store.Disconnect();
  self.store.SetGranted(8s);
  self.store.Run();
  const std::size_t before = self.store.requests_sent();
  world.clock.Advance(2s);
  self.acquire.OnReady(0);
  CHECK(self.store.requests_sent() == before + 1);
}

TEST_CASE("A waiter whose session timeout a server shortens too far gives up") {
  auto [world, other, self] = BehindOther();
  self.store.Disconnect();
  self.store.SetGranted(3s);
  self.store.Run();
  REQUIRE(self.Ended<Unusable>());
  CHECK(std::get<Unusable>(*self.acquire.outcome()).why == Unusable::Why::kShortSessions);
}

TEST_CASE("A session timeout too short for a lease is refused") {
  World world;
  FakeStore store(world.servers, world.clock, 3s);
  AcquireNotes notes;
  Acquire acquire(store, world.clock,
                  {.lock = {"/l", ""}, .host = "host", .data = "", .wait = std::nullopt}, NextUuid,
                  notes.Sink());
  store.Run();
  REQUIRE(acquire.outcome());
  CHECK(std::holds_alternative<Unusable>(*acquire.outcome()));
}

/// Lets `self`, whose turn it is, confirm its session until it has an outcome. Each answer takes
/// `answer`.
void ConfirmSlowly(World& world, Contender& self, Duration answer) {
  for (int i = 0; i < 10 && !self.acquire.outcome(); ++i) {
    world.clock.Set(std::max(self.acquire.GetInterest().wake, world.clock.Now()));
    self.acquire.OnReady(0);
    world.clock.Advance(answer);
    self.store.Run();
  }
  REQUIRE(self.acquire.outcome());
}

TEST_CASE("A free lock is given up if the session is confirmed too slowly, whatever the wait") {
  World world;
  const bool supersede = GENERATE(false, true);
  Contender self(world, {.wait = 1s, .supersede = supersede});
  // Too little of the lease is left to start anything.
  self.store.Before("create", [&] { world.clock.Advance(25s); });
  REQUIRE(self.RunToWait());
  const bool is_slow = GENERATE(true, false);
  ConfirmSlowly(world, self, is_slow ? 12s : 1s);
  CHECK(self.Holds() == !is_slow);
  CHECK(self.Ended<TooSlow>() == is_slow);
  CHECK(self.notes.times_first == 1);
}

TEST_CASE("One slow answer does not rule out a lock whose next answers are quick enough") {
  World world;
  Contender self(world);
  self.store.Before("create", [&] { world.clock.Advance(25s); });
  self.store.Run();
  // 11.25 s are left for two answers: one before the pause and one after it.
  world.clock.Set(self.acquire.GetInterest().wake);
  self.acquire.OnReady(0);
  world.clock.Advance(5s);
  CHECK(self.RunToWait());
  ConfirmSlowly(world, self, 5s);
  CHECK(self.Holds());
}

TEST_CASE("A run whose session is too short to take the lock names a timeout that would suffice") {
  World world;
  Contender self(world);
  const std::string other = world.servers.Put("/l/other-lock-", 1, true);
  self.store.Run();
  // Another server grants a longer timeout than was requested, and so pings less often.
  self.store.SetGranted(120s);
  self.store.Disconnect();
  self.store.Run();
  world.clock.Advance(20s);
  world.servers.Remove(other);
  self.store.Run();
  REQUIRE(self.Ended<TooSlow>());
  CHECK(std::get<TooSlow>(*self.acquire.outcome()).longer == 120s);
}

TEST_CASE("A wait that ends while an answer is under way is not a conflict if the lock is free") {
  World world;
  const auto end_wait = [&](Contender& self) {
    world.clock.Advance(1s);
    self.acquire.OnReady(0);
    CHECK_FALSE(self.acquire.outcome());
    self.store.Run();
    self.acquire.OnReady(0);
  };
  SECTION("the create has been answered, the list has not") {
    Contender self(world, {.wait = 500ms});
    self.store.Connect();
    while (self.notes.queued.empty()) REQUIRE(self.store.Step());
    end_wait(self);
    CHECK(self.Holds());
  }
  SECTION("the predecessor is gone, and a list or the record tells whether the lock is free") {
    const std::string holder = world.servers.Put("/l/other-lock-", 1, true);
    const bool was_waiter = GENERATE(false, true);
    const std::string waiter =
        was_waiter ? world.servers.Put("/l/more-lock-", 2, true) : std::string();
    Joined self(world, {.wait = kPastLeaseInHand + 500ms});
    world.clock.Advance(kPastLeaseInHand);
    world.servers.Remove(was_waiter ? waiter : holder);
    REQUIRE(self.store.Step());  // the event
    end_wait(self);
    CHECK(self.Holds() == !was_waiter);
    if (was_waiter) CHECK(self.why() == Busy::Why::kWaitOver);
  }
  SECTION("the list shows a predecessor, whose read has not been answered") {
    const std::string holder = world.servers.Put("/l/other-lock-", 1, true);
    world.servers.nodes.at(holder).readable = GENERATE(true, false);
    Contender self(world, {.wait = 500ms});
    self.store.Connect();
    while (self.notes.waits.empty()) REQUIRE(self.store.Step());
    const bool was_released = GENERATE(true, false);
    if (was_released) world.servers.Remove(holder);
    end_wait(self);
    CHECK(self.Holds() == was_released);
    if (!was_released) CHECK(self.why() == Busy::Why::kWaitOver);
  }
  SECTION("a heartbeat or a read of LOCK has not been answered, nor has the event arrived") {
    const std::string holder = world.servers.Put("/l/other-lock-", 1, true);
    const bool is_next = GENERATE(true, false);
    const std::string waiter =
        is_next ? std::string() : world.servers.Put("/l/more-lock-", 2, true);
    Joined self(world, {.wait = 8s});
    world.clock.Advance(7500ms);
    self.acquire.OnReady(0);
    REQUIRE(self.store.log().back() == (is_next ? "check " + self.notes.queued : "get /l"));
    if (!is_next) world.servers.Remove(waiter);
    world.servers.Remove(holder);
    end_wait(self);
    CHECK(self.Holds());
  }
}

TEST_CASE("A server that has not answered by the end of the wait is given up") {
  World world;
  world.servers.Put("/l/other-lock-", 1, true);
  Joined self(world, {.wait = 8s});
  world.clock.Advance(7500ms);
  self.acquire.OnReady(0);
  world.clock.Advance(10s);
  CHECK(self.acquire.GetInterest().wake <= world.clock.Now());
  self.acquire.OnReady(0);
  CHECK(self.store.server_given_up());
  self.store.Run();
  self.acquire.OnReady(0);
  CHECK(self.why() == Busy::Why::kWaitOver);
}

TEST_CASE("A child with our UUID is not adopted unless our session owns it") {
  World world;
  Contender self(world);
  const bool is_done = GENERATE(true, false);
  const bool is_readable = GENERATE(true, false);
  const auto [before, after] = GENERATE(table<std::string, std::string>(
      {{"a-", "-lock-0000000000"}, {"host-", "-lock-"}, {"host-", ""}, {"z-", "-x"}}));
  self.store.PlaceFault("create /l/host-", is_done ? Fault::kReplyLost : Fault::kNotDone);
  std::string forged;
  self.store.Before("sync", [&, b = before, a = after] {
    const auto& log = self.store.log();
    const auto create = std::find_if(log.begin(), log.end(), [](const std::string& request) {
      return request.starts_with("create /l/host-");
    });
    const std::string uuid = create->substr(std::string("create /l/host-").size(), 36);
    forged = world.servers.Put("/l/" + b + uuid + a, 77);
    world.servers.nodes.at(forged).readable = is_readable;
  });
  self.store.Run();
  world.servers.Remove(forged);
  self.store.Run();
  CHECK(self.Holds());
  CHECK(world.servers.Children("/l").size() == 1);
}

TEST_CASE("The wait begins when a server has queued the contender") {
  World world;
  world.servers.Put("/l/other-lock-", 1, true);
  Contender self(world, {.wait = 5s});
  self.store.PlaceFault("create /l/host-", GENERATE(Fault::kNotDone, Fault::kReplyLost));
  self.store.Connect();
  while (self.store.IsConnected()) REQUIRE(self.store.Step());
  world.clock.Advance(6s);
  self.store.Connect();
  self.store.Run();
  self.acquire.OnReady(0);
  CHECK_FALSE(self.acquire.outcome());
  CHECK(self.acquire.wait_deadline() == world.clock.Now() + 5s);
  world.clock.Advance(5s);
  self.acquire.OnReady(0);
  CHECK(self.why() == Busy::Why::kWaitOver);
}

TEST_CASE("A wait that ends without a connection is a conflict only if a server shows one") {
  auto [world, other, self] = BehindOther({.wait = 10s});
  world.clock.Advance(9s);
  self.store.Disconnect();
  world.clock.Advance(2s);
  self.acquire.OnReady(0);
  REQUIRE_FALSE(self.acquire.outcome());
  SECTION("no server does") {
    world.clock.Advance(13s);
    CHECK(self.acquire.GetInterest().wake <= world.clock.Now());
    self.acquire.OnReady(0);
    CHECK(self.Ended<Unreachable>());
  }
  SECTION("a server shows it") {
    self.store.Run();
    self.acquire.OnReady(0);
    CHECK(self.why() == Busy::Why::kWaitOver);
  }
  SECTION("a server shows that the lock is free") {
    world.servers.Remove(other);
    CHECK(self.RunToHold());
  }
}

// The leader has already proposed the first create, but the server of the next connection does not
// list it yet.
TEST_CASE("A contender that appears late counts from when its create was sent") {
  World world;
  Contender self(world);
  const TimePoint before = world.clock.Now();
  self.store.PlaceFault("create /l/host-", Fault::kNotDone);
  self.store.Before("sync", [&] {
    world.clock.Advance(1s);
    const std::size_t next_create = self.store.requests_sent();  // the list has been sent
    self.store.PlaceFault(next_create, Fault::kReplyLost);
    self.store.Before(next_create, [&, next_create] {
      const std::string line = self.store.log().at(next_create);
      REQUIRE(line.starts_with("create /l/host-"));
      world.servers.Put(line.substr(line.find('/')), self.store.session_id(), true);
    });
  });
  REQUIRE(self.RunToHold());
  CHECK(self.ticket().path.ends_with("-lock-0000000000"));
  CHECK(world.servers.nodes.at("/l").next_number == 2);
  CHECK(self.ticket().created_after == before);
}

TEST_CASE("The times of the create and of its answer bound the servers' clock") {
  World world;
  Contender self(world);
  const TimePoint before = world.clock.Now();
  self.store.Before("create", [&] { world.clock.Advance(1500ms); });
  REQUIRE(self.RunToHold());
  const Ticket& ticket = self.ticket();
  CHECK(ticket.created_after == before);
  CHECK(ticket.created_before == before + 1500ms);
  const TimePoint later = before + 4000ms;
  CHECK(ticket.LatestServerTimeAt(later) == ticket.created + 4000ms);
  CHECK(ticket.EarliestServerTimeAt(later) == ticket.created + 2500ms);
}

}  // namespace
}  // namespace zklock::lock
