
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lock/several/acquire_set.h"
#include "unit/lock/contender.h"

// Semaphores: passing the turnstile to get a permit, and leaving the turnstile.

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::Fault;
using test::kLosses;

const std::string kCuratorPermit = "_c_0123abcd-0123-4123-8123-0123456789ab-lease-";

std::vector<AcquireRequest> PermitRequests(std::size_t permits, bool try_only) {
  return RequestsForPermit(
      {.lock = {"/l", ""}, .host = "host", .data = "", .try_only = try_only, .permits = permits});
}

/// Acquires a permit of /l, and holds it as a run does.
struct Permit : SetContender {
  explicit Permit(World& its_world, std::size_t permits = 2, bool try_only = false)
      : SetContender(its_world, PermitRequests(permits, try_only)) {}

  /// Runs until nothing is left to do without advancing the clock.
  void Run() {
    do {
      store.Run();
      if (hold) continue;
      while (set.GetInterest().wake <= world.clock.Now()) set.OnReady(0);
      if (Holds()) {
        hold.emplace(store, world.clock, set.tickets(), 5s, Ignore, set.passed());
      }
    } while (store.Step());
  }
  [[nodiscard]] bool IsRefused() const { return Ended<Unusable>(); }
  /// Ends the session, as a run does at its end, whatever the outcome.
  void Leave() const { world.servers.EndSession(store.session_id()); }

  std::optional<Hold> hold;
};

/// A Permit that has run until nothing was left to do.
struct JoinedPermit : Permit {
  explicit JoinedPermit(World& its_world, std::size_t permits = 2, bool try_only = false)
      : Permit(its_world, permits, try_only) {
    Run();
  }
};

std::size_t CountPermits(const World& world) { return world.servers.Children("/l/leases").size(); }
std::size_t InTurnstile(const World& world) { return world.servers.Children("/l/locks").size(); }

TEST_CASE(
    "A run queues for a permit in the turnstile, with the options of its wait, and then takes it") {
  const auto requests = RequestsForPermit({.lock = {"/l", ""},
                                           .host = "host",
                                           .data = "data",
                                           .wait = 7s,
                                           .max_queue = 3,
                                           .permits = 2,
                                           .connect_timeout = 9s});
  REQUIRE(requests.size() == 2);
  CHECK(requests[0].QueuePath() == "/l/locks");
  CHECK_FALSE(requests[0].permits);
  CHECK_FALSE(requests[0].passes);
  CHECK(requests[0].max_queue == 3U);
  CHECK(requests[1].QueuePath() == "/l/leases");
  CHECK(requests[1].permits == 2U);
  for (const AcquireRequest& request : requests) {
    CHECK(request.wait == Duration(7s));
    CHECK(request.host == "host");
    CHECK(request.data == "data");
    CHECK(request.connect_timeout == Duration(9s));
  }
}

TEST_CASE("A try queues in the turnstile for a limited time, and leaves if no permit is left") {
  const auto requests = RequestsForPermit(
      {.lock = {"/l", ""}, .try_only = true, .wait = 0s, .max_queue = 0, .permits = 2});
  REQUIRE(requests.size() == 2);
  CHECK_FALSE(requests[0].try_only);
  CHECK(requests[0].wait == Duration(5s));
  CHECK_FALSE(requests[0].max_queue);
  CHECK(requests[0].passes);
  CHECK(requests[1].try_only);
}

TEST_CASE("A permit is a child of `leases`, and its holder leaves the turnstile") {
  World world(GENERATE(true, false));
  JoinedPermit self(world, 1);
  REQUIRE(self.Holds());
  REQUIRE(self.set.tickets().size() == 1);
  CHECK(self.set.tickets().front().path.find("/l/leases/host-") == 0);
  CHECK(CountPermits(world) == 1);
  CHECK(InTurnstile(world) == 0);
  CHECK(world.servers.nodes.at("/l/leases").data == "1");
}

TEST_CASE("The holder of a permit leaves the turnstile though the delete or its reply is lost") {
  World world;
  Permit self(world);
  self.store.PlaceFault("delete /l/locks/", GENERATE(Fault::kNotDone, Fault::kReplyLost));
  self.Run();
  CHECK(self.Holds());
  CHECK_FALSE(self.hold->loss());
  CHECK(InTurnstile(world) == 0);
  CHECK(CountPermits(world) == 1);
}

