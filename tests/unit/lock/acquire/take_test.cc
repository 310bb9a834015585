#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lock/operations/contender_operations.h"
#include "lock/reserve/existing_reservations.h"
#include "lock/reserve/release_reservation.h"
#include "lock/several/acquire_set.h"
#include "unit/lock/reserver.h"

// Runs that take several permits of a semaphore: all of them or none.

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::Fault;
using test::kLosses;

std::vector<AcquireRequest> TakeRequests(std::size_t permits, std::size_t take, bool try_only) {
  return RequestsForPermit(
      {.lock = {"/l", ""}, .host = "host", .try_only = try_only, .permits = permits, .take = take});
}

/// Takes some of the permits of /l, and holds them as a run does.
struct Taker : SetContender {
  Taker(World& its_world, std::size_t permits, std::size_t take, bool try_only = false)
      : SetContender(its_world, TakeRequests(permits, take, try_only)) {}

  void Run() {
    do {
      SetContender::Run();
      if (!hold && Holds()) {
        hold.emplace(store, world.clock, set.tickets(), 5s, Ignore, set.passed());
      }
      // Serves the hold, as the loop of a run does, so that it watches its znodes.
      if (hold && hold->GetInterest().wake <= world.clock.Now()) hold->OnReady(0);
    } while (store.Step());
  }
  [[nodiscard]] bool HasLock() const { return hold && !hold->loss(); }
  [[nodiscard]] Ticket ticket() const { return set.tickets().front(); }
  void Leave() const { world.servers.EndSession(store.session_id()); }

  std::optional<Hold> hold;
};

/// A Taker that has run until nothing was left to do.
struct Taken : Taker {
  Taken(World& its_world, std::size_t permits, std::size_t take, bool try_only = false)
      : Taker(its_world, permits, take, try_only) {
    Run();
  }
};

std::vector<std::string> PermitsIn(const World& world) {
  return world.servers.Children("/l/leases");
}

/// Returns how many permits the session of `contender` has.
std::size_t PermitsOf(const World& world, const Taker& contender) {
  std::size_t count = 0;
  for (const std::string& child : PermitsIn(world)) {
    const auto& node = world.servers.nodes.at("/l/leases/" + child);
    if (node.owner == contender.store.session_id()) ++count;
  }
  return count;
}

bool HasCreated(const FakeStore& store) {
  const auto& log = store.log();
  return std::any_of(log.begin(), log.end(),
                     [](const auto& request) { return request.find("create") == 0; });
}

}  // namespace

TEST_CASE("A run takes its permits in one transaction, and its node is the lowest") {
  World world(GENERATE(true, false));
  Taken self(world, 4, 3);
  REQUIRE(self.HasLock());
  const std::vector<std::string> paths = self.ticket().paths();
  REQUIRE(paths.size() == 3);
  CHECK(std::is_sorted(paths.begin(), paths.end()));
  CHECK(PermitsIn(world).size() == 3);
  for (const std::string& path : paths) {
    CHECK(world.servers.nodes.at(path).czxid == self.ticket().token);
    CHECK(path.substr(0, path.size() - 10) == paths[0].substr(0, paths[0].size() - 10));
  }
  CHECK(world.servers.Children("/l/locks").empty());
}

TEST_CASE("A run does not enter a turnstile that it could not leave") {
  World world;
  world.servers.Put("/l/leases", 0);
  world.servers.Put("/l/locks", 0);
  const std::size_t take = GENERATE(1U, 2U);
  Taker self(world, 3, take, GENERATE(false, true));
  self.store.may_delete = false;
  self.Run();
  REQUIRE(self.Ended<Refused>());
  const auto& refused = std::get<Refused>(*self.set.outcome());
  CHECK(refused.right_path == "/l/locks");
  CHECK(refused.right == "DELETE");
  CHECK(world.servers.Children("/l/locks").empty());
  CHECK(PermitsIn(world).empty());
}

