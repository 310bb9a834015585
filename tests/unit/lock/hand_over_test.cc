#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "protocol/release_record.h"
#include "unit/lock/contender.h"

// From hand to hand by the record in LOCK's data, without a list.

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::Fault;

using Words = std::vector<std::string>;

/// What it asked from the request `begin` on.
Words AskedSince(const Contender& contender, std::size_t begin) {
  const auto& log = contender.store.log();
  return {log.begin() + static_cast<std::ptrdiff_t>(begin), log.end()};
}

std::string Name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::optional<protocol::ReleaseRecord> RecordIn(const World& world) {
  const auto data = protocol::ParseLockData(world.servers.nodes.at("/l").data);
  return data ? data->last_release : std::nullopt;
}

/// As if this contender of somebody's had let go while it held.
void PutRecord(World& world, const std::string& path, Mode mode = Mode::kExclusive) {
  world.servers.Write("/l", protocol::FormatLockData({protocol::ReleaseRecord{
                                .contender = Name(path), .mode = mode, .token = 1, .host = "h"}}));
}

// ---- what LOCK's data says ------------------------------------------------------------------

TEST_CASE("A LOCK that zklock makes is marked as its own, the znodes above it are not") {
  World world(false);
  world.servers.knows_containers = GENERATE(true, false);
  Contender self(world.servers, world.clock, Mode::kExclusive, false, std::nullopt, "/a/b/c");
  self.store.Run();
  REQUIRE(self.Holds());
  CHECK(world.servers.nodes.at("/a/b/c").data == "zklock/1");
  CHECK(world.servers.nodes.at("/a/b").data.empty());
  CHECK(world.servers.nodes.at("/a").data.empty());
  CHECK(self.ticket().lock_version == 0);
}

TEST_CASE("A release leaves a record, with the end of the contender") {
  World world;
  const auto mode = GENERATE(Mode::kExclusive, Mode::kWrite, Mode::kRead);
  Contender self(world.servers, world.clock, mode);
  self.store.Run();
  REQUIRE(self.Holds());
  self.Release(world.servers);
  CHECK(RecordIn(world) == protocol::ReleaseRecord{.contender = Name(self.ticket().path),
                                                   .mode = mode,
                                                   .token = self.ticket().token,
                                                   .ran = 1500ms,
                                                   .status = 3,
                                                   .host = "host"});
  CHECK(world.servers.Children("/l").empty());
}

TEST_CASE("Data of somebody else's in LOCK is left alone, and the queue goes on by lists") {
  const std::string data = GENERATE("", "127.0.0.1", "zklock/2 something new", "zklock/1 x");
  World world(true, data);
  Contender holder(world.servers, world.clock);
  holder.store.Run();
  Contender next(world.servers, world.clock);
  next.store.Run();
  REQUIRE(holder.Holds());
  const std::size_t before = next.store.requests_sent();
  holder.Release(world.servers);
  CHECK(world.servers.nodes.at("/l").data == data);
  next.store.Run();
  REQUIRE(next.Holds());
  CHECK(AskedSince(next, before) == Words{"list /l", "check " + next.ticket().path, "get /l"});
  next.Release(world.servers);
  CHECK(world.servers.nodes.at("/l").data == data);
}

TEST_CASE("Data that somebody writes into LOCK while it is held is left alone") {
  World world;
  Contender holder(world.servers, world.clock);
  holder.store.Run();
  Contender next(world.servers, world.clock);
  next.store.Run();
  world.servers.Write("/l", "mine");
  holder.Release(world.servers);
  CHECK(world.servers.nodes.at("/l").data == "mine");
  next.store.Run();
  CHECK(next.Holds());
}

TEST_CASE("A try that finds the lock busy creates nothing, and writes nothing") {
  World world;
  Contender holder(world.servers, world.clock);
  holder.store.Run();
  Contender busy(world.servers, world.clock, Mode::kExclusive, true);
  busy.store.Run();
  REQUIRE(busy.Ended<Busy>());
  for (const std::string& asked : busy.store.log()) {
    CHECK((asked.starts_with("sync ") || asked.starts_with("list ") || asked.starts_with("get ")));
  }
}

// ---- the hand-over --------------------------------------------------------------------------

