#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "protocol/release_record.h"
#include "unit/lock/contender.h"

// A lock handed over through the record in LOCK's data, without a list.

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::Fault;
using test::kLosses;

using Requests = std::vector<std::string>;

std::optional<protocol::ReleaseRecord> RecordIn(const World& world) {
  const auto data = protocol::ParseLockData(world.servers.nodes.at("/l").data);
  return data ? data->last_release : std::nullopt;
}

/// Writes the record that the contender at `path` leaves when it releases the lock.
void PutRecord(World& world, const std::string& path, Mode mode = Mode::kExclusive) {
  world.servers.Write("/l", protocol::FormatLockData({protocol::ReleaseRecord{
                                .contender = Name(path), .mode = mode, .token = 1, .host = "h"}}));
}

// ---- LOCK's data ----------------------------------------------------------------------------

TEST_CASE("zklock marks a LOCK that it creates, but not the znodes above it") {
  World world(false);
  world.servers.knows_containers = GENERATE(true, false);
  Joined self(world, {.lock = {"/a/b/c", ""}});
  REQUIRE(self.Holds());
  CHECK(world.servers.nodes.at("/a/b/c").data == "zklock/1");
  CHECK(world.servers.nodes.at("/a/b").data.empty());
  CHECK(world.servers.nodes.at("/a").data.empty());
  CHECK(self.ticket().lock_version == 0);
}

TEST_CASE("A release writes a record and deletes the contender") {
  World world;
  const auto mode = GENERATE(Mode::kExclusive, Mode::kWrite, Mode::kRead);
  Joined self(world, {.mode = mode});
  REQUIRE(self.Holds());
  self.Release(world.servers);
  CHECK(RecordIn(world) == protocol::ReleaseRecord{.contender = Name(self.ticket().path),
                                                   .mode = mode,
                                                   .token = self.ticket().token,
                                                   .duration = 1500ms,
                                                   .status = 3,
                                                   .host = "host"});
}

TEST_CASE(
    "Another program's data in LOCK is left alone, and the lock is handed over without a record") {
  const std::string data = GENERATE("", "127.0.0.1", "zklock/2 something new", "zklock/1 x");
  World world(true, data);
  Joined holder(world);
  Joined next(world);
  REQUIRE(holder.Holds());
  const std::size_t before = next.store.requests_sent();
  const bool in_hand = GENERATE(true, false);
  if (!in_hand) world.clock.Advance(kPastLeaseInHand);
  holder.Release(world.servers);
  CHECK(world.servers.nodes.at("/l").data == data);
  REQUIRE(next.RunToHold());
  const Requests asked = next.store.SentSince(before);
  CHECK(asked == (in_hand ? Requests{} : Requests{"check " + next.ticket().path, "get /l"}));
  next.Release(world.servers);
  CHECK(world.servers.nodes.at("/l").data == data);
}

TEST_CASE("Another program's data written into LOCK while it is held is left alone") {
  World world;
  Joined holder(world);
  Joined next(world);
  world.servers.Write("/l", "mine");
  holder.Release(world.servers);
  CHECK(world.servers.nodes.at("/l").data == "mine");
  CHECK(next.RunToHold());
}

TEST_CASE("A try that finds the lock busy creates nothing and writes nothing") {
  World world;
  Joined holder(world);
  Joined busy(world, {.try_only = true});
  REQUIRE(busy.Ended<Busy>());
  for (const std::string& asked : busy.store.log()) {
    CHECK((asked.starts_with("sync ") || asked.starts_with("list ") || asked.starts_with("get ")));
  }
}

// ---- the hand-over --------------------------------------------------------------------------

TEST_CASE(
    "The next waiter reads LOCK, with a heartbeat if its lease is old, and no other waiter sends "
    "anything") {
  World world;
  const bool in_hand = GENERATE(true, false);
  Joined holder(world);
  std::vector<std::unique_ptr<Contender>> waiters;
  for (int i = 0; i < 20; ++i) {
    waiters.push_back(std::make_unique<Contender>(world.servers, world.clock));
    waiters.back()->store.Run();
    CHECK(waiters.back()->notes.waits.back().second == static_cast<std::size_t>(i) + 1);
  }
  if (!in_hand) world.clock.Advance(kPastLeaseInHand);
  Contender* last = &holder;
  for (const auto& next : waiters) {
    std::vector<std::size_t> before;
    for (const auto& waiter : waiters) before.push_back(waiter->store.requests_sent());
    last->Release(world.servers);
    for (const auto& waiter : waiters) waiter->store.Run();
    REQUIRE(next->Holds());
    for (std::size_t i = 0; i < waiters.size(); ++i) {
      const Requests asked = waiters[i]->store.SentSince(before[i]);
      if (waiters[i] == next && in_hand) {
        // The first waiter knows from its list that only the holder is ahead of it.
        CHECK(asked == (i == 0 ? Requests{} : Requests{"get /l"}));
      } else if (waiters[i] == next) {
        CHECK(asked == Requests{"check " + next->ticket().path, "get /l"});
      } else if (waiters[i].get() != last) {
        CHECK(asked.empty());
      }
    }
    last = next.get();
  }
}