TEST_CASE("As many contenders hold as there are permits, and the next one waits for any of them") {
  const std::size_t permits = GENERATE(1U, 2U, 3U);
  World world;
  std::vector<std::unique_ptr<Permit>> all;
  for (std::size_t i = 0; i < permits + 3; ++i) {
    all.push_back(std::make_unique<Permit>(world, permits));
    all.back()->Run();
    CHECK(all.back()->Holds() == (i < permits));
  }
  // Only one waiter at a time is past the turnstile without holding a permit.
  CHECK(CountPermits(world) == permits + 1);
  CHECK(InTurnstile(world) == 3);
  // Any holder may leave; here the second-to-last to get a permit does.
  for (std::size_t next = permits; next < all.size(); ++next) {
    all[next >= 2 ? next - 2 : 0]->Leave();
    if (next >= 2 && permits == 1) all[next - 1]->Leave();
    for (const auto& permit : all) permit->Run();
    REQUIRE(all[next]->Holds());
    if (next + 1 < all.size()) CHECK_FALSE(all[next + 1]->Holds());
  }
}

TEST_CASE("A permit is taken after a heartbeat, not with a lease in hand") {
  // The heartbeat comes before the last look at the number of permits.
  World world;
  JoinedPermit holder(world, 1);
  JoinedPermit waiter(world, 1);
  REQUIRE(holder.Holds());
  REQUIRE_FALSE(waiter.Holds());
  REQUIRE(waiter.store.lease().IsInHand(world.clock.Now()));
  bool held_before = true;
  waiter.store.Before("check ", [&] { held_before = waiter.Holds(); });
  holder.Leave();
  waiter.Run();
  CHECK(waiter.Holds());
  CHECK_FALSE(held_before);
}

// ---- a try ----------------------------------------------------------------------------------

/// Contenders of another session in /l: some have a permit, some are in the turnstile. The first in
/// the turnstile may have created its permit already.
struct Others {
  Others(World& its_world, std::size_t with_permit, std::size_t in_turnstile, bool first_has_permit)
      : world(its_world) {
    world.servers.Put("/l/leases", 0);
    world.servers.Put("/l/locks", 0);
    for (std::size_t i = 0; i < with_permit; ++i) CreatePermit();
    for (std::size_t i = 0; i < in_turnstile; ++i) {
      places.push_back(world.servers.Put("/l/locks/other-lock-", 7, true));
    }
    if (first_has_permit) CreatePermit();
  }
  void CreatePermit() const { world.servers.Put("/l/leases/other-lease-", 7, true); }
  void LeaveTurnstile() {
    world.servers.Remove(places.front());
    places.erase(places.begin());
  }

  World& world;
  std::vector<std::string> places;
};

bool HasLeft(const Permit& permit) { return permit.why() == Busy::Why::kTaken; }

TEST_CASE("A try gets the last permit although the holder of another is still in the turnstile") {
  World world;
  Others others(world, 0, 1, true);
  JoinedPermit self(world, 2, true);
  CHECK_FALSE(self.set.outcome());
  CHECK(InTurnstile(world) == 2);
  others.LeaveTurnstile();
  self.Run();
  CHECK(self.Holds());
}

TEST_CASE("A try creates nothing when all permits are taken") {
  World world;
  const Others others(world, 2, GENERATE(0U, 1U), GENERATE(false, true));
  JoinedPermit self(world, 2, true);
  CHECK(HasLeft(self));
  for (const std::string& request : self.store.log()) CHECK(request.find("create") != 0);
}

TEST_CASE("A try leaves at once when those before it in the turnstile take all permits") {
  World world;
  const bool first_has_permit = GENERATE(false, true);
  const Others others(world, 1, first_has_permit ? 2 : 3, first_has_permit);
  JoinedPermit self(world, 3, true);
  CHECK(HasLeft(self));
}

TEST_CASE("A try after a contender that stays in the turnstile reports the permits as taken") {
  World world;
  for (const char* path : {"/l/locks", "/l/leases"}) world.servers.Put(path, 0);
  world.servers.Put("/l/locks/_c_0123abcd-0123-4123-8123-0123456789ab-lock-", 7, true);
  JoinedPermit self(world, 2, true);
  REQUIRE_FALSE(self.set.outcome());
  world.clock.Advance(5s);
  self.Run();
  CHECK(HasLeft(self));
}