TEST_CASE("A run with --take 1 takes its permit like one without --take") {
  World world;
  const Taken taken(world, 2, 1);
  for (const std::string& request : taken.store.log()) {
    CHECK(request.find("create all /l/leases") != 0);
  }
}

TEST_CASE("A big request at the head is not overtaken by a small one that would fit") {
  World world;
  Taken first(world, 4, 2);
  Taken big(world, 4, 3);
  Taken small(world, 4, 1);
  Taken last(world, 4, 1);
  REQUIRE(first.HasLock());
  CHECK_FALSE(big.Holds());
  CHECK_FALSE(small.Holds());
  CHECK(PermitsOf(world, big) == 3);
  CHECK(PermitsOf(world, small) == 0);
  first.Leave();
  for (Taker* one : {&small, &last, static_cast<Taken*>(&big), &small, &last}) one->Run();
  CHECK(big.HasLock());
  CHECK(small.HasLock());
  CHECK_FALSE(last.Holds());
  big.Leave();
  last.Run();
  CHECK(last.HasLock());
}

TEST_CASE("A waiter counts all permits of a run, and takes its own once enough are free") {
  World world;
  Taken two(world, 6, 2);
  Taken three(world, 6, 3);
  Taken four(world, 6, 4);
  REQUIRE((two.HasLock() && three.HasLock()));
  CHECK_FALSE(four.Holds());
  two.Leave();
  four.Run();
  CHECK_FALSE(four.Holds());  // 3 + 4 are more than 6
  three.Leave();
  four.Run();
  CHECK(four.HasLock());
}

TEST_CASE("Whichever reply is lost, a run has all of its permits or none") {
  World plain;
  const Taken plain_other(plain, 4, 1);
  const Taken sample(plain, 4, 3);
  for (const Fault fault : kLosses) {
    for (std::size_t at = 0; at < sample.store.requests_sent(); ++at) {
      CAPTURE(static_cast<int>(fault), at);
      World world;
      const Taken other(world, 4, 1);
      Taker self(world, 4, 3);
      self.store.PlaceFault(at, fault);
      self.Run();
      if (self.hold && self.hold->loss()) {
        CHECK(PermitsOf(world, self) == 0);  // its session has expired
        continue;
      }
      CHECK(self.HasLock());
      CHECK(PermitsOf(world, self) == 3);
      CHECK(PermitsIn(world).size() == 4);
      CHECK(world.servers.Children("/l/locks").empty());
    }
  }
}

TEST_CASE("Permits from a repeated create are deleted, even if all permits are our own") {
  World world;
  world.servers.Put("/l/leases", 0);
  Taker self(world, 3, 3);
  // The first create is executed, but its znodes do not appear before the second create.
  self.store.PlaceFault("create all /l/leases", Fault::kReplyLost);
  std::vector<std::pair<std::string, FakeServers::Node>> late;
  self.store.Before("sync /l/leases", [&] {
    for (const std::string& child : PermitsIn(world)) {
      const std::string path = "/l/leases/" + child;
      late.emplace_back(path, world.servers.nodes.at(path));
      world.servers.nodes.erase(path);
    }
    self.store.Before("get /l/leases/", [&] {
      for (const auto& [path, node] : late) world.servers.nodes[path] = node;
    });
  });
  self.Run();
  REQUIRE(late.size() == 3);
  CHECK(self.HasLock());
  CHECK(PermitsIn(world).size() == 3);
}

TEST_CASE("A permit deleted while the reply to its create is lost costs the run its place") {
  World world;
  world.servers.Put("/l/leases", 0);
  Taker self(world, 4, 3);
  self.store.PlaceFault("create all /l/leases", Fault::kReplyLost);
  self.store.Before("sync /l/leases",
                    [&] { world.servers.Remove("/l/leases/" + PermitsIn(world).at(1)); });
  self.Run();
  REQUIRE(self.Ended<Busy>());
  CHECK(std::get<Busy>(*self.set.outcome()).why == Busy::Why::kRemoved);
}