TEST_CASE("The next holds by a heartbeat and a look at LOCK, and nobody else does anything") {
  World world;
  Contender holder(world.servers, world.clock);
  holder.store.Run();
  std::vector<std::unique_ptr<Contender>> waiters;
  for (int i = 0; i < 20; ++i) {
    waiters.push_back(std::make_unique<Contender>(world.servers, world.clock));
    waiters.back()->store.Run();
    CHECK(waiters.back()->notes.waits.back().second == static_cast<std::size_t>(i) + 1);
  }
  Contender* last = &holder;
  for (const auto& next : waiters) {
    std::vector<std::size_t> before;
    for (const auto& waiter : waiters) before.push_back(waiter->store.requests_sent());
    last->Release(world.servers);
    for (const auto& waiter : waiters) waiter->store.Run();
    REQUIRE(next->Holds());
    for (std::size_t i = 0; i < waiters.size(); ++i) {
      const Words asked = AskedSince(*waiters[i], before[i]);
      if (waiters[i] == next) {
        CHECK(asked == Words{"check " + next->ticket().path, "get /l"});
      } else if (waiters[i].get() != last) {
        CHECK(asked.empty());
      }
    }
    last = next.get();
  }
}

TEST_CASE("A reader goes on by the record of the writer before it, past readers in between") {
  World world;
  Contender writer(world.servers, world.clock, Mode::kWrite);
  writer.store.Run();
  Contender first(world.servers, world.clock, Mode::kRead);
  Contender second(world.servers, world.clock, Mode::kRead);
  first.store.Run();
  second.store.Run();
  REQUIRE_FALSE(second.acquire.outcome());
  const std::size_t before = second.store.requests_sent();
  writer.Release(world.servers);
  second.store.Run();
  first.store.Run();
  REQUIRE(first.Holds());
  REQUIRE(second.Holds());
  CHECK(AskedSince(second, before) == Words{"check " + second.ticket().path, "get /l"});
}

TEST_CASE("A reader's record says nothing to a writer: other readers may still hold") {
  World world;
  Contender first(world.servers, world.clock, Mode::kRead);
  Contender second(world.servers, world.clock, Mode::kRead);
  first.store.Run();
  second.store.Run();
  REQUIRE(second.Holds());
  const auto mode = GENERATE(Mode::kExclusive, Mode::kWrite);
  Contender self(world.servers, world.clock, mode);
  self.store.Run();
  second.Release(world.servers);
  REQUIRE(RecordIn(world)->contender == Name(second.ticket().path));
  self.store.Run();
  REQUIRE_FALSE(self.acquire.outcome());
  CHECK(self.notes.waits.back().first == Name(first.ticket().path));
  first.Release(world.servers);
  self.store.Run();
  CHECK(self.Holds());
}

TEST_CASE("Of readers that hold together the first to go leaves a record, and all let go") {
  World world;
  Contender first(world.servers, world.clock, Mode::kRead);
  Contender second(world.servers, world.clock, Mode::kRead);
  first.store.Run();
  second.store.Run();
  first.Release(world.servers);
  second.Release(world.servers);
  CHECK(RecordIn(world)->contender == Name(first.ticket().path));
  CHECK(world.servers.Children("/l").empty());
}

TEST_CASE("A record of somebody else's turn says nothing of a predecessor that gave up") {
  World world;
  Contender earlier(world.servers, world.clock);
  earlier.store.Run();
  Contender holder(world.servers, world.clock);
  holder.store.Run();
  earlier.Release(world.servers);
  holder.store.Run();
  REQUIRE(holder.Holds());
  REQUIRE(RecordIn(world));
  Contender waiter(world.servers, world.clock);
  waiter.store.Run();
  Contender self(world.servers, world.clock);
  self.store.Run();
  waiter.Leave(world.servers);  // it never held
  self.store.Run();
  REQUIRE_FALSE(self.acquire.outcome());
  CHECK(self.notes.waits.back() == std::pair(Name(holder.ticket().path), std::size_t{1}));
  holder.Release(world.servers);
  self.store.Run();
  CHECK(self.Holds());
}

TEST_CASE("The record of one further ahead than the predecessor settles nothing") {
  World world;
  Contender holder(world.servers, world.clock);
  holder.store.Run();
  Contender waiter(world.servers, world.clock);
  waiter.store.Run();
  Contender self(world.servers, world.clock);
  self.store.Run();
  // The waiter between takes its turn, and dies without a word.
  holder.Release(world.servers);
  waiter.store.Run();
  REQUIRE(waiter.Holds());
  waiter.Leave(world.servers);
  const std::size_t before = self.store.requests_sent();
  self.store.Run();
  REQUIRE(self.Holds());
  const Words asked = AskedSince(self, before);
  CHECK(std::find(asked.begin(), asked.end(), "list /l") != asked.end());
}