TEST_CASE("A try that leaves the turnstile after the last permit was taken creates no permit") {
  World world;
  Others others(world, 1, 2, false);
  JoinedPermit self(world, 3, true);
  REQUIRE_FALSE(self.set.outcome());
  for (int i = 0; i < 2; ++i) {
    others.CreatePermit();
    others.LeaveTurnstile();
  }
  self.Run();
  CHECK(HasLeft(self));
  CHECK(CountPermits(world) == 3);
}

TEST_CASE("A try counts correctly while others take their permits") {
  World plain;
  const Others sample_others(plain, 1, 3, false);
  JoinedPermit sample(plain, 5, true);
  REQUIRE_FALSE(sample.set.outcome());
  for (std::size_t at = 0; at < sample.store.requests_sent(); ++at) {
    CAPTURE(at);
    World world;
    Others others(world, 1, 3, false);
    Permit self(world, 5, true);
    self.store.Before(at, [&] {
      for (int i = 0; i < 2; ++i) {
        others.CreatePermit();
        others.LeaveTurnstile();
      }
    });
    self.Run();
    CHECK_FALSE(self.set.outcome());
    others.LeaveTurnstile();
    self.Run();
    CHECK(self.Holds());
  }
}

// ---- lost replies ---------------------------------------------------------------------------

TEST_CASE("A permit is acquired although any one request, or its reply, is lost") {
  World plain;
  JoinedPermit sample(plain);
  const std::size_t requests = sample.store.requests_sent();
  for (const Fault fault : kLosses) {
    for (std::size_t at = 0; at < requests - 1; ++at) {
      CAPTURE(static_cast<int>(fault), at);
      World world;
      JoinedPermit other(world);
      Permit self(world);
      self.store.PlaceFault(at, fault);
      self.Run();
      if (self.hold && self.hold->loss()) continue;  // its session expired while it held
      CHECK(self.Holds());
      CHECK(CountPermits(world) == 2);
      CHECK(InTurnstile(world) == 0);
    }
  }
}

// ---- the number of permits ------------------------------------------------------------------

TEST_CASE("Another number of permits is refused while one is held, and written when none is") {
  World world;
  JoinedPermit first(world, 2);
  REQUIRE(first.Holds());
  JoinedPermit other(world, 3);
  REQUIRE(other.IsRefused());
  CHECK(std::get<Unusable>(*other.set.outcome()).permits == 2);
  CHECK(world.servers.nodes.at("/l/leases").data == "2");
  other.Leave();
  first.Leave();
  JoinedPermit later(world, 3);
  CHECK(later.Holds());
  CHECK(world.servers.nodes.at("/l/leases").data == "3");
}

TEST_CASE("Another number is refused at once, though all permits are taken and others wait") {
  const bool try_only = GENERATE(false, true);
  const std::size_t taken = GENERATE(1U, 2U);
  const std::size_t waiting = GENERATE(0U, 1U, 2U);
  const std::size_t number = GENERATE(1U, 2U, 3U);
  if (number == taken) return;
  CAPTURE(try_only, taken, waiting, number);
  World world;
  std::vector<std::unique_ptr<Permit>> all;
  for (std::size_t i = 0; i < taken + waiting; ++i) {
    all.push_back(std::make_unique<Permit>(world, taken));
    all.back()->Run();
  }
  JoinedPermit other(world, number, try_only);
  REQUIRE(other.IsRefused());
  const auto& refused = std::get<Unusable>(*other.set.outcome());
  CHECK(refused.why == Unusable::Why::kOtherPermits);
  CHECK(refused.permits == taken);
  if (!try_only || number > taken) return;
  for (const std::string& request : other.store.log()) CHECK(request.find("create") != 0);
}

TEST_CASE("Another number is refused at once with --max-queue 0") {
  World world;
  std::vector<std::unique_ptr<Permit>> all;
  for (int i = 0; i < 3; ++i) {
    all.push_back(std::make_unique<Permit>(world, 2));
    all.back()->Run();
  }
  SetContender other(
      world, RequestsForPermit({.lock = {"/l", ""}, .host = "host", .max_queue = 0, .permits = 3}));
  other.Run();
  REQUIRE(other.Ended<Unusable>());
  CHECK(std::get<Unusable>(*other.set.outcome()).permits == 2);
}

