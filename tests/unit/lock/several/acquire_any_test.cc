#include "lock/several/acquire_any.h"

#include <algorithm>
#include <array>
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

constexpr std::array kLocks = {"/a", "/b", "/c"};

std::vector<AcquireRequest> Requests(const AcquireRequest& common) {
  std::vector<AcquireRequest> requests;
  for (const char* path : kLocks) {
    requests.push_back(common);
    requests.back().lock = {path, ""};
    requests.back().host = "host";
  }
  return requests;
}

template <typename Acquisition>
struct CallerOf : private World, ContenderOf<Acquisition> {
  template <typename... Further>
  explicit CallerOf(const AcquireRequest& common, Further... further)
      : World(false),
        ContenderOf<Acquisition>(static_cast<World&>(*this), Requests(common), further...) {
    for (const char* path : kLocks) servers.Put(path, 0, false, "zklock/1");
  }
  using World::clock;
  using World::servers;

  /// Returns this session's contenders in the queue of `lock`.
  [[nodiscard]] std::vector<std::string> Own(const std::string& lock) const {
    std::vector<std::string> own;
    for (const std::string& child : servers.Children(lock)) {
      const std::string path = lock + "/" + child;
      if (servers.nodes.at(path).owner == this->store.session_id()) own.push_back(path);
    }
    return own;
  }
  [[nodiscard]] std::string Occupy(const std::string& lock) {
    return servers.Put(lock + "/other-lock-", 1, true);
  }
  /// Returns the LOCK that is held; empty if none is.
  [[nodiscard]] std::string Held() const {
    return this->Holds() ? this->set.tickets().at(0).lock.path : "";
  }
};

/// Acquires one of /a, /b and /c.
struct AnyCaller : CallerOf<AcquireAny> {
  explicit AnyCaller(const AcquireRequest& common = {}) : CallerOf(common) {}

  /// Checks that it holds `lock` through its only contender there, and that
  /// passed() lists all its contenders elsewhere, and no others that still exist.
  void CheckHolds(const std::string& lock) {
    REQUIRE(Held() == lock);
    const Ticket ticket = set.tickets()[0];
    CHECK(Own(lock) == std::vector{ticket.path});
    CHECK(servers.nodes.at(ticket.path).czxid == ticket.token);
    std::vector<std::string> others;
    for (const char* other : kLocks) {
      if (other == lock) continue;
      for (const std::string& path : Own(other)) others.push_back(path);
    }
    std::vector<std::string> passed = set.passed();
    std::erase_if(passed, [&](const auto& path) { return !servers.Has(path); });
    std::sort(passed.begin(), passed.end());
    CHECK(passed == others);
  }
};

TEST_CASE("Of several free LOCKs the first is taken, with one commit") {
  AnyCaller caller;
  caller.Run();
  caller.CheckHolds("/a");
  CHECK(caller.set.passed().size() == 2);
  CHECK(caller.set.lock().path == "/a");
  CHECK(caller.store.CountSent("create all /a /b /c") == 1);
  CHECK(caller.store.CountSent("create") == 1);
  CHECK(caller.store.CountSent("check") == 0);
}

TEST_CASE("The LOCK that becomes free first is taken, and all are waited for until then") {
  AnyCaller caller;
  std::vector<std::string> holders;
  for (const char* lock : kLocks) holders.push_back(caller.Occupy(lock));
  caller.Run();
  REQUIRE_FALSE(caller.set.outcome());
  for (const char* lock : kLocks) CHECK(caller.Own(lock).size() == 1);
  CHECK(caller.set.IsNearTurn());
  caller.servers.Remove(holders[1]);
  caller.Run();
  caller.CheckHolds("/b");
}

TEST_CASE(
    "A pool is near its turn if one queue is short, and never so far that it needs no guard") {
  AnyCaller caller;
  std::vector<std::string> others(protocol::QueueAhead::kNear + 1);
  for (const char* lock : kLocks) {
    for (std::string& other : others) other = caller.Occupy(lock);
  }
  caller.Run();
  CHECK_FALSE(caller.set.IsFarFromTurn());
  CHECK_FALSE(caller.set.IsNearTurn());
  for (const std::string& child : caller.servers.Children("/b")) {
    if (child.rfind("other", 0) == 0) caller.servers.Remove("/b/" + child);
  }
  caller.Run();
  caller.CheckHolds("/b");
}