TEST_CASE("A reader takes the lock by the writer's record, past the readers in between") {
  World world;
  Joined writer(world, {.mode = Mode::kWrite});
  Contender first(world, {.mode = Mode::kRead});
  Contender second(world, {.mode = Mode::kRead});
  first.store.Run();
  REQUIRE(second.RunToWait());
  const std::size_t before = second.store.requests_sent();
  const bool in_hand = GENERATE(true, false);
  if (!in_hand) world.clock.Advance(kPastLeaseInHand);
  writer.Release(world.servers);
  second.store.Run();
  REQUIRE(first.RunToHold());
  REQUIRE(second.Holds());
  const Requests asked = second.store.SentSince(before);
  CHECK(asked == (in_hand ? Requests{} : Requests{"check " + second.ticket().path, "get /l"}));
}

TEST_CASE("A writer does not rely on a reader's record: other readers may still hold the lock") {
  World world;
  Contender first(world, {.mode = Mode::kRead});
  Contender second(world, {.mode = Mode::kRead});
  first.store.Run();
  REQUIRE(second.RunToHold());
  const auto mode = GENERATE(Mode::kExclusive, Mode::kWrite);
  Joined self(world, {.mode = mode});
  second.Release(world.servers);
  REQUIRE(RecordIn(world)->contender == Name(second.ticket().path));
  REQUIRE(self.RunToWait());
  CHECK(self.notes.waits.back().first == Name(first.ticket().path));
  first.Release(world.servers);
  CHECK(self.RunToHold());
}

TEST_CASE(
    "Of readers that hold the lock together, the first to release it leaves a record, and all "
    "release it") {
  World world;
  Contender first(world, {.mode = Mode::kRead});
  Contender second(world, {.mode = Mode::kRead});
  first.store.Run();
  second.store.Run();
  first.Release(world.servers);
  second.Release(world.servers);
  CHECK(RecordIn(world)->contender == Name(first.ticket().path));
}

TEST_CASE("An earlier holder's record does not count for a predecessor that gave up") {
  World world;
  Joined earlier(world);
  Joined holder(world);
  earlier.Release(world.servers);
  REQUIRE(holder.RunToHold());
  REQUIRE(RecordIn(world));
  Joined waiter(world);
  Joined self(world);
  waiter.Leave(world.servers);  // it never held
  REQUIRE(self.RunToWait());
  CHECK(self.notes.waits.back() == std::pair(Name(holder.ticket().path), std::size_t{1}));
  holder.Release(world.servers);
  CHECK(self.RunToHold());
}

TEST_CASE("The record of a contender before the predecessor settles nothing") {
  World world;
  Joined holder(world);
  Joined waiter(world);
  Joined self(world);
  // The waiter in between acquires the lock, and leaves without a record.
  holder.Release(world.servers);
  REQUIRE(waiter.RunToHold());
  waiter.Leave(world.servers);
  const std::size_t before = self.store.requests_sent();
  REQUIRE(self.RunToHold());
  const Requests asked = self.store.SentSince(before);
  CHECK(std::find(asked.begin(), asked.end(), "list /l") != asked.end());
}

TEST_CASE("A record that no contender in the queue wrote does not let a waiter pass the holder") {
  World world;
  Joined holder(world);
  Joined waiter(world);
  const std::string number = GENERATE("0000005000", "0000000001", "0000000000");
  PutRecord(world, "/l/host-11111111-1111-4111-8111-111111111111-lock-" + number);
  Joined self(world);
  // The waiter reads the record while it waits.
  world.clock.Advance(7502ms);
  self.acquire.OnReady(0);
  self.store.Run();
  waiter.Leave(world.servers);
  REQUIRE(self.RunToWait());
  CHECK(self.notes.waits.back().first == Name(holder.ticket().path));
}

TEST_CASE("A waiter keeps waiting for a predecessor that is only written to") {
  auto [world, predecessor, self] = BehindOther();
  for (int i = 0; i < 3; ++i) {
    world.servers.Write(predecessor, "asked to leave");
    REQUIRE(self.RunToWait());
    CHECK(self.notes.waits.back().first == Name(predecessor));
  }
  PutRecord(world, predecessor);
  world.servers.Remove(predecessor);
  CHECK(self.RunToHold());
}

TEST_CASE("A release between a waiter's list and its read of the holder hands the lock over") {
  World world;
  Joined holder(world);
  Contender self(world);
  const std::string read = "get " + holder.ticket().path;
  self.store.Before(read, [&] { holder.Release(world.servers); });
  REQUIRE(self.RunToHold());
  // The first four: create, get, list, get own.
  CHECK(self.store.SentSince(4) == Requests{read});
}

// ---- lost replies ---------------------------------------------------------------------------