TEST_CASE("A run that loses one of its permits loses the lock") {
  const std::size_t which = GENERATE(0U, 1U, 2U);
  World world;
  Taken holder(world, 4, 3);
  Taken waiter(world, 4, 3);
  REQUIRE(holder.HasLock());
  SECTION("while it holds them") {
    world.servers.Remove(holder.ticket().paths()[which]);
    holder.Run();
    CHECK(holder.hold->loss() == EndCause::kRemoved);
  }
  SECTION("while it waits") {
    const std::string queued = waiter.notes.queued;
    const auto permits = PermitsIn(world);
    world.servers.Remove("/l/leases/" + permits.at(3 + which));
    waiter.Run();
    CHECK(waiter.why() == Busy::Why::kRemoved);
  }
}

TEST_CASE("A loss of one permit that no watch has reported is found by the next heartbeat") {
  World world;
  Taken holder(world, 4, 3);
  REQUIRE(holder.HasLock());
  world.servers.nodes.erase(holder.ticket().paths().back());
  world.clock.Set(world.clock.Now() + 5s);
  holder.Run();
  CHECK(holder.hold->loss() == EndCause::kRemoved);
}

TEST_CASE("A release with a history deletes all permits in its transaction") {
  World world;
  world.servers.Put("/l/last-run", 0, false, "");
  Taken holder(world, 4, 3);
  REQUIRE(holder.HasLock());
  bool is_done = false;
  holder.hold->ReleaseWith(
      {"/l/last-run", "", 0}, holder.ticket().path, {},
      [&](const auto& reply) { is_done = reply.error == zookeeper::Error::kNone; });
  holder.store.Run();
  CHECK(is_done);
  CHECK(PermitsIn(world).empty());
}

// ---- a try ------------------------------------------------------------------------------------

TEST_CASE("A try that finds too few permits free creates nothing") {
  World world;
  const Taken holder(world, 4, 2);
  const Taken self(world, 4, 3, true);
  CHECK(self.why() == Busy::Why::kTaken);
  CHECK_FALSE(HasCreated(self.store));
  const Taken fits(world, 4, 2, true);
  CHECK(fits.HasLock());
}

TEST_CASE("A try leaves the turnstile when those before it take more permits than are left") {
  World world;
  Taken holder(world, 4, 1);
  // Until it has created its permits, others cannot know whether it takes one or four.
  Taker big(world, 4, 4);
  big.store.Before("create all /l/leases", [&] {
    Taken self(world, 4, 1, true);
    REQUIRE_FALSE(self.set.outcome());
    world.servers.Put("/l/leases/host-00000000-0000-4000-8000-999999999999-lease-", 7, true);
    world.servers.Put("/l/leases/host-00000000-0000-4000-8000-999999999999-lease-", 7, true);
    world.servers.Put("/l/leases/host-00000000-0000-4000-8000-999999999999-lease-", 7, true);
    self.Run();
    CHECK(self.why() == Busy::Why::kTaken);
  });
  big.Run();
}

// ---- others -----------------------------------------------------------------------------------

TEST_CASE("A forced deletion of one permit of a run deletes all of them") {
  World world;
  const Taken other(world, 6, 1);
  Taken holder(world, 6, 3);
  REQUIRE(holder.HasLock());
  test::FakeStore store(world.servers, world.clock);
  const std::string one = holder.ticket().paths()[GENERATE(0U, 1U, 2U)];
  SECTION("at once") {}
  SECTION("after a lost reply") { store.PlaceFault("delete /l/leases/", Fault::kReplyLost); }
  SECTION("although one of them is deleted meanwhile") {
    store.Before("delete /l/leases/",
                 [&] { world.servers.Remove(holder.ticket().paths().back()); });
  }
  CHECK(RunCalls(store, world.clock, [&](Calls& calls) {
    return DeleteContender(calls, {"/l/leases", ""}, {one});
  }));
  CHECK(PermitsOf(world, holder) == 0);
  CHECK(PermitsOf(world, other) == 1);
  holder.Run();
  CHECK(holder.hold->loss() == EndCause::kRemoved);
}