TEST_CASE("LOCKs that do not exist are created before the contenders of a pool") {
  AnyCaller caller;
  caller.servers.Remove("/b");
  caller.servers.Remove("/c");
  caller.Run();
  caller.CheckHolds("/a");
  CHECK(caller.servers.nodes.at("/c").data == "zklock/1");
  CHECK(caller.store.CountSent("create all") == 2);
  CHECK(caller.store.CountSent("create /a") == 0);
}

TEST_CASE("A lost create of a pool is found again, or repeated, whatever is lost") {
  const auto loss = GENERATE(from_range(kLosses));
  AnyCaller caller;
  caller.store.PlaceFault("create all", loss);
  caller.Run();
  caller.CheckHolds("/a");
  // Contenders that were created keep their places.
  CHECK(caller.store.CountSent("create all") == (loss == Fault::kReplyLost ? 1 : 2));
  for (const char* lock : kLocks) CHECK(caller.Own(lock).size() == 1);
}

TEST_CASE("A create of a pool that succeeds after all leaves no contender behind") {
  AnyCaller caller;
  const std::string holder = caller.Occupy("/b");
  for (const char* lock : {"/a", "/c"}) (void)caller.Occupy(lock);
  caller.Run();
  // This is a contender from an earlier create that was lost: the same UUID, the same session.
  const std::string own = caller.Own("/b").at(0);
  (void)caller.servers.Put(own.substr(0, own.size() - 10), caller.store.session_id(), true);
  REQUIRE(caller.Own("/b").size() == 2);
  caller.servers.Remove(holder);
  caller.Run();
  caller.CheckHolds("/b");
  CHECK(caller.Own("/b") == std::vector{own});
}

TEST_CASE("A pool survives the loss of any reply, with one contender in each queue at most") {
  const auto loss = GENERATE(from_range(kLosses));
  const bool waits = GENERATE(false, true);
  std::size_t requests = 1;
  for (std::size_t i = 0; i < requests; ++i) {
    AnyCaller caller;
    std::vector<std::string> holders;
    if (waits) {
      for (const char* lock : kLocks) holders.push_back(caller.Occupy(lock));
    }
    caller.store.PlaceFault(i, loss);
    caller.Run();
    if (waits) {
      REQUIRE_FALSE(caller.set.outcome());
      for (const char* lock : kLocks) CHECK(caller.Own(lock).size() == 1);
      caller.servers.Remove(holders[2]);
      caller.Run();
    }
    CAPTURE(i);
    caller.CheckHolds(waits ? "/c" : "/a");
    for (const char* lock : kLocks) CHECK(caller.Own(lock).size() <= 1);
    if (i == 0) requests = caller.store.requests_sent() + 5;
  }
}

TEST_CASE("A pool takes no free LOCK while another may be held for us, whatever is lost") {
  const auto loss = GENERATE(from_range(kLosses));
  const std::size_t held = GENERATE(0, 2);
  std::size_t requests = 1;
  for (std::size_t i = 0; i < requests; ++i) {
    CAPTURE(i, held);
    AnyCaller caller(
        {.holds_for_us = [](protocol::Mode, const std::string& data) { return data == "ours"; }});
    const std::string path = std::string(kLocks.at(held)) + "/host-" + NextUuid() + "-lock-";
    (void)caller.servers.Put(path, 1, true, "ours");
    caller.store.PlaceFault(i, loss);
    for (int connects = 0; connects < 3 && !caller.set.outcome(); ++connects) {
      if (!caller.store.IsConnected()) caller.store.Connect();
      while (caller.store.Step()) caller.ServeTimers();
    }
    REQUIRE(caller.Ended<HeldForUs>());
    CHECK(caller.set.lock().path == kLocks.at(held));
    if (i == 0) requests = caller.store.requests_sent() + 5;
  }
}

TEST_CASE("Missing permission on a LOCK ends a pool, which reports it and leaves nothing behind") {
  AnyCaller caller;
  const bool may_create = GENERATE(false, true);
  if (may_create) {
    caller.store.may_delete = false;
  } else {
    caller.servers.nodes.at("/b").writable = false;
  }
  caller.Run();
  REQUIRE(caller.Ended<Refused>());
  const auto& refused = std::get<Refused>(*caller.set.outcome());
  CHECK(refused.path == (may_create ? "/a" : "/b"));
  CHECK(refused.right == (may_create ? "DELETE" : "CREATE"));
  for (const char* lock : kLocks) CHECK(caller.Own(lock).empty());
}

