// A waiter detects, over its own session, that --hold already holds the lock on its behalf.

#include "lock/ahead/holder_search.h"

#include <fmt/core.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "lock/several/acquire_set.h"
#include "unit/lock/contender.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using protocol::Dialect;
using test::Fault;
using test::kLosses;

using Requests = std::vector<std::string>;

constexpr std::int64_t kOtherSession = 7;
const std::string kOurs = "for our shell";

AcquireRequest Request(Mode mode = Mode::kExclusive, Dialect dialect = Dialect::kCurator,
                       bool try_only = false) {
  return {.lock = {"/l", ""},
          .mode = mode,
          .dialect = dialect,
          .host = "host",
          .data = "",
          .try_only = try_only,
          .holds_for_us = [](Mode, const std::string& data) { return data == kOurs; }};
}

std::string NameOf(Mode mode, const std::string& host = "host",
                   Dialect dialect = Dialect::kCurator) {
  return protocol::MakeContenderPrefix(host, NextUuid(), mode, dialect);
}

/// Creates a contender of another session.
std::string Put(World& world, Mode mode, const std::string& data = "", Dialect dialect = {},
                const std::string& host = "host") {
  return world.servers.Put("/l/" + NameOf(mode, host, dialect), kOtherSession,
                           dialect != Dialect::kSimple, data);
}

Mode FoundIn(const Contender& contender) {
  REQUIRE(contender.Ended<HeldForUs>());
  return std::get<HeldForUs>(*contender.acquire.outcome()).mode;
}

}  // namespace

// ---- the search and its requests ------------------------------------------------------------

TEST_CASE("A lock held for us is found with one more request than a wait takes, a check") {
  const auto held = GENERATE(Mode::kExclusive, Mode::kWrite);
  const auto mode = GENERATE(Mode::kExclusive, Mode::kWrite, Mode::kRead);
  World world;
  const std::string holder = Put(world, held, kOurs);
  Joined self(world, Request(mode));
  CHECK(FoundIn(self) == held);
  const std::string own = self.notes.queued;
  CHECK(self.store.SentSince(1) ==
        Requests{"get /l", "list /l", "get " + own, "get " + holder, "check " + holder});
}

TEST_CASE("While another shell holds the lock, the search adds no request to the wait") {
  World world;
  const std::string holder = Put(world, Mode::kExclusive, "for another shell");
  Joined self(world, Request());
  REQUIRE_FALSE(self.acquire.outcome());
  CHECK(self.store.SentSince(1) ==
        Requests{"get /l", "list /l", "get " + self.notes.queued, "get " + holder});
}

TEST_CASE("The search runs once for a place in the queue, and again for a new place") {
  World world;
  const std::string holder = Put(world, Mode::kExclusive, "", {}, "elsewhere");
  const std::string between = Put(world, Mode::kExclusive);
  const std::string next = Put(world, Mode::kExclusive);
  Joined self(world, Request());
  world.servers.Remove(between);
  world.servers.Remove(next);
  self.store.Run();  // lists again, and waits for the holder
  REQUIRE(self.notes.waits.back().second == 1);
  REQUIRE_FALSE(self.acquire.outcome());
  CHECK(self.store.CountSent("get " + holder) == 2);  // once by the search, once to set the watch

  world.servers.Write(holder, kOurs);
  CHECK(self.RunToWait());
  self.store.Expire();
  self.store.Run();
  CHECK(FoundIn(self) == Mode::kExclusive);
}

TEST_CASE(
    "At the end of a long queue only the holder and the predecessor are read, with one list") {
  World world;
  const std::string holder = Put(world, Mode::kExclusive, "for another shell");
  Requests between;
  for (int i = 0; i < 5; ++i) between.push_back(Put(world, Mode::kExclusive, kOurs));
  Joined self(world, Request());
  REQUIRE_FALSE(self.acquire.outcome());  // waiters hold nothing for this run
  CHECK(self.store.CountSent("get " + holder) == 1);
  CHECK(self.store.CountSent("get " + between.back()) == 1);
  CHECK(self.store.CountSent("get /l/") == 3);
  CHECK(self.store.CountSent("list ") == 1);

  world.servers.Write(holder, kOurs);
  Joined other(world, Request());
  CHECK(FoundIn(other) == Mode::kExclusive);
}