// ---- reservations -----------------------------------------------------------------------------

TEST_CASE("All permits of a run are reserved together, found again, and released together") {
  World world;
  const ReservedLock made = MakeReservation(world, "freeze", {.permits = 4, .take = 3});
  CHECK(made.more.size() == 2);
  CHECK(made.reserved.take == 3);
  CHECK(PermitsIn(world).size() == 3);
  JoinedReserver again(world, "freeze", {.permits = 4, .take = 3});
  REQUIRE(again.HasFound());
  CHECK(again.found.front().path == made.path);
  CHECK(again.found.front().more == made.more);
  JoinedReserver waiter(world, "", {.permits = 4, .take = 2});
  REQUIRE(waiter.Waits());
  test::FakeStore store(world.servers, world.clock);
  const auto fault =
      GENERATE(as<std::optional<Fault>>{}, std::nullopt, Fault::kReplyLost, Fault::kNotDone);
  if (fault) store.PlaceFault("delete /l/leases/", *fault);
  CHECK(RunCalls(store, world.clock, [&](Calls& calls) {
          return ReleaseReservation(calls, {"/l", ""}, made.path, "freeze");
        }).has_released);
  CHECK(PermitsIn(world).size() == 2);
  waiter.Run();
  CHECK(waiter.Holds());
}

TEST_CASE("A fault at any request reserves all permits of a run, or none") {
  World plain;
  JoinedReserver sample(plain, "freeze", {.permits = 4, .take = 3});
  REQUIRE(sample.HasReserved());
  for (const Fault fault : kLosses) {
    for (std::size_t at = 0; at < sample.store.requests_sent(); ++at) {
      CAPTURE(static_cast<int>(fault), at);
      World world;
      Reserver reserver(world, "freeze", {.permits = 4, .take = 3});
      reserver.store.PlaceFault(at, fault);
      reserver.Run();
      reserver.Leave();
      const std::size_t left = PermitsIn(world).size();
      CHECK(left == (reserver.HasReserved() ? 3 : 0));
    }
  }
}

TEST_CASE("A waiter deletes all permits of a reservation that has ended") {
  World world;
  (void)MakeReservation(world, "freeze", {.permits = 4, .take = 3, .lasts = 60s});
  JoinedReserver waiter(world, "", {.permits = 4, .take = 2});
  waiter.Pass(50s);
  REQUIRE(waiter.Waits());
  waiter.Pass(11s);
  CHECK(waiter.Holds());
  CHECK(PermitsIn(world).size() == 2);
}

TEST_CASE("A reservation that has lost a permit has ended, for waiters and for its ID") {
  World world;
  const ReservedLock made = MakeReservation(world, "freeze", {.permits = 4, .take = 3});
  const bool is_waiting = GENERATE(false, true);
  const bool loses_first = GENERATE(false, true);
  const std::string id = GENERATE(as<std::string>{}, "", "freeze");
  if (is_waiting && !id.empty()) return;
  const std::string gone = loses_first ? made.path : made.more.back();
  Reserver other(world, id, {.permits = 4, .take = 3});
  if (is_waiting) other.Run();
  world.servers.Remove(gone);
  test::FakeStore store(world.servers, world.clock);
  CHECK_FALSE(RunCalls(store, world.clock, [&](Calls& calls) {
    return FindHeldReservation(calls, {"/l", ""}, "freeze");
  }));
  other.Run();
  other.Pass(1s);
  CHECK_FALSE(other.Waits());
  CHECK_FALSE(other.HasFound());
  CHECK(PermitsIn(world).size() == 3);
  for (const std::string& path : made.more) CHECK_FALSE(world.servers.Has(path));
}