TEST_CASE("A LOCK of another kind ends a pool before another one is taken") {
  AnyCaller caller;
  caller.servers.Put("/c/leases", 0);
  caller.servers.Put("/c/leases/other-lease-", 1, true);
  caller.store.Connect();
  while (caller.store.Step()) caller.ServeTimers();  // /a is granted before /c is judged
  REQUIRE(caller.Ended<Unusable>());
  CHECK(std::get<Unusable>(*caller.set.outcome()).why == Unusable::Why::kHasPermits);
  CHECK(caller.set.lock().path == "/c");
  CHECK(caller.set.tickets().empty());
}

TEST_CASE("A LOCK is not taken before the first list of each queue") {
  AnyCaller caller;
  caller.servers.Put("/c/leases", 0);
  caller.servers.Put("/c/leases/other-lease-", 1, true);
  caller.store.Connect();
  // Serves the set after each answer, as the loop would.
  while (!caller.set.outcome() && caller.store.Step()) caller.set.OnReady(0);
  caller.Run();
  CHECK(caller.Ended<Unusable>());
}

TEST_CASE("A pool leaves the queue of a contender that was deleted, and ends with the last") {
  AnyCaller caller;
  for (const char* lock : kLocks) (void)caller.Occupy(lock);
  caller.Run();
  for (const char* lock : kLocks) {
    REQUIRE_FALSE(caller.set.outcome());
    caller.servers.Remove(caller.Own(lock).at(0));
    caller.Run();
  }
  CHECK(caller.why() == Busy::Why::kRemoved);
  REQUIRE(caller.notes.left.size() == 2);  // the outcome describes only the last one
  CHECK(caller.notes.left[0].why == QueueLeftEvent::Why::kRemoved);
  CHECK(caller.notes.left[0].open == std::vector<std::string>{"/b", "/c"});
  CHECK(caller.notes.left[1].lock == "/b");
}

TEST_CASE("A pool asked to leave one queue waits in the others, and ends when none is left") {
  AnyCaller caller;
  std::vector<std::string> holders;
  for (const char* lock : kLocks) holders.push_back(caller.Occupy(lock));
  caller.Run();
  const std::string asked = caller.Own("/a").at(0);
  CHECK(caller.set.GiveUp(asked));
  CHECK(caller.set.GiveUp(asked));  // it has left already
  caller.Run();
  CHECK(caller.Own("/a").empty());
  REQUIRE(caller.notes.left.size() == 1);
  CHECK(caller.notes.left[0].lock == "/a");
  CHECK(caller.notes.left[0].contender == asked);
  CHECK(caller.notes.left[0].why == QueueLeftEvent::Why::kRequested);
  CHECK(caller.notes.left[0].open == std::vector<std::string>{"/b", "/c"});
  CHECK(caller.set.GiveUp(caller.Own("/c").at(0)));
  CHECK_FALSE(caller.set.GiveUp(caller.Own("/b").at(0)));
  caller.servers.Remove(holders[0]);
  caller.Run();
  CHECK_FALSE(caller.set.outcome());
  caller.servers.Remove(holders[1]);
  caller.Run();
  caller.CheckHolds("/b");
}

TEST_CASE("The delete of a contender that left a pool is repeated after a loss") {
  const auto fault = GENERATE(Fault::kNotDone, Fault::kReplyLost);
  AnyCaller caller;
  for (const char* lock : kLocks) (void)caller.Occupy(lock);
  caller.Run();
  caller.store.PlaceFault("delete", fault);
  CHECK(caller.set.GiveUp(caller.Own("/a").at(0)));
  caller.Run();
  CHECK(caller.Own("/a").empty());
  CHECK_FALSE(caller.set.outcome());
}