TEST_CASE("Contenders that only pass the turnstile do not fill the queue") {
  World world;
  const std::size_t take = GENERATE(1U, 2U);
  const std::size_t max_queue = GENERATE(0U, 1U, 2U, 3U);
  Others others(world, 1, 2, GENERATE(false, true));
  SetContender self(world, RequestsForPermit({.lock = {"/l", ""},
                                              .host = "host",
                                              .max_queue = max_queue,
                                              .permits = 3 + take,
                                              .take = take}));
  self.Run();
  if (CountPermits(world) < 2) others.CreatePermit();
  self.Run();
  CHECK(InTurnstile(world) == 3);
  others.LeaveTurnstile();
  others.CreatePermit();
  self.Run();
  REQUIRE_FALSE(self.set.outcome());
  SECTION("and pass it") {
    others.LeaveTurnstile();
    self.Run();
    CHECK(self.Holds());
  }
  SECTION("unless one of them takes the last permit") {
    others.CreatePermit();
    self.Run();
    CHECK(self.why() == (max_queue > 0 ? std::nullopt : std::optional(Busy::Why::kQueueFull)));
  }
}

TEST_CASE(
    "The queue is full once a contender waits ahead, even if there were no permits at first") {
  World world;
  world.servers.Put("/l/locks", 0);
  const std::string first = world.servers.Put("/l/locks/other-lock-", 7, true);
  world.servers.Put("/l/locks/other-lock-", 7, true);
  const std::size_t max_queue = GENERATE(0U, 1U, 2U);
  SetContender self(
      world, RequestsForPermit(
                 {.lock = {"/l", ""}, .host = "host", .max_queue = max_queue, .permits = 3}));
  self.Run();
  REQUIRE_FALSE(self.set.outcome());
  // The first takes two of the three permits, and the second wants two.
  world.servers.Put("/l/leases", 0);
  for (int i = 0; i < 2; ++i) world.servers.Put("/l/leases/other-lease-", 7, true);
  world.servers.Remove(first);
  for (int i = 0; i < 2; ++i) world.servers.Put("/l/leases/other-lease-", 7, true);
  self.Run();
  CHECK(self.why() == (max_queue > 1 ? std::nullopt : std::optional(Busy::Why::kQueueFull)));
}

TEST_CASE("A waiter learns of another number when the first in the turnstile takes a permit") {
  World world;
  const Others others(world, 1, 1, false);
  world.servers.Write("/l/leases", "2");
  JoinedPermit self(world, 3);
  // The only permit may belong to the first in the turnstile, which may be about to write 3.
  REQUIRE_FALSE(self.set.outcome());
  others.CreatePermit();
  self.Run();
  CHECK(self.IsRefused());
}

TEST_CASE("Another number is refused whenever another contender joins while a permit is held") {
  const bool try_only = GENERATE(false, true);
  const auto put = [](World& world) {
    auto holder = std::make_unique<Permit>(world, 1);
    holder->Run();
    return holder;
  };
  World plain;
  const auto sample_holder = put(plain);
  JoinedPermit sample(plain, 3, try_only);
  REQUIRE(sample.IsRefused());
  for (std::size_t at = 0; at < sample.store.requests_sent(); ++at) {
    CAPTURE(try_only, at);
    World world;
    const auto holder = put(world);
    Permit self(world, 3, try_only);
    std::optional<Permit> waiter;
    self.store.Before(at, [&] {
      waiter.emplace(world, 1);
      waiter->Run();
    });
    do {
      self.Run();
      if (waiter) waiter->Run();
    } while (self.store.Step());
    CHECK(self.IsRefused());
    CHECK_FALSE(waiter->set.outcome());
  }
}