TEST_CASE("Nobody takes a znode with a forged name for one of a reservation's permits") {
  World world;
  const std::size_t take = GENERATE(1U, 3U);
  const ReservedLock made = MakeReservation(world, "freeze", {.permits = 5, .take = take});
  const std::string run = made.path.substr(0, made.path.size() - 10);
  // Anyone with CREATE permission can do this.
  const std::string number = GENERATE("-000000005", "0000000009");
  const protocol::ReservationRequest request{.id = "freeze", .lasts = 1ms};
  const std::string forged = world.servers.Put(
      run + number, 0, false, FormatReservation(GENERATE("{}", "{\"take\": 3}"), request, 1));
  world.clock.Set(world.clock.Now() + 1s);
  world.servers.now_ms += 1000;
  test::FakeStore store(world.servers, world.clock);
  const auto left = [&] {
    return world.servers.Has(made.path) &&
           std::all_of(made.more.begin(), made.more.end(),
                       [&](const auto& path) { return world.servers.Has(path); });
  };

  SECTION("for a waiter it is a reservation of its own, and ends alone") {
    JoinedReserver waiter(world, "", {.permits = 5, .take = 5});
    REQUIRE(waiter.Waits());
    waiter.Pass(60s);
    CHECK(waiter.Waits());
    CHECK_FALSE(world.servers.Has(forged));
    CHECK(left());
  }
  SECTION("the reservation is found by its ID") {
    const auto found = RunCalls(store, world.clock, [&](Calls& calls) {
      return FindHeldReservation(calls, {"/l", ""}, "freeze");
    });
    REQUIRE(found);
    CHECK(found->path == made.path);
    CHECK(found->more == made.more);
    JoinedReserver again(world, "freeze", {.permits = 5, .take = take});
    REQUIRE(again.HasFound());
    CHECK(again.found.front().path == made.path);
    CHECK(again.found.front().more == made.more);
  }
  SECTION("deleting it deletes nothing else") {
    CHECK(RunCalls(store, world.clock, [&](Calls& calls) {
      return DeleteContender(calls, {"/l/leases", ""}, {forged});
    }));
    CHECK_FALSE(world.servers.Has(forged));
    CHECK(left());
  }
}

TEST_CASE("A reservation that is made while its permits are read has not lost any") {
  World world;
  Taken first(world, 4, 1);  // creates the znodes below LOCK
  const std::string name = "/l/leases/host-00000000-0000-4000-8000-999999999999-reserve-lease-";
  std::vector<std::string> paths;
  const std::int64_t czxid = world.servers.zxid + 1;
  for (int i = 0; i < 3; ++i) {
    paths.push_back(
        world.servers.Put(name, 77, true, R"({"mode":"exclusive","reserve":"freeze","take":3})"));
    world.servers.nodes.at(paths.back()).czxid = czxid;
  }
  const std::string id = GENERATE(as<std::string>{}, "", "freeze");
  // `other` waits after this contender in the turnstile, and so does not watch the permits. No
  // zklock is ahead of it.
  world.servers.Put("/l/locks/_c_00000000-0000-4000-8000-888888888888-lock-", 78, true);
  Reserver other(world, id, {.permits = 4, .take = 3});
  other.store.Before("get " + paths[1], [&] {
    const std::int64_t made = world.servers.zxid + 10;
    for (const std::string& path : paths) {
      const std::string data = world.servers.nodes.at(path).data;
      world.servers.Remove(path);
      world.servers.Put(path, 0, false, FormatReservation(data, {.id = "freeze"}, czxid));
      world.servers.nodes.at(path).czxid = made;
    }
    first.Leave();
  });
  other.Run();
  other.Pass(60s);
  for (const std::string& path : paths) CHECK(world.servers.Has(path));
  CHECK(other.Waits() == id.empty());
  CHECK(other.HasFound() == !id.empty());
  if (!id.empty()) CHECK(other.found.front().more.size() == 2);
}