TEST_CASE("A contender that could not be deleted before the grant is left to the holder") {
  AnyCaller caller;
  std::vector<std::string> holders;
  for (const char* lock : kLocks) holders.push_back(caller.Occupy(lock));
  caller.Run();
  caller.store.Refuse("delete", zookeeper::Error::kNoAuth);
  CHECK(caller.set.GiveUp(caller.Own("/a").at(0)));
  caller.Run();
  caller.servers.Remove(holders[1]);
  caller.Run();
  caller.CheckHolds("/b");
  CHECK(caller.Own("/a").size() == 1);
}

TEST_CASE("The holder deletes all other contenders of its pool, whatever is gone or lost") {
  AnyCaller caller;
  caller.Run();
  const auto what = GENERATE(0, 1, 2, 3);
  const std::string together = "delete " + caller.Own("/b").at(0) + " " + caller.Own("/c").at(0);
  if (what == 1) caller.servers.Remove(caller.Own("/b").at(0));
  if (what == 2) caller.store.PlaceFault(together, Fault::kNotDone);
  if (what == 3) caller.store.PlaceFault(together, Fault::kReplyLost);
  const Hold hold(caller.store, caller.clock, caller.set.tickets(), 5s, Ignore,
                  caller.set.passed());
  caller.store.Run();
  CHECK(caller.Own("/a").size() == 1);
  CHECK(caller.Own("/b").empty());
  CHECK(caller.Own("/c").empty());
  const std::size_t singly = caller.store.CountSent("delete ") - caller.store.CountSent(together);
  CHECK(singly == (what == 1 || what == 3 ? 2 : 0));
}

TEST_CASE("A pool whose session has expired queues again, in the queues that it has not left") {
  AnyCaller caller;
  std::vector<std::string> holders;
  for (const char* lock : kLocks) holders.push_back(caller.Occupy(lock));
  caller.Run();
  CHECK(caller.set.GiveUp(caller.Own("/a").at(0)));
  caller.Run();
  const std::string before = Name(caller.Own("/b").at(0));
  caller.store.Expire();
  caller.Run();
  CHECK(caller.notes.places_lost == 2);
  // A server that lags behind may still list the contenders of the old session.
  const std::string now = Name(caller.Own("/b").at(0));
  CHECK(before.substr(0, before.size() - 10) != now.substr(0, now.size() - 10));
  CHECK(caller.Own("/a").empty());
  CHECK(caller.Own("/b").size() == 1);
  caller.servers.Remove(holders[2]);
  caller.Run();
  caller.CheckHolds("/c");
}

TEST_CASE("A LOCK that was granted before the connection was lost is proven again") {
  AnyCaller caller;
  const bool expires = GENERATE(false, true);
  caller.store.Before("list /b",
                      [&] { expires ? caller.store.Expire() : caller.store.Disconnect(); });
  caller.Run();
  caller.CheckHolds("/a");
  CHECK(caller.notes.places_lost == (expires ? 3 : 0));
}

TEST_CASE("A contender that was deleted between its grant and a lost connection does not count") {
  AnyCaller caller;
  caller.store.Before("list /b", [&] {
    caller.servers.Remove(caller.Own("/a").at(0));
    caller.store.Disconnect();
  });
  caller.Run();
  caller.CheckHolds("/b");
}

TEST_CASE(
    "A contender that is deleted between its grant and the other first lists does not count") {
  AnyCaller caller;
  caller.store.Before("list /b", [&] { caller.servers.Remove(caller.Own("/a").at(0)); });
  caller.store.Connect();
  while (!caller.set.outcome() && caller.store.Step()) {
    if (caller.set.GetInterest().wake <= caller.clock.Now()) caller.set.OnReady(0);
  }
  caller.Run();
  caller.CheckHolds("/b");
}

TEST_CASE("A pool that proves several grants again passes all that it does not take") {
  AnyCaller caller;
  caller.store.Connect();
  while (caller.store.Step()) {
  }
  caller.store.Disconnect();  // all LOCKs were granted, and none was taken
  caller.store.Connect();
  while (!caller.set.outcome()) {
    REQUIRE(caller.store.Step());
    // LOCKs that are granted in the meantime do not keep the loop busy.
    for (int i = 0; caller.set.GetInterest().wake <= caller.clock.Now(); ++i) {
      REQUIRE(i < 3);
      caller.set.OnReady(0);
    }
  }
  REQUIRE(caller.Holds());
  CHECK(caller.set.passed().size() == 2);
  CHECK(caller.store.CountSent("create all") == 1);
}