TEST_CASE("Another program's contender is not read, since it holds the lock for no shell") {
  World world;
  world.servers.Put("/l/_c_7bc63b3c-0cf4-4e4c-b0ac-8a3f2d9e5f36-lock-", kOtherSession, true, kOurs);
  Put(world, Mode::kExclusive);
  Joined self(world, Request());
  REQUIRE_FALSE(self.acquire.outcome());
  CHECK(self.store.CountSent("get /l/") == 2);  // reads of its own contender and its predecessor
}

TEST_CASE("A reader after a waiting writer finds that its own shell holds the lock as a reader") {
  World world;
  Put(world, Mode::kRead);
  Put(world, Mode::kRead, kOurs);
  Put(world, Mode::kRead);
  Put(world, Mode::kWrite);
  Joined self(world, Request(Mode::kRead));
  CHECK(FoundIn(self) == Mode::kRead);
}

TEST_CASE("A writer after many readers finds its own shell's reader, and reads a few at a time") {
  const int at = GENERATE(0, 17, 49);
  CAPTURE(at);
  World world;
  for (int i = 0; i < 50; ++i) Put(world, Mode::kRead, i == at ? kOurs : "");
  Contender self(world, Request(Mode::kWrite));
  self.store.Connect();
  for (int i = 0; i < 3; ++i) self.store.Step();  // create, get, list
  CHECK(self.store.requests_sent() == 3 + 2 + 7);
  self.store.Run();
  CHECK(FoundIn(self) == Mode::kRead);
}

TEST_CASE("A few of the readers on other hosts are read: this host may have been renamed") {
  World world;
  for (int i = 0; i < 99; ++i) Put(world, Mode::kRead, "", {}, "elsewhere");
  const std::string here = Put(world, Mode::kRead, "", {}, "host");
  for (int i = 0; i < 99; ++i) Put(world, Mode::kRead, "", {}, "elsewhere");
  Joined self(world, Request(Mode::kWrite));
  REQUIRE_FALSE(self.acquire.outcome());
  CHECK(self.store.CountSent("get " + here) == 1);
  CHECK(self.store.CountSent("get /l/") < 30);

  World renamed;
  Put(renamed, Mode::kExclusive, kOurs, {}, "elsewhere");
  Joined under(renamed, Request());
  CHECK(FoundIn(under) == Mode::kExclusive);
}

TEST_CASE("A lock held for us is found in every dialect") {
  const auto dialect = GENERATE(Dialect::kCurator, Dialect::kKazoo, Dialect::kSimple);
  const bool try_only = GENERATE(false, true);
  CAPTURE(static_cast<int>(dialect), try_only);
  World world;
  const std::string holder = Put(world, Mode::kExclusive, kOurs, dialect);
  Joined self(world, Request(Mode::kExclusive, dialect, try_only));
  CHECK(FoundIn(self) == Mode::kExclusive);
  // Where names are reused, the holder is read once more after the check.
  CHECK(self.store.CountSent("get " + holder) == (dialect == Dialect::kSimple ? 2 : 1));
  CHECK(self.store.CountSent("list ") <= 1);
}

TEST_CASE("A contender waits for another contender's only znode") {
  World world;
  const std::string holder = Put(world, Mode::kExclusive, "", Dialect::kSimple);
  Joined self(world, Request(Mode::kExclusive, Dialect::kSimple));
  REQUIRE_FALSE(self.acquire.outcome());
  world.servers.Remove(holder);
  CHECK(self.RunToHold());
}

TEST_CASE("A full queue is left only once the lock is known not to be held for us") {
  const bool ours = GENERATE(false, true);
  const auto fault = GENERATE(from_range(kLosses));
  for (std::size_t at = 0; at < 12; ++at) {
    CAPTURE(ours, static_cast<int>(fault), at);
    World world;
    Put(world, Mode::kExclusive, ours ? kOurs : "for another shell");
    auto request = Request();
    request.max_queue = 0;
    Contender self(world, request);
    self.store.PlaceFault(at, fault);
    self.store.Run();
    CHECK(self.notes.waits.empty());
    if (ours) {
      CHECK(FoundIn(self) == Mode::kExclusive);
    } else {
      CHECK(self.why() == Busy::Why::kQueueFull);
    }
  }
}