TEST_CASE("The queue position of a waiting run counts runs, not permits") {
  World world;
  const Taken holder(world, 10, 8);
  const Taken waiter(world, 10, 4);
  REQUIRE_FALSE(waiter.notes.waits.empty());
  CHECK(waiter.notes.waits.back() == std::pair(Name(holder.ticket().path), std::size_t{1}));
}

TEST_CASE("A waiting run that loses its permits reads each of them once") {
  World world;
  const Taken holder(world, 10, 8);
  Taken waiter(world, 10, 4);
  REQUIRE_FALSE(waiter.set.outcome());
  const auto reads = [&] {
    const auto& log = waiter.store.log();
    return std::count_if(log.begin(), log.end(),
                         [](const auto& request) { return request.find("get /l/leases/") == 0; });
  };
  const auto before = reads();
  for (const std::string& child : PermitsIn(world)) {
    const std::string path = "/l/leases/" + child;
    if (world.servers.nodes.at(path).owner == waiter.store.session_id()) world.servers.Remove(path);
  }
  waiter.Run();
  CHECK(waiter.why() == Busy::Why::kRemoved);
  CHECK(reads() - before <= 4);
}

TEST_CASE("Permits from a lost create are deleted although another client has deleted one") {
  World world;
  Taker self(world, 10, 3);
  std::vector<std::string> strays;
  // The list that follows the create.
  World plain;
  const auto log = Taken(plain, 10, 3).store.log();
  const auto list = std::find(log.rbegin(), log.rend(), "list /l/leases");
  REQUIRE(list != log.rend());
  self.store.Before(static_cast<std::size_t>(log.rend() - list) - 1, [&] {
    const std::string own = "/l/leases/" + PermitsIn(world).at(0);
    for (int i = 0; i < 3; ++i) {
      strays.push_back(
          world.servers.Put(own.substr(0, own.size() - 10), self.store.session_id(), true));
    }
  });
  self.store.Before("delete /l/leases/", [&] { world.servers.Remove(strays.front()); });
  self.Run();
  REQUIRE(self.HasLock());
  REQUIRE(strays.size() == 3);
  CHECK(PermitsOf(world, self) == 3);
}

TEST_CASE("A reservation can only be used with its original number of permits") {
  World world;
  const ReservedLock made = MakeReservation(world, "freeze", {.permits = 4, .take = 3});
  test::FakeStore store(world.servers, world.clock);
  const auto other_use = [&](std::size_t take) {
    return RunCalls(store, world.clock, [&](Calls& calls) {
      return FindOtherUse(calls, made, Mode::kExclusive, 4, take);
    });
  };
  CHECK_FALSE(other_use(3));
  const auto unusable = other_use(2);
  REQUIRE(unusable);
  CHECK(unusable->why == Unusable::Why::kReservedWithOtherTake);
  CHECK(unusable->permits == 3);
}

TEST_CASE("A renewal writes to all permits, and a reservation that lacks one counts as ended") {
  World world;
  const ReservedLock made =
      MakeReservation(world, "freeze", {.permits = 4, .take = 3, .lasts = 60s});
  test::FakeStore store(world.servers, world.clock);
  const auto renew = [&] {
    return RunCalls(store, world.clock, [&](Calls& calls) {
      return RenewReservations(calls, {made}, {.lasts = 300s, .reason = "", .label = ""});
    });
  };
  REQUIRE(renew());
  const std::string data = world.servers.nodes.at(made.path).data;
  CHECK(data.find("\"for\":300000") != std::string::npos);
  for (const std::string& path : made.more) CHECK(world.servers.nodes.at(path).data == data);
  const Ticket ticket{.lock = made.lock,
                      .path = made.path,
                      .more = made.more,
                      .token = made.reserved.reservation.token};
  const auto outlived = [&] {
    return RunCalls(store, world.clock,
                    [&](Calls& calls) { return FindOutlived(calls, {ticket}); });
  };
  CHECK(outlived().empty());
  world.servers.Remove(made.more.front());
  CHECK(outlived().size() == 1);
  CHECK_FALSE(renew());
}

}  // namespace zklock::lock