TEST_CASE("A LOCK that is granted while another is proven again does not keep the loop busy") {
  AnyCaller caller;
  const std::string holder = caller.Occupy("/b");
  bool is_released = false;
  // Only a grant that had to wait for the other queues is checked.
  caller.store.Before("check /a", [&] {
    caller.servers.Remove(holder);
    is_released = true;
  });
  caller.store.Connect();
  while (!caller.set.outcome()) {
    REQUIRE(caller.store.Step());
    for (int i = 0; caller.set.GetInterest().wake <= caller.clock.Now(); ++i) {
      REQUIRE(i < 3);
      caller.set.OnReady(0);
    }
  }
  CHECK(is_released);
  caller.CheckHolds("/a");
}

TEST_CASE("A grant that is too old to start a command is proven again") {
  AnyCaller caller;
  caller.store.Before("list /b", [&] { caller.clock.Advance(21s); });
  caller.Run();
  REQUIRE_FALSE(caller.set.outcome());
  // The proof must wait until the servers have pinged each other.
  for (int i = 0; i < 5 && !caller.set.outcome(); ++i) {
    caller.clock.Advance(caller.set.GetInterest().wake - caller.clock.Now());
    caller.Run();
  }
  caller.CheckHolds("/a");
  CHECK(caller.store.lease().SufficesToStart(caller.clock.Now()));
}

TEST_CASE("The contender that was taken is not given up, but the others always are") {
  AnyCaller caller;
  caller.Run();
  REQUIRE(caller.Held() == "/a");
  CHECK_FALSE(caller.set.GiveUp(caller.Own("/a").at(0)));
  CHECK(caller.set.GiveUp(caller.Own("/b").at(0)));
  caller.Run();
  caller.CheckHolds("/a");
}

TEST_CASE("A pool whose session expires long after an earlier loss looks for servers anew") {
  AnyCaller caller({.connect_timeout = 15s});
  for (const char* lock : kLocks) (void)caller.Occupy(lock);
  caller.Run();
  caller.store.Disconnect();
  caller.Run();
  caller.clock.Advance(1h);
  caller.store.Expire();
  caller.store.Connect();  // learns that the session has expired
  caller.set.OnReady(0);
  REQUIRE_FALSE(caller.set.outcome());
  caller.Run();
  CHECK_FALSE(caller.set.outcome());
  CHECK(caller.Own("/a").size() == 1);
}

TEST_CASE("A pool that was granted all LOCKs and then finds no server ends") {
  AnyCaller caller({.connect_timeout = 15s});
  caller.store.Connect();
  while (caller.store.Step()) {
  }
  caller.store.Disconnect();
  caller.set.OnReady(0);
  REQUIRE_FALSE(caller.set.outcome());
  caller.clock.Advance(30s);
  CHECK(caller.set.GetInterest().wake <= caller.clock.Now());
  caller.set.OnReady(0);
  CHECK(caller.Ended<Unreachable>());
}

TEST_CASE("A holder that has lost the lock still takes its other contenders out of their queues") {
  AnyCaller caller;
  caller.Run();
  caller.store.PlaceFault("delete /b/", Fault::kNotDone);
  Hold hold(caller.store, caller.clock, caller.set.tickets(), 5s, Ignore, caller.set.passed());
  while (caller.store.IsConnected()) caller.store.Step();
  caller.clock.Advance(30s);
  hold.OnReady(0);
  REQUIRE(hold.loss());
  caller.store.Run();
  CHECK(caller.Own("/b").empty());
  CHECK(caller.Own("/c").empty());
}

TEST_CASE("The wait of a pool ends for all queues together") {
  AnyCaller caller({.wait = 10s});
  for (const char* lock : kLocks) (void)caller.Occupy(lock);
  caller.Run();
  CHECK(caller.set.wait_end() == caller.clock.Now() + 10s);
  caller.clock.Advance(5s);
  caller.store.Expire();  // one wait limit covers all sessions
  caller.Run();
  caller.clock.Advance(4s);
  caller.Run();
  CHECK_FALSE(caller.set.outcome());
  caller.clock.Advance(1s);
  caller.Run();
  CHECK(caller.why() == Busy::Why::kWaitOver);
}