TEST_CASE("Without holds_for_us there is no search") {
  World world;
  Put(world, Mode::kExclusive, kOurs);
  Put(world, Mode::kExclusive);
  auto request = Request();
  request.holds_for_us = {};
  Joined self(world, request);
  REQUIRE_FALSE(self.acquire.outcome());
  CHECK(self.store.CountSent("get /l/") == 2);
}

// ---- try ------------------------------------------------------------------------------------

TEST_CASE("A try that finds the lock held for itself creates nothing, and reports the holder") {
  World world;
  const auto mode = GENERATE(Mode::kExclusive, Mode::kWrite, Mode::kRead);
  const std::string holder = Put(world, Mode::kWrite, kOurs);
  Joined self(world, Request(mode, {}, true));
  CHECK(FoundIn(self) == Mode::kWrite);
  CHECK(self.store.log() == Requests{"sync /l", "list /l", "get " + holder, "check " + holder});
}

TEST_CASE("A try that finds the lock held by another reads the holder once, and leaves") {
  World world;
  const std::string holder = Put(world, Mode::kExclusive, "for another shell");
  Put(world, Mode::kExclusive, kOurs);
  Joined self(world, Request(Mode::kExclusive, {}, true));
  CHECK(self.why() == Busy::Why::kTaken);
  CHECK(self.store.log() == Requests{"sync /l", "list /l", "get " + holder});
  CHECK(std::get<Busy>(*self.acquire.outcome()).blocker_data == "for another shell");
}

TEST_CASE("A try to read leaves only once it has read the readers that hold the lock") {
  World world;
  const bool ours = GENERATE(false, true);
  Put(world, Mode::kRead);
  Put(world, Mode::kRead, ours ? kOurs : "");
  const std::string writer = Put(world, Mode::kWrite, "the writer");
  Joined self(world, Request(Mode::kRead, {}, true));
  if (ours) {
    CHECK(FoundIn(self) == Mode::kRead);
  } else {
    REQUIRE(self.Ended<Busy>());
    CHECK(std::get<Busy>(*self.acquire.outcome()).blocker_data == "the writer");
  }
}

TEST_CASE("A try that joined the queue after its own shell reports the holder") {
  World world;
  Contender self(world, Request(Mode::kExclusive, {}, true));
  self.store.Before("create /l/host-", [&] { Put(world, Mode::kExclusive, kOurs); });
  self.store.Run();
  CHECK(FoundIn(self) == Mode::kExclusive);
}

TEST_CASE("A try whose holder is deleted before the search reads it acquires the lock") {
  World world;
  const std::string holder = Put(world, Mode::kExclusive, kOurs);
  Contender self(world, Request(Mode::kExclusive, {}, true));
  self.store.Before("get " + holder, [&] { world.servers.Remove(holder); });
  CHECK(self.RunToHold());
}

TEST_CASE("A try whose search gets no answer gives the server up") {
  World world;
  Put(world, Mode::kRead, kOurs);
  Put(world, Mode::kWrite);
  Contender self(world, Request(Mode::kRead, {}, true));
  self.store.Connect();
  for (int i = 0; i < 3; ++i) self.store.Step();  // sync, list, get of the writer
  REQUIRE_FALSE(self.acquire.outcome());
  REQUIRE(self.acquire.GetInterest().wake < kNever);
  world.clock.Set(self.acquire.GetInterest().wake);
  self.acquire.OnReady(0);
  CHECK(self.store.server_given_up());
  self.store.Run();
  CHECK(FoundIn(self) == Mode::kRead);
}

TEST_CASE("A server that slowly answers a try about one reader after another is not given up") {
  World world;
  constexpr int kReaders = 40;
  for (int i = 0; i < kReaders; ++i) Put(world, Mode::kRead, i == 0 ? kOurs : "");
  Put(world, Mode::kWrite);
  auto request = Request(Mode::kRead, {}, true);
  request.connect_timeout = 1h;
  Contender self(world, request);
  self.store.Connect();
  for (int steps = 0; !self.acquire.outcome() && steps < kReaders + 10; ++steps) {
    // Each answer arrives within the time allowed for one; together they take many times that.
    if (self.store.requests_sent() > 4) world.clock.Advance(6s);
    if (self.acquire.GetInterest().wake <= world.clock.Now()) self.acquire.OnReady(0);
    self.store.Step();
  }
  CHECK_FALSE(self.store.server_given_up());
  CHECK(FoundIn(self) == Mode::kRead);
}