TEST_CASE("The same number is never refused while another contender replaces an old one") {
  const bool try_only = GENERATE(false, true);
  const std::size_t permits = GENERATE(1U, 2U);
  const auto put = [](World& world) {
    world.servers.Put("/l/locks", 0);
    world.servers.Put("/l/leases", 0, false, "7");
  };
  World plain;
  put(plain);
  JoinedPermit sample(plain, permits);
  for (std::size_t at = 0; at < sample.store.requests_sent(); ++at) {
    CAPTURE(try_only, permits, at);
    World world;
    put(world);
    Permit first(world, permits);
    std::optional<Permit> second;
    first.store.Before(at, [&] {
      second.emplace(world, permits, try_only);
      second->Run();
    });
    do {
      first.Run();
      second->Run();
    } while (first.store.Step());
    CHECK_FALSE((first.IsRefused() || second->IsRefused()));
    CHECK((first.Holds() || second->Holds()));
    CHECK(world.servers.nodes.at("/l/leases").data == std::to_string(permits));
  }
}

TEST_CASE("Another number is refused though a reply was lost") {
  World plain;
  JoinedPermit sample(plain, 3);
  const auto fault = GENERATE(from_range(kLosses));
  for (std::size_t at = 0; at < sample.store.requests_sent(); ++at) {
    CAPTURE(static_cast<int>(fault), at);
    World world;
    JoinedPermit first(world, 2);
    Permit other(world, 3);
    other.store.PlaceFault(at, fault);
    other.Run();
    CHECK(other.IsRefused());
  }
}

TEST_CASE("A missing number of permits is written before a permit is taken") {
  World world;
  world.servers.Put("/l/leases", 0, false, GENERATE(as<std::string>{}, "", "many", "2 ", "-2"));
  // Curator does not write the number of permits.
  const bool beside_curator = GENERATE(false, true);
  if (beside_curator) world.servers.Put("/l/leases/" + kCuratorPermit, 7, true);
  JoinedPermit self(world, 2);
  REQUIRE(self.Holds());
  CHECK(world.servers.nodes.at("/l/leases").data == "2");
  JoinedPermit other(world, 3);
  REQUIRE(other.IsRefused());
  CHECK(std::get<Unusable>(*other.set.outcome()).why == Unusable::Why::kOtherPermits);
}

TEST_CASE("While a zklock holds a permit and the number is unknown, others are refused") {
  World world;
  JoinedPermit first(world, 2);
  REQUIRE(first.Holds());
  world.servers.Write("/l/leases", GENERATE(as<std::string>{}, "", "many"));
  JoinedPermit other(world, GENERATE(2U, 3U));
  REQUIRE(other.IsRefused());
  CHECK(std::get<Unusable>(*other.set.outcome()).why == Unusable::Why::kUnknownPermits);
}

TEST_CASE(
    "Runs with different numbers of permits never hold together, whenever the second arrives") {
  const bool beside_curator = GENERATE(false, true);
  const auto data = GENERATE(as<std::string>{}, "", "many", "2", "3");
  const auto put = [&](World& world) {
    world.servers.Put("/l/leases", 0, false, data);
    if (beside_curator) world.servers.Put("/l/leases/" + kCuratorPermit, 7, true);
  };
  World plain;
  put(plain);
  JoinedPermit sample(plain, 2);
  for (std::size_t at = 0; at < sample.store.requests_sent(); ++at) {
    CAPTURE(beside_curator, data, at);
    World world;
    put(world);
    Permit self(world, 2);
    std::optional<Permit> other;
    self.store.Before(at, [&] {
      other.emplace(world, 3);
      other->Run();
    });
    do {
      self.Run();
      other->Run();
    } while (self.store.Step());
    CHECK_FALSE((self.Holds() && other->Holds()));
    CHECK((self.Holds() || other->Holds() || beside_curator));
  }
}

TEST_CASE("The number is written though a request or its reply is lost") {
  World plain;
  plain.servers.Put("/l/leases", 0);
  JoinedPermit sample(plain, 2);
  const auto fault = GENERATE(Fault::kNotDone, Fault::kReplyLost);
  for (std::size_t at = 0; at + 1 < sample.store.requests_sent(); ++at) {
    CAPTURE(static_cast<int>(fault), at);
    World world;
    world.servers.Put("/l/leases", 0);
    Permit self(world, 2);
    self.store.PlaceFault(at, fault);
    self.Run();
    CHECK(self.Holds());
    CHECK(world.servers.nodes.at("/l/leases").data == "2");
  }
}