TEST_CASE(
    "The wait of a pool begins even if the connection is lost with the answer to its create") {
  AnyCaller caller({.wait = 10s});
  for (const char* lock : kLocks) (void)caller.Occupy(lock);
  caller.store.PlaceFault("create all", Fault::kAnsweredAndClosed);
  caller.Run();
  CHECK(caller.store.CountSent("create all") == 1);
  CHECK(caller.set.wait_end() == caller.clock.Now() + 10s);
  CHECK(caller.notes.queued == caller.Own("/c").at(0));
}

TEST_CASE("A pool leaves full queues, and ends only if all are full") {
  AnyCaller caller({.max_queue = 1});
  std::vector<std::string> holders;
  for (const char* lock : kLocks) {
    holders.push_back(caller.Occupy(lock));
    (void)caller.Occupy(lock);
  }
  SECTION("all") {
    caller.Run();
    CHECK(caller.why() == Busy::Why::kQueueFull);
    CHECK(caller.set.lock().path == "/a");
  }
  SECTION("all but one") {
    caller.servers.Remove(holders[1]);
    caller.Run();
    REQUIRE_FALSE(caller.set.outcome());
    CHECK(caller.Own("/a").empty());
    CHECK(caller.Own("/b").size() == 1);
    CHECK(caller.Own("/c").empty());
    REQUIRE(caller.notes.left.size() == 2);
    CHECK(caller.notes.left[1].lock == "/c");
    CHECK(caller.notes.left[1].why == QueueLeftEvent::Why::kQueueFull);
    CHECK(caller.notes.left[1].open == std::vector<std::string>{"/b"});
  }
}

TEST_CASE("A pool without a server ends after the connect timeout") {
  AnyCaller caller({.connect_timeout = 15s});
  caller.clock.Advance(14s);
  caller.set.OnReady(0);
  CHECK_FALSE(caller.set.outcome());
  caller.clock.Advance(1s);
  CHECK(caller.set.GetInterest().wake <= caller.clock.Now());
  caller.set.OnReady(0);
  CHECK(caller.Ended<Unreachable>());
}

// ---- a `try` ---------------------------------------------------------------------------------

struct Trier : CallerOf<AcquireSet> {
  Trier() : CallerOf(AcquireRequest{.try_only = true}, AcquireSet::Take::kFirstFree) {}
};

TEST_CASE("try --any takes the first LOCK that is free, and queues in no other") {
  Trier caller;
  (void)caller.Occupy("/a");
  caller.Run();
  CHECK(caller.Held() == "/b");
  CHECK(caller.Own("/a").empty());
  CHECK(caller.Own("/c").empty());
}

TEST_CASE("try --any leaves a queue in which another contender was first") {
  Trier caller;
  caller.store.Before("create", [&] { (void)caller.Occupy("/a"); });
  caller.Run();
  CHECK(caller.Held() == "/b");
  CHECK(caller.Own("/a").empty());
  CHECK(caller.set.passed().size() == 1);
}

TEST_CASE("try --any joins no queue that it could not leave") {
  Trier caller;
  caller.store.may_delete = false;
  caller.store.Before("create", [&] { (void)caller.Occupy("/a"); });
  caller.Run();
  REQUIRE(caller.Ended<Refused>());
  CHECK(std::get<Refused>(*caller.set.outcome()).right == std::string("DELETE"));
  for (const char* lock : kLocks) CHECK(caller.Own(lock).empty());
}

TEST_CASE("try --any does not wait for a pool to leave one of the LOCKs") {
  Trier caller;
  const std::string name = "/host-" + NextUuid() + "-lock-";
  (void)caller.servers.Put("/a" + name, 1, true, FormatContenderData({.any = {"/b"}}));
  (void)caller.servers.Put("/b" + name, 1, true, FormatContenderData({.any = {"/a"}}));
  caller.Run();
  CHECK(caller.Held() == "/c");
}

TEST_CASE("try --any ends if no LOCK is free") {
  Trier caller;
  for (const char* lock : kLocks) (void)caller.Occupy(lock);
  caller.Run();
  CHECK(caller.why() == Busy::Why::kTaken);
  CHECK(caller.set.tickets().empty());
}