TEST_CASE("One fault at any request of the hand-over leaves one contender, the holder") {
  const auto fault = GENERATE(from_range(kLosses));
  const auto mode = GENERATE(Mode::kExclusive, Mode::kRead);
  const bool in_hand = GENERATE(true, false);
  const bool knows_the_holder = GENERATE(true, false);
  for (std::size_t at = 0; at < 8; ++at) {
    CAPTURE(at, static_cast<int>(fault), static_cast<int>(mode), in_hand, knows_the_holder);
    World world;
    Joined first(world);
    Contender second(world);
    if (!knows_the_holder) second.store.Run();
    Joined self(world, {.mode = mode});
    Joined next(world);
    if (!in_hand) world.clock.Advance(kPastLeaseInHand);
    if (!knows_the_holder) {
      first.Release(world.servers);
      REQUIRE(second.RunToHold());
    }
    const std::size_t before = self.store.requests_sent();
    self.store.PlaceFault(before + at, fault);
    (knows_the_holder ? first : second).Release(world.servers);
    self.store.Run();
    next.store.Run();
    if (self.notes.places_lost == 0) {
      REQUIRE(self.Holds());
      REQUIRE_FALSE(next.acquire.outcome());
      self.Release(world.servers);
      next.store.Run();
    } else {
      // Its place is lost: the next waiter is now first.
      REQUIRE(next.Holds());
      REQUIRE_FALSE(self.acquire.outcome());
      next.Release(world.servers);
      REQUIRE(self.RunToHold());
      self.Release(world.servers);
    }
    CHECK(next.Holds());
  }
}

TEST_CASE("Two faults at requests of the hand-over leave one contender, the holder") {
  const auto first_fault = GENERATE(Fault::kNotDone, Fault::kReplyLost, Fault::kAnsweredAndClosed);
  const auto second_fault = GENERATE(Fault::kNotDone, Fault::kReplyLost, Fault::kExpiredReplyLost,
                                     Fault::kAnsweredAndClosed);
  const bool in_hand = GENERATE(true, false);
  const bool leaves_record = GENERATE(true, false);
  for (std::size_t at = 0; at < 6; ++at) {
    for (std::size_t more = 1; more <= 6; ++more) {
      CAPTURE(at, more, static_cast<int>(first_fault), static_cast<int>(second_fault));
      CAPTURE(in_hand, leaves_record);
      World world;
      Joined first(world);
      Joined second(world);
      Joined self(world);
      if (!in_hand) world.clock.Advance(kPastLeaseInHand);
      first.Release(world.servers);
      REQUIRE(second.RunToHold());
      const std::size_t before = self.store.requests_sent();
      self.store.PlaceFault(before + at, first_fault);
      self.store.PlaceFault(before + at + more, second_fault);
      leaves_record ? second.Release(world.servers) : second.Leave(world.servers);
      REQUIRE(self.RunToHold());
      CHECK(world.servers.Children("/l") == std::vector{Name(self.ticket().path)});
      CHECK(world.servers.nodes.at(self.ticket().path).owner == self.store.session_id());
    }
  }
}

TEST_CASE(
    "A contender deleted before its turn is proven never takes the lock, whatever the record "
    "says") {
  const bool in_hand = GENERATE(true, false);
  for (const bool while_confirming : {false, true}) {
    if (in_hand && while_confirming) continue;  // nothing to confirm: no heartbeat is sent
    CAPTURE(in_hand, while_confirming);
    World world;
    Joined holder(world);
    Joined self(world);
    if (!in_hand) world.clock.Advance(kPastLeaseInHand);
    const auto remove = [&] { world.servers.Remove(self.notes.queued); };
    while_confirming ? self.store.Before("check ", remove) : remove();
    holder.Release(world.servers);
    self.store.Run();
    CHECK(self.why() == Busy::Why::kRemoved);
  }
}

TEST_CASE("A release whose reply is lost is executed as a whole or not at all") {
  const auto fault = GENERATE(Fault::kNotDone, Fault::kReplyLost);
  World world;
  Joined holder(world);
  Joined next(world);
  holder.store.PlaceFault("write /l, delete ", fault);
  holder.Release(world.servers);
  CHECK(RecordIn(world).has_value() == (fault == Fault::kReplyLost));
  CHECK(next.RunToHold());
}

TEST_CASE(
    "A waiter that was suspended when the record was written does not take the lock with a "
    "stale lease") {
  World world;
  Joined holder(world);
  Contender reader(world, {.mode = Mode::kRead});
  Contender self(world, {.mode = Mode::kRead});
  reader.store.Run();
  self.store.Run();
  holder.Release(world.servers);
  reader.store.Run();
  world.clock.Advance(29s);  // no reads: this process was suspended
  REQUIRE(self.RunToWait());
  // It has read the record, but another release replaces that record before its turn.
  reader.Release(world.servers);
  world.clock.Advance(7502ms);
  const std::size_t before = self.store.requests_sent();
  self.acquire.OnReady(0);
  REQUIRE(self.RunToHold());
  CHECK(self.store.SentSince(before) == Requests{"check " + self.ticket().path, "get /l"});
}

}  // namespace
}  // namespace zklock::lock