// ---- events during the search ---------------------------------------------------------------

TEST_CASE("A lock held for us is found after one fault at any request") {
  const auto fault = GENERATE(from_range(kLosses));
  const auto dialect = GENERATE(Dialect::kCurator, Dialect::kKazoo, Dialect::kSimple);
  const bool try_only = GENERATE(false, true);
  const bool far = GENERATE(false, true);
  if (far && dialect == Dialect::kSimple) return;
  for (std::size_t at = 0; at < 8; ++at) {
    CAPTURE(at, static_cast<int>(fault), static_cast<int>(dialect), try_only, far);
    World world;
    Put(world, Mode::kExclusive, kOurs, dialect);
    if (far) Put(world, Mode::kExclusive, "", dialect);
    Contender self(world, Request(Mode::kExclusive, dialect, try_only));
    self.store.PlaceFault(at, fault);
    self.store.Run();
    CHECK(FoundIn(self) == Mode::kExclusive);
  }
}

TEST_CASE("If the holder is deleted before any request, the lock is acquired") {
  const bool far = GENERATE(false, true);
  for (std::size_t at = 1; at < 8; ++at) {
    CAPTURE(at, far);
    World world;
    const std::string holder = Put(world, Mode::kExclusive, kOurs);
    const std::string between = far ? Put(world, Mode::kExclusive) : "";
    Contender self(world, Request());
    bool deleted = false;
    self.store.Before(at, [&] {
      world.servers.Remove(holder);
      deleted = true;
    });
    self.store.Run();
    if (!deleted) {
      // The search already had all its answers.
      CHECK(FoundIn(self) == Mode::kExclusive);
      continue;
    }
    if (far) {
      REQUIRE_FALSE(self.acquire.outcome());
      world.servers.Remove(between);
      self.store.Run();
    }
    CHECK(self.Holds());
  }
}

TEST_CASE("If one of our shell's two readers is deleted, the other is found") {
  World world;
  const std::string first = Put(world, Mode::kRead, kOurs);
  const std::string second = Put(world, Mode::kRead, kOurs);
  const bool is_first = GENERATE(true, false);
  Put(world, Mode::kWrite);
  Contender self(world, Request(Mode::kRead));
  const std::string& deleted = is_first ? first : second;
  self.store.Before("check ", [&] { world.servers.Remove(deleted); });
  self.store.Run();
  REQUIRE_FALSE(world.servers.Has(deleted));
  CHECK(FoundIn(self) == Mode::kRead);
}

TEST_CASE("If both of our shell's readers are deleted, the wait continues") {
  World world;
  const std::string first = Put(world, Mode::kRead, kOurs);
  const std::string second = Put(world, Mode::kRead, kOurs);
  const std::string writer = Put(world, Mode::kWrite);
  Contender self(world, Request(Mode::kRead));
  self.store.Before("check ", [&] {
    world.servers.Remove(first);
    world.servers.Remove(second);
  });
  self.store.Run();
  REQUIRE_FALSE(world.servers.Has(first));
  REQUIRE_FALSE(self.acquire.outcome());
  world.servers.Remove(writer);
  CHECK(self.RunToHold());
}

TEST_CASE("A lock that is released during the search is acquired, and late answers do not count") {
  World world;
  const std::string first = Put(world, Mode::kRead, "", {}, "elsewhere");
  const std::string writer = Put(world, Mode::kWrite);
  Contender self(world, Request(Mode::kRead));
  self.store.Before("get " + writer, [&] {
    world.servers.Remove(writer);
    world.servers.Write(first, kOurs);
  });
  REQUIRE(self.RunToHold());
  CHECK(self.store.log().back() == "list /l");  // only the list counts: the reader is not checked
}