/// A `try` of /a while a pool, which may withdraw, is first in the queues of /a and /b.
struct TrierBesidePool : World {
  struct How {
    bool joins_first = false;  ///< the `try` saw a free lock, and is creating its contender
    bool looks_again = true;
    std::vector<std::string> any{"/b"};  ///< the other LOCKs that the pool's contender in /a names
  };
  explicit TrierBesidePool(const How& how)
      : World(false),
        self(servers, clock,
             {.lock = {"/a", ""},
              .try_only = true,
              .looks_again = how.looks_again,
              .holds_for_us = [](protocol::Mode, const std::string&) { return false; },
              .connect_timeout = 5s}) {
    for (const char* path : kLocks) servers.Put(path, 0, false, "zklock/1");
    // Give the contenders of the pool different numbers.
    servers.Remove(servers.Put("/b/x-lock-", 1, true));
    const auto put_pool = [this, any = how.any] {
      const std::string name = "/host-00000000-0000-4000-8000-aaaaaaaaaaaa-lock-";
      pool = {servers.Put("/a" + name, 7, true, FormatContenderData({.any = any})),
              servers.Put("/b" + name, 7, true, FormatContenderData({.any = {"/a"}}))};
    };
    how.joins_first ? self.store.Before("create", put_pool) : put_pool();
    Run();
  }
  void Run() {
    do {
      self.store.Run();
      while (self.acquire.GetInterest().wake <= clock.Now()) self.acquire.OnReady(0);
    } while (self.store.Step());
  }
  void RunFor(Duration span) {
    for (const TimePoint end = clock.Now() + span; clock.Now() < end && !self.acquire.outcome();) {
      clock.Advance(10ms);
      Run();
    }
  }
  std::vector<std::string> pool;
  Contender self;
};

TEST_CASE("A try of one LOCK waits until a pool that is first there has withdrawn") {
  const bool joins_first = GENERATE(false, true);
  TrierBesidePool trier({.joins_first = joins_first});
  REQUIRE_FALSE(trier.self.acquire.outcome());
  CHECK_FALSE(trier.self.acquire.IsNearTurn());
  trier.servers.Remove(trier.pool[0]);
  // If the `try` has its contender, a watch wakes it.
  joins_first ? trier.Run() : trier.RunFor(1s);
  CHECK(trier.self.Holds());
}

TEST_CASE("A try of one LOCK ends once a pool that was first there has taken it") {
  TrierBesidePool trier({.joins_first = GENERATE(false, true)});
  REQUIRE_FALSE(trier.self.acquire.outcome());
  CHECK(trier.self.store.CountSent("list /b") == 1);
  trier.servers.Remove(trier.pool[1]);
  trier.RunFor(1s);
  CHECK(trier.self.why() == Busy::Why::kTaken);
}

TEST_CASE("A try of one LOCK does not wait forever for a pool that is in several queues") {
  TrierBesidePool trier({.joins_first = GENERATE(false, true)});
  trier.RunFor(4900ms);
  REQUIRE_FALSE(trier.self.acquire.outcome());
  CHECK(trier.self.store.CountSent("list /b") < 60);
  CHECK(trier.self.notes.waits.size() <= 1);
  trier.RunFor(1s);
  CHECK(trier.self.why() == Busy::Why::kTaken);
}

TEST_CASE("A try does not wait for a pool if it can take another LOCK, or is not the next") {
  CHECK(TrierBesidePool({.looks_again = false}).self.why() == Busy::Why::kTaken);
  TrierBesidePool trier({});
  REQUIRE_FALSE(trier.self.acquire.outcome());
  (void)trier.servers.Put("/a/other-lock-", 1, true);
  trier.RunFor(1s);
  CHECK(trier.self.why() == Busy::Why::kTaken);
}

TEST_CASE(
    "A try leaves although a contender claims to be in another queue, if that is not another "
    "LOCK") {
  for (const char* path : {"", "b", "/b/", "/zookeeper", "/b//c"}) {
    CAPTURE(path);
    const TrierBesidePool trier({.any = {path}});
    CHECK(trier.self.why() == Busy::Why::kTaken);
    const auto& log = trier.self.store.log();
    CHECK(std::count(log.begin(), log.end(), std::string("list ") + path) == 0);
  }
  for (const char* path : {"/a", "/c", "/missing"}) {
    CAPTURE(path);
    CHECK(TrierBesidePool({.any = {path}}).self.why() == Busy::Why::kTaken);
  }
}

}  // namespace
}  // namespace zklock::lock