TEST_CASE("A predecessor that is only written to is waited for as before") {
  World world;
  const std::string predecessor = world.servers.Put("/l/other-lock-", 1, true);
  Contender self(world.servers, world.clock);
  self.store.Run();
  for (int i = 0; i < 3; ++i) {
    world.servers.Write(predecessor, "asked to leave");
    self.store.Run();
    REQUIRE_FALSE(self.acquire.outcome());
    CHECK(self.notes.waits.back().first == Name(predecessor));
  }
  PutRecord(world, predecessor);
  world.servers.Remove(predecessor);
  self.store.Run();
  CHECK(self.Holds());
}

TEST_CASE(
    "A predecessor that lets go between our list and our look at it is settled by its record") {
  World world;
  Contender holder(world.servers, world.clock);
  holder.store.Run();
  Contender self(world.servers, world.clock);
  // create, get, list, get own, get predecessor.
  self.store.Before(4, [&] { holder.Release(world.servers); });
  self.store.Run();
  REQUIRE(self.Holds());
  CHECK(AskedSince(self, 4) ==
        Words{"get " + holder.ticket().path, "check " + self.ticket().path, "get /l"});
}

// ---- what is lost ---------------------------------------------------------------------------

TEST_CASE("One fault at any request of the hand-over leaves one contender, which holds") {
  const auto fault = GENERATE(Fault::kNotDone, Fault::kReplyLost, Fault::kExpiredNotDone,
                              Fault::kExpiredReplyLost);
  const auto mode = GENERATE(Mode::kExclusive, Mode::kRead);
  for (std::size_t at = 0; at < 8; ++at) {
    CAPTURE(at, static_cast<int>(fault), static_cast<int>(mode));
    World world;
    Contender holder(world.servers, world.clock);
    holder.store.Run();
    Contender self(world.servers, world.clock, mode);
    self.store.Run();
    Contender behind(world.servers, world.clock);
    behind.store.Run();
    const std::size_t before = self.store.requests_sent();
    self.store.PlaceFault(before + at, fault);
    holder.Release(world.servers);
    self.store.Run();
    behind.store.Run();
    if (self.notes.places_lost == 0) {
      REQUIRE(self.Holds());
      REQUIRE_FALSE(behind.acquire.outcome());
      self.Release(world.servers);
      behind.store.Run();
    } else {
      // Its place is lost: the one behind goes first.
      REQUIRE(behind.Holds());
      REQUIRE_FALSE(self.acquire.outcome());
      behind.Release(world.servers);
      self.store.Run();
      REQUIRE(self.Holds());
      self.Release(world.servers);
    }
    CHECK(behind.Holds());
  }
}

TEST_CASE("A contender deleted before its heartbeat never holds, whatever the record says") {
  for (std::size_t at = 0; at < 2; ++at) {
    CAPTURE(at);
    World world;
    Contender holder(world.servers, world.clock);
    holder.store.Run();
    Contender self(world.servers, world.clock);
    self.store.Run();
    const std::size_t before = self.store.requests_sent();
    if (at == 0) world.servers.Remove(self.notes.queued);
    if (at == 1) {
      self.store.Before(before, [&] { world.servers.Remove(self.notes.queued); });
    }
    holder.Release(world.servers);
    self.store.Run();
    REQUIRE(self.Ended<Busy>());
    CHECK(self.why() == Busy::Why::kRemoved);
  }
}

TEST_CASE("A release of which a reply is lost is done whole or not at all") {
  const auto fault = GENERATE(Fault::kNotDone, Fault::kReplyLost);
  World world;
  Contender holder(world.servers, world.clock);
  holder.store.Run();
  Contender next(world.servers, world.clock);
  next.store.Run();
  holder.store.PlaceFault(holder.store.requests_sent(), fault);
  holder.Release(world.servers);
  CHECK(RecordIn(world).has_value() == (fault == Fault::kReplyLost));
  CHECK_FALSE(world.servers.Has(holder.ticket().path));
  next.store.Run();
  CHECK(next.Holds());
}

TEST_CASE("A waiter that was asleep when the record came does not start on a stale lease") {
  World world;
  Contender holder(world.servers, world.clock);
  holder.store.Run();
  Contender reader(world.servers, world.clock, Mode::kRead);
  Contender self(world.servers, world.clock, Mode::kRead);
  reader.store.Run();
  self.store.Run();
  holder.Release(world.servers);
  reader.store.Run();
  world.clock.Advance(29s);  // no reads: this process did not run
  self.store.Run();
  REQUIRE_FALSE(self.acquire.outcome());
  // What the record said is known, though another's stands there by now.
  reader.Release(world.servers);
  world.clock.Advance(7502ms);
  const std::size_t before = self.store.requests_sent();
  self.acquire.OnReady(0);
  self.store.Run();
  REQUIRE(self.Holds());
  CHECK(AskedSince(self, before) == Words{"check " + self.ticket().path, "get /l"});
}

}  // namespace
}  // namespace zklock::lock