TEST_CASE("A wait that is over also ends during the search") {
  World world;
  Put(world, Mode::kRead, kOurs);
  Put(world, Mode::kWrite);
  auto request = Request(Mode::kRead);
  request.wait = 1s;
  Contender self(world, request);
  self.store.Connect();
  for (int i = 0; i < 5; ++i) self.store.Step();  // create, get, list, get own, get predecessor
  REQUIRE_FALSE(self.acquire.outcome());
  world.clock.Advance(1s);
  self.acquire.OnReady(0);
  CHECK(self.why() == Busy::Why::kWaitOver);
  self.store.Run();
  CHECK(self.why() == Busy::Why::kWaitOver);
}

TEST_CASE("During the search the waiter keeps its lease fresh, and the search continues") {
  World world;
  Put(world, Mode::kRead, kOurs);
  Put(world, Mode::kWrite);
  Contender self(world, Request(Mode::kRead));
  self.store.Connect();
  for (int i = 0; i < 5; ++i) self.store.Step();
  REQUIRE_FALSE(self.acquire.outcome());
  // While the answer is outstanding, the waiter still reads LOCK, and gives up a silent server.
  world.clock.Advance(7500ms);
  self.acquire.OnReady(0);
  CHECK(self.store.log().back() == "get /l");
  world.clock.Advance(10s);
  self.acquire.OnReady(0);
  CHECK(self.store.server_given_up());
  self.store.Run();
  CHECK(FoundIn(self) == Mode::kRead);
}

TEST_CASE("A contender waits for a holder that it cannot read") {
  const bool far = GENERATE(false, true);
  World world;
  const std::string holder = Put(world, Mode::kExclusive, kOurs);
  const std::string between = far ? Put(world, Mode::kExclusive) : "";
  world.servers.nodes.at(holder).readable = false;
  Joined self(world, Request());
  REQUIRE_FALSE(self.acquire.outcome());
  self.store.Disconnect();
  REQUIRE(self.RunToWait());
  world.servers.Remove(holder);
  if (far) world.servers.Remove(between);
  CHECK(self.RunToHold());
}

TEST_CASE("Readers are read again after a lost connection only if the search was not over") {
  World world;
  const std::string reader = Put(world, Mode::kRead);
  const std::string hidden = Put(world, Mode::kRead);
  world.servers.nodes.at(hidden).readable = false;
  Contender self(world, Request(Mode::kWrite));
  self.store.PlaceFault("get " + reader, Fault::kReplyLost);
  self.store.Run();
  CHECK(self.store.CountSent("get " + reader) == 2);
  self.store.Disconnect();
  self.store.Run();
  CHECK(self.store.CountSent("get " + reader) == 2);
  REQUIRE_FALSE(self.acquire.outcome());
}

TEST_CASE("A try with a holder that cannot be read leaves, though a connection is lost") {
  World world;
  Put(world, Mode::kRead);
  const std::string hidden = Put(world, Mode::kRead);
  world.servers.nodes.at(hidden).readable = false;
  for (std::size_t at = 0; at < 12; ++at) {
    CAPTURE(at);
    Contender self(world, Request(Mode::kWrite, {}, true));
    self.store.PlaceFault(at, Fault::kReplyLost);
    self.store.Run();
    CHECK(self.why() == Busy::Why::kTaken);

    World free;
    Contender joined(free, Request(Mode::kWrite, {}, true));
    joined.store.Before("create /l/host-", [&] {
      Put(free, Mode::kRead);
      free.servers.nodes.at(Put(free, Mode::kRead)).readable = false;
    });
    joined.store.PlaceFault(at, Fault::kReplyLost);
    joined.store.Run();
    REQUIRE(joined.acquire.outcome());
    CHECK(joined.why() == Busy::Why::kTaken);
  }
}

TEST_CASE("A refused check proves nothing, and the wait for the holder continues") {
  World world;
  const std::string holder = Put(world, Mode::kExclusive, kOurs);
  Contender self(world, Request());
  self.store.Refuse("check " + holder, zookeeper::Error::kNoAuth);
  self.store.Run();
  REQUIRE(self.store.CountSent("check " + holder) == 1);
  REQUIRE_FALSE(self.acquire.outcome());
  world.servers.Remove(holder);
  CHECK(self.RunToHold());
}