TEST_CASE("The number is written although another client writes before any request") {
  World plain;
  plain.servers.Put("/l/leases", 0);
  JoinedPermit sample(plain, 2);
  const std::string other = GENERATE("", "many", "3");
  // The last request leaves the turnstile, when the permit is already held.
  for (std::size_t at = 0; at + 1 < sample.store.requests_sent(); ++at) {
    CAPTURE(other, at);
    World world;
    world.servers.Put("/l/leases", 0);
    Permit self(world, 2);
    self.store.Before(at, [&] { world.servers.Write("/l/leases", other); });
    self.Run();
    CHECK(self.Holds());
    CHECK(world.servers.nodes.at("/l/leases").data == "2");
  }
}

TEST_CASE("A permit is refused if the number cannot be written") {
  World world;
  world.servers.Put("/l/leases", 0);
  Permit self(world, 2);
  self.store.Refuse("set /l/leases", zookeeper::Error::kNoAuth);
  self.Run();
  REQUIRE(self.set.outcome());
  const auto* refused = std::get_if<Refused>(&*self.set.outcome());
  REQUIRE(refused != nullptr);
  CHECK(refused->right == "WRITE");
  CHECK(refused->right_path == "/l/leases");
}

// ---- contenders without permits -------------------------------------------------------------

TEST_CASE(
    "A plain contender that arrives at any moment never holds the lock while a permit is held") {
  World plain;
  JoinedPermit sample(plain);
  for (std::size_t at = 0; at < sample.store.requests_sent(); ++at) {
    const bool try_only = GENERATE(true, false);
    CAPTURE(at, try_only);
    World world;
    Permit self(world);
    std::unique_ptr<Contender> other;
    self.store.Before(at, [&] {
      other = std::make_unique<Contender>(world.servers, world.clock,
                                          AcquireRequest{.try_only = try_only});
      other->store.Run();
    });
    self.Run();
    REQUIRE(other);
    CHECK((self.IsRefused() || other->Ended<Unusable>()));
    CHECK_FALSE((self.Holds() && other->Holds()));
  }
}

TEST_CASE("A permit requested at any moment is never held while a plain contender holds the lock") {
  const bool try_only = GENERATE(true, false);
  World plain;
  plain.servers.Put("/l/leases", 0);
  plain.servers.Put("/l/locks", 0);
  Joined sample(plain, {.try_only = try_only});
  REQUIRE(sample.Holds());
  for (std::size_t at = 0; at < sample.store.requests_sent(); ++at) {
    CAPTURE(at, try_only);
    World world;
    world.servers.Put("/l/leases", 0);
    world.servers.Put("/l/locks", 0);
    Contender self(world, {.try_only = try_only});
    std::unique_ptr<Permit> other;
    self.store.Before(at, [&] {
      other = std::make_unique<Permit>(world);
      other->Run();
    });
    self.store.Run();
    REQUIRE(other);
    CHECK_FALSE((self.Holds() && other->Holds()));
  }
}

TEST_CASE(
    "A LOCK with a single-znode lock or a kazoo permit grants no permit, unless no session owns "
    "it") {
  const bool ephemeral = GENERATE(true, false);
  const bool try_only = GENERATE(true, false);
  const std::string name =
      GENERATE("lock", "0123456789abcdef0123456789abcdef", "0123456789abcdef01234a0000000000");
  CAPTURE(ephemeral, try_only, name);
  World world;
  world.servers.Put("/l/" + name, ephemeral ? 7 : 0);
  JoinedPermit self(world, 2, try_only);
  CHECK(self.IsRefused() == ephemeral);
  CHECK(self.Holds() == !ephemeral);
  CHECK(world.servers.Children("/l").size() == (ephemeral ? 1 : 3));
}

TEST_CASE(
    "A permit is refused while a plain contender is queued though the reply to its create was "
    "lost") {
  World world;
  Permit self(world);
  bool put = false;
  self.store.Before("create /l/leases/", [&] {
    world.servers.Put("/l/other-lock-", 7, true);
    put = true;
  });
  self.store.PlaceFault("create /l/leases/", Fault::kReplyLost);
  self.Run();
  CHECK(put);
  CHECK(self.IsRefused());
}

}  // namespace
}  // namespace zklock::lock