TEST_CASE("A znode of no session or of our own session does not hold the lock for us") {
  FakeClock clock;
  FakeServers servers;
  servers.Put("/l", 0);
  FakeStore store(servers, clock);
  store.Connect();
  const std::int64_t owner = GENERATE_COPY(std::int64_t{0}, store.session_id(), kOtherSession);
  const std::string path = servers.Put("/l/" + NameOf(Mode::kRead), owner, true, kOurs);
  int told = 0;
  HolderSearch search(store, "/l", servers.Children("/l"), "host", Request().holds_for_us,
                      [&] { ++told; });
  search.Begin("");
  REQUIRE_FALSE(search.IsOver());
  store.Run();
  REQUIRE(search.IsOver());
  CHECK(search.found().has_value() == (owner == kOtherSession));
  CHECK(told == (owner == kOtherSession ? 2 : 1));
}

// ---- several LOCKs --------------------------------------------------------------------------

namespace {

struct SetOfTwo : private World, SetContender {
  explicit SetOfTwo(bool try_only) : SetContender(static_cast<World&>(*this), Requests(try_only)) {
    servers.Put("/a", 0, false, "zklock/1");
  }
  static std::vector<AcquireRequest> Requests(bool try_only) {
    auto first = Request(Mode::kExclusive, {}, try_only);
    first.lock.path = "/a";
    return {first, Request(Mode::kExclusive, {}, try_only)};
  }
  [[nodiscard]] std::string PutOurs(const std::string& lock) {
    return servers.Put(lock + "/" + NameOf(Mode::kExclusive), kOtherSession, true, kOurs);
  }
  using World::clock;
  using World::servers;
};

}  // namespace

TEST_CASE("The one of several LOCKs that is held for us is reported whichever reply is lost") {
  const bool try_only = GENERATE(false, true);
  const std::string lock = GENERATE("/a", "/l");
  const auto fault = GENERATE(from_range(kLosses));
  for (std::size_t at = 0; at < 12; ++at) {
    CAPTURE(try_only, lock, at, static_cast<int>(fault));
    SetOfTwo caller(try_only);
    const std::string holder = caller.PutOurs(lock);
    caller.store.PlaceFault(at, fault);
    caller.Run();
    REQUIRE(caller.Ended<HeldForUs>());
    CHECK(caller.set.lock().path == lock);
  }
}

TEST_CASE("A try of several LOCKs reads the holder of the first that is busy, and no other") {
  SetOfTwo caller(true);
  const std::string first =
      caller.servers.Put("/a/" + NameOf(Mode::kExclusive), kOtherSession, true);
  const std::string second = caller.PutOurs("/l");
  caller.Run();
  REQUIRE(caller.Ended<Busy>());
  CHECK(caller.set.lock().path == "/a");
  CHECK(caller.store.log() == Requests{"sync /a", "list /a", "list /l", "get " + first});
}

TEST_CASE("A try of several LOCKs that are released while the connection is lost acquires all") {
  SetOfTwo caller(true);
  const std::string holder = caller.PutOurs("/l");
  caller.store.PlaceFault("get " + holder, Fault::kReplyLost);
  caller.store.Before("get " + holder, [&] { caller.servers.Remove(holder); });
  caller.Run();
  REQUIRE(caller.Ended<Acquired>());
  REQUIRE(caller.set.tickets().size() == 2);
  CHECK(caller.set.tickets()[0].lock.path == "/a");
  CHECK(caller.set.tickets()[1].lock.path == "/l");
}

TEST_CASE("A try of several LOCKs whose search gets no answer gives the server up") {
  SetOfTwo caller(true);
  const std::string holder = caller.PutOurs("/a");
  caller.store.Connect();
  caller.store.Step();  // sync
  caller.clock.Advance(4s);
  caller.store.Step();  // list
  REQUIRE(caller.store.log().back() == "get " + holder);
  // The time allowed for an answer starts anew with this request.
  caller.clock.Advance(7s);
  caller.set.OnReady(0);
  CHECK_FALSE(caller.store.server_given_up());
  caller.clock.Set(caller.set.GetInterest().wake);
  caller.set.OnReady(0);
  CHECK(caller.store.server_given_up());
}

}  // namespace zklock::lock
