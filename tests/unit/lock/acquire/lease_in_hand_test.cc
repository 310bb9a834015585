#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lock/several/acquire_set.h"
#include "protocol/release_record.h"
#include "unit/lock/contender.h"

// A turn that is taken without a commit, because the waiter has a lease in hand.

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::Fault;

using Requests = std::vector<std::string>;

std::size_t Commits(const Requests& requests) {
  return static_cast<std::size_t>(
      std::count_if(requests.begin(), requests.end(), [](const std::string& request) {
        return request.starts_with("check ") || request.starts_with("create ") ||
               request.starts_with("write ") || request.starts_with("set ");
      }));
}

/// Lets `span` pass as an event loop would; the servers answer at once.
void Pass(Contender& contender, Duration span) {
  const TimePoint end = contender.clock.Now() + span;
  for (;;) {
    contender.store.Run();
    const TimePoint wake = contender.acquire.GetInterest().wake;
    if (contender.acquire.outcome()) return;
    if (wake > end) break;
    contender.clock.Set(std::max(wake, contender.clock.Now()));
    contender.acquire.OnReady(0);
  }
  contender.clock.Set(std::max(end, contender.clock.Now()));
}

/// Returns LOCK's data after the contender at `path` has released the lock.
std::string RecordOf(const std::string& path) {
  return protocol::FormatLockData(
      {protocol::ReleaseRecord{.contender = Name(path), .token = 1, .host = "h"}});
}

std::optional<std::string> RecordedIn(const World& world) {
  const auto data = protocol::ParseLockData(world.servers.nodes.at("/l").data);
  if (!data || !data->last_release) return std::nullopt;
  return data->last_release->contender;
}

/// A queue of contenders on its own servers: the first holds, the others wait.
struct QueueOf {
  explicit QueueOf(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) Join();
  }
  Contender& Join(AcquireRequest request = {}) {
    all.push_back(std::make_unique<Contender>(world.servers, world.clock, std::move(request)));
    all.back()->store.Run();
    return *all.back();
  }
  Contender& operator[](std::size_t index) { return *all.at(index); }
  /// Makes the holder `from` release the lock, which `to` acquires. Returns `to`.
  Contender& HandOver(std::size_t from, std::size_t to) {
    (*this)[from].Release(world.servers);
    (*this)[to].store.Run();
    REQUIRE((*this)[to].Holds());
    return (*this)[to];
  }

  World world;
  std::vector<std::unique_ptr<Contender>> all;
};

// ---- the turn -------------------------------------------------------------------------------

TEST_CASE("A waiter with a lease in hand takes its turn when the known holder is deleted") {
  QueueOf queue(2);
  Contender& self = queue[1];
  const std::size_t before = self.store.requests_sent();
  SECTION("with a record") { queue[0].Release(queue.world.servers); }
  SECTION("without a record") { queue[0].Leave(queue.world.servers); }
  REQUIRE(self.RunToHold());
  CHECK(self.store.SentSince(before).empty());
  CHECK(*self.store.lease().End() - queue.world.clock.Now() > 12500ms);
}

TEST_CASE("A lease that ends too soon needs a heartbeat at the turn") {
  for (const auto& [waited, in_hand] :
       std::vector<std::pair<Duration, bool>>{{16250ms - 1ns, true}, {16250ms, false}}) {
    QueueOf queue(2);
    Contender& self = queue[1];
    queue.world.clock.Advance(waited);
    const std::size_t before = self.store.requests_sent();
    queue[0].Release(queue.world.servers);
    REQUIRE(self.RunToHold());
    CHECK(Commits(self.store.SentSince(before)) == (in_hand ? 0 : 1));
  }
}

TEST_CASE("A lease that runs short while LOCK is read needs a heartbeat") {
  QueueOf queue(3);
  queue.HandOver(0, 1);
  Contender& self = queue[2];
  const std::size_t before = self.store.requests_sent();
  // The process is suspended before the answer arrives.
  self.store.Before("get /l", [&] { queue.world.clock.Advance(kPastLeaseInHand); });
  queue[1].Release(queue.world.servers);
  REQUIRE(self.RunToHold());
  CHECK(Commits(self.store.SentSince(before)) == 1);
}

TEST_CASE("A predecessor that is written to still holds the lock") {
  QueueOf queue(2);
  Contender& self = queue[1];
  for (int i = 0; i < 3; ++i) {
    queue.world.servers.Write(queue[0].ticket().path, "asked to release");
    REQUIRE(self.RunToWait());
  }
  queue[0].Release(queue.world.servers);
  CHECK(self.RunToHold());
}

TEST_CASE("A predecessor that is written to and immediately deleted is gone") {
  QueueOf queue(2);
  Contender& self = queue[1];
  queue.world.servers.Write(queue[0].ticket().path, "asked to release");
  queue[0].Release(queue.world.servers);
  CHECK(self.RunToHold());
}

TEST_CASE("A waiter that is deleted just before its predecessor never takes the lock") {
  QueueOf queue(3);
  Contender& self = queue[GENERATE(1U, 2U)];
  queue.world.servers.Remove(self.notes.queued);
  queue[0].Release(queue.world.servers);
  queue[1].store.Run();
  if (queue[1].Holds()) queue[1].Release(queue.world.servers);
  self.store.Run();
  CHECK(self.why() == Busy::Why::kRemoved);
}

TEST_CASE("A waiter whose own watch is not known to be set needs a heartbeat") {
  QueueOf queue(2);
  Contender& self = queue[1];
  const std::size_t before = self.store.requests_sent();
  queue.world.servers.Write(self.notes.queued, "a label");
  REQUIRE(self.store.Step());  // the event; the answer to the read is outstanding
  queue[0].Release(queue.world.servers);
  const bool deleted = GENERATE(false, true);
  if (deleted) queue.world.servers.Remove(self.notes.queued);
  self.store.Run();
  CHECK(self.Holds() == !deleted);
  CHECK(Commits(self.store.SentSince(before)) == 1);
}

TEST_CASE("A waiter whose predecessor is another program's needs a list at its turn") {
  // A Curator contender that is deleted may leave behind a reader with the same number.
  World world;
  const std::string writer = world.servers.Put("/l/_c_1-__WRIT__", 1, true);
  Joined self(world, {.mode = Mode::kWrite});
  const std::size_t before = self.store.requests_sent();
  const bool downgraded = GENERATE(false, true);
  if (downgraded) world.servers.Put("/l/_c_1-__READ__0000000000", 1);
  world.servers.Remove(writer);
  self.store.Run();
  CHECK(self.store.SentSince(before).front() == "list /l");
  CHECK(Commits(self.store.SentSince(before)) == 0);
  CHECK(self.Holds() == !downgraded);
}

TEST_CASE("A waiter after readers takes the lock by a list, without a commit") {
  QueueOf queue(0);
  Contender& first = queue.Join({.mode = Mode::kRead});
  Contender& second = queue.Join({.mode = Mode::kRead});
  Contender& self = queue.Join({.mode = Mode::kWrite});
  const std::size_t before = self.store.requests_sent();
  second.Release(queue.world.servers);
  REQUIRE(self.RunToWait());
  first.Release(queue.world.servers);
  REQUIRE(self.RunToHold());
  CHECK(Commits(self.store.SentSince(before)) == 0);
}

TEST_CASE("A waiter that gives up does not give anyone a turn, whatever the last record says") {
  QueueOf queue(4);
  queue.HandOver(0, 1);
  Contender& self = queue[3];
  const bool has_read_record = GENERATE(false, true);
  if (has_read_record) {
    Pass(self, 8s);
    REQUIRE(RecordedIn(queue.world) == Name(queue[0].ticket().path));
  }
  queue[2].Leave(queue.world.servers);
  self.store.Run();
  REQUIRE(queue[1].Holds());
  REQUIRE_FALSE(self.acquire.outcome());
  queue[1].Release(queue.world.servers);
  CHECK(self.RunToHold());
}

TEST_CASE("A fault while LOCK or the list is read leaves one contender, the holder") {
  const auto fault = GENERATE(Fault::kNotDone, Fault::kReplyLost, Fault::kExpiredNotDone,
                              Fault::kExpiredReplyLost, Fault::kAnsweredAndClosed);
  const std::string request = GENERATE("get /l", "list /l");
  CAPTURE(static_cast<int>(fault), request);
  QueueOf queue(3);
  Contender& self = queue[2];
  queue.HandOver(0, 1);
  self.store.PlaceFault(request, fault);
  // Without a record, the list decides.
  queue[1].Leave(queue.world.servers);
  REQUIRE(self.RunToHold());
  CHECK(queue.world.servers.Children("/l") == std::vector{Name(self.ticket().path)});
  CHECK(queue.world.servers.nodes.at(self.ticket().path).owner == self.store.session_id());
}

TEST_CASE("A waiter holds despite a fault at its turn, and a shorter session timeout after it") {
  const auto fault = GENERATE(Fault::kNotDone, Fault::kReplyLost, Fault::kAnsweredAndClosed);
  const std::string request = GENERATE("get /l", "list /l", "check ");
  const bool in_hand = GENERATE(true, false);
  const Duration granted = std::chrono::seconds(GENERATE(4, 8));
  CAPTURE(static_cast<int>(fault), request, in_hand, granted.count());
  QueueOf queue(3);
  Contender& self = queue[2];
  queue.HandOver(0, 1);
  if (!in_hand) queue.world.clock.Advance(kPastLeaseInHand);
  self.store.SetGranted(granted);
  const bool is_sent = !in_hand || request != "check ";
  if (is_sent) self.store.PlaceFault(request, fault);
  queue[1].Leave(queue.world.servers);  // without a record, so the list is read, too
  Pass(self, 60s);
  REQUIRE(self.Holds());
  CHECK(self.store.lease().timeout() == (is_sent ? granted : 30s));
  CHECK(self.store.lease().SufficesToStart(queue.world.clock.Now()));
  CHECK(queue.world.servers.Children("/l") == std::vector{Name(self.ticket().path)});
}

TEST_CASE(
    "A waiter whose session expires before its turn does not take the lock, though its lease "
    "seemed in hand") {
  QueueOf queue(2);
  Contender& self = queue[1];
  // The servers break their promise and end the session; the connection is lost as well.
  self.store.Expire();
  queue[0].Release(queue.world.servers);
  REQUIRE_FALSE(self.acquire.outcome());
  REQUIRE(self.RunToHold());
  CHECK(self.notes.places_lost == 1);
}

TEST_CASE("After a reconnect nothing is taken for granted before a heartbeat is answered") {
  QueueOf queue(2);
  Contender& self = queue[1];
  self.store.Disconnect();
  queue[0].Release(queue.world.servers);
  const bool deleted = GENERATE(false, true);
  if (deleted) queue.world.servers.Remove(self.notes.queued);
  self.store.Run();
  CHECK(self.Holds() == !deleted);
}

TEST_CASE("A server that shortens the session timeout takes the lease in hand away") {
  QueueOf queue(2);
  Contender& self = queue[1];
  queue.world.clock.Advance(3s);
  self.store.SetGranted(4s);
  self.store.Disconnect();
  self.store.Run();
  queue.world.clock.Advance(2200ms);
  const std::size_t before = self.store.requests_sent();
  queue[0].Release(queue.world.servers);
  CHECK(self.RunToWait());  // a heartbeat is not enough either
  CHECK(Commits(self.store.SentSince(before)) > 0);
}

// ---- the next in line -----------------------------------------------------------------------

TEST_CASE("The next in line sends a heartbeat every quarter of T, and takes its turn without one") {
  QueueOf queue(2);
  Contender& self = queue[1];
  const std::size_t before = self.store.requests_sent();
  Pass(self, 1h + 4s);
  const Requests waiting = self.store.SentSince(before);
  CHECK(waiting.size() == 600);  // with every fourth heartbeat, it looks for its predecessor
  CHECK(Commits(waiting) == 480);
  queue[0].Release(queue.world.servers);
  REQUIRE(self.RunToHold());
  CHECK(self.store.SentSince(before).size() == 600);
}

TEST_CASE("Only the next in line sends heartbeats, all others read LOCK") {
  QueueOf queue(3);
  Contender& self = queue[2];
  const std::size_t before = self.store.requests_sent();
  Pass(self, 31s);
  const std::string look = "exists " + queue[1].notes.queued;
  const Requests sent = self.store.SentSince(before);
  CHECK(std::count(sent.begin(), sent.end(), "get /l") == 4);
  CHECK(std::count(sent.begin(), sent.end(), look) == 1);
  CHECK(sent.size() == 5);
}

TEST_CASE("A waiter that is not notified of a deletion finds it when it next looks") {
  const bool is_next = GENERATE(true, false);
  QueueOf queue(3);
  Contender& self = queue[is_next ? 1 : 2];
  self.store.LoseWatches();
  queue[0].Release(queue.world.servers);
  if (!is_next) queue[1].Leave(queue.world.servers);
  CHECK(self.RunToWait());
  Pass(self, 31s);
  CHECK(self.RunToHold());
}

TEST_CASE("A waiter for a simple lock that is not notified of its deletion finds it, too") {
  const AcquireRequest simple = {
      .lock = {"/l", ""}, .dialect = protocol::Dialect::kSimple, .host = "host", .data = ""};
  QueueOf queue(0);
  Contender& holder = queue.Join(simple);
  Contender& self = queue.Join(simple);
  self.store.LoseWatches();
  holder.Release(queue.world.servers);
  CHECK(self.RunToWait());
  Pass(self, 31s);
  CHECK(self.RunToHold());
}

TEST_CASE("Only the first of the readers that wait together is next in line") {
  QueueOf queue(0);
  queue.Join({.mode = Mode::kWrite});
  for (int i = 0; i < 3; ++i) {
    Contender& reader = queue.Join({.mode = Mode::kRead});
    const std::size_t before = reader.store.requests_sent();
    Pass(reader, 8s);
    CHECK(Commits(reader.store.SentSince(before)) == (i == 0 ? 1 : 0));
  }
}

TEST_CASE("A waiter learns from the record that it is next, and gets a lease at once") {
  QueueOf queue(3);
  Contender& self = queue[2];
  Pass(self, 61s);
  queue.world.servers.Write("/l", RecordOf(queue[0].ticket().path));
  queue.world.servers.Remove(queue[0].ticket().path);
  const std::size_t before = self.store.requests_sent();
  Pass(self, 7500ms);
  const std::string heartbeat = "check " + self.notes.queued;
  CHECK(self.store.SentSince(before) == Requests{"get /l", heartbeat});
  queue.world.servers.Remove(queue[1].notes.queued);
  REQUIRE(self.RunToHold());
  CHECK(self.store.SentSince(before) == Requests{"get /l", heartbeat});
}

TEST_CASE("A waiter that learns from a list that it is next gets a lease at once") {
  QueueOf queue(0);
  queue.world.servers.Write("/l", "mine");  // there will be no record
  for (int i = 0; i < 3; ++i) queue.Join();
  Contender& self = queue[2];
  Pass(self, 61s);
  const std::size_t before = self.store.requests_sent();
  queue[1].Leave(queue.world.servers);
  REQUIRE(self.RunToWait());
  const Requests sent = self.store.SentSince(before);
  CHECK(std::count(sent.begin(), sent.end(), "check " + self.notes.queued) == 1);
  queue[0].Release(queue.world.servers);
  CHECK(self.RunToHold());
  CHECK(Commits(self.store.SentSince(before)) == 1);
}

TEST_CASE("The next in line leaves if its heartbeat finds no contender") {
  QueueOf queue(2);
  Contender& self = queue[1];
  self.store.Before("check ", [&] { queue.world.servers.Remove(self.notes.queued); });
  Pass(self, 8s);
  CHECK(self.why() == Busy::Why::kRemoved);
}

TEST_CASE("A fault at a heartbeat of the next in line leaves one contender, the holder") {
  const auto fault = GENERATE(Fault::kNotDone, Fault::kReplyLost, Fault::kExpiredNotDone,
                              Fault::kExpiredReplyLost, Fault::kAnsweredAndClosed);
  CAPTURE(static_cast<int>(fault));
  QueueOf queue(2);
  Contender& self = queue[1];
  self.store.PlaceFault("check ", fault);
  Pass(self, 60s);
  REQUIRE_FALSE(self.acquire.outcome());
  queue[0].Release(queue.world.servers);
  REQUIRE(self.RunToHold());
  CHECK(queue.world.servers.Children("/l") == std::vector{Name(self.ticket().path)});
}

TEST_CASE("A heartbeat that is under way at the turn does not delay it") {
  QueueOf queue(2);
  Contender& self = queue[1];
  self.store.Before("check ", [&] { queue[0].Release(queue.world.servers); });
  Pass(self, 7500ms);
  CHECK(self.Holds());
}

// ---- several LOCKs, permits -----------------------------------------------------------------

/// Holds /a, and waits for /b.
struct SetBeforeItsEnd : private World, SetContender {
  SetBeforeItsEnd() : World(false), SetContender(static_cast<World&>(*this), Wanted()) {
    servers.Put("/a", 0, false, "zklock/1");
    servers.Put("/b", 0, false, "zklock/1");
    holder = std::make_unique<Contender>(servers, clock, AcquireRequest{.lock = {"/b", ""}});
    holder->store.Run();
    Run();
  }
  static std::vector<AcquireRequest> Wanted() {
    return {{.lock = {"/a", ""}, .host = "host"}, {.lock = {"/b", ""}, .host = "host"}};
  }
  using World::servers;

  std::unique_ptr<Contender> holder;
};

TEST_CASE("The last LOCK of a set is taken with the lease in hand, if the others are watched") {
  SetBeforeItsEnd caller;
  REQUIRE_FALSE(caller.set.outcome());
  const std::size_t before = caller.store.requests_sent();
  caller.holder->Release(caller.servers);
  caller.Run();
  REQUIRE(caller.Holds());
  CHECK(caller.store.SentSince(before).empty());
}

TEST_CASE("A set whose first LOCK is lost just before the last one is released holds nothing") {
  SetBeforeItsEnd caller;
  REQUIRE_FALSE(caller.set.outcome());
  caller.servers.Remove(caller.set.tickets().front().path);
  caller.holder->Release(caller.servers);
  caller.Run();
  CHECK(caller.why() == Busy::Why::kRemoved);
}

// ---- the holder -----------------------------------------------------------------------------

/// Holds the lock for `span`, as a run does.
void HoldFor(Contender& contender, Duration span) {
  Hold hold(contender.store, contender.clock, {contender.ticket()}, 5s, Ignore);
  const TimePoint end = contender.clock.Now() + span;
  while (hold.GetInterest().wake <= end && !hold.loss()) {
    contender.clock.Set(std::max(hold.GetInterest().wake, contender.clock.Now()));
    hold.OnReady(0);
    contender.store.Run();
  }
  contender.clock.Set(std::max(end, contender.clock.Now()));
  CHECK_FALSE(hold.loss());
}

TEST_CASE("A holder that took its turn without a commit reads LOCK and sends a heartbeat at once") {
  QueueOf queue(2);
  queue.world.clock.Advance(5s);
  Contender& self = queue.HandOver(0, 1);
  const std::size_t before = self.store.requests_sent();
  HoldFor(self, 0s);
  const std::string& own = self.ticket().path;
  CHECK(self.store.SentSince(before) == Requests{"get " + own, "get /l", "check " + own});
}

TEST_CASE("A holder whose last commit is recent sends its heartbeat an eighth of T after it") {
  QueueOf queue(2);
  queue.world.clock.Advance(1s);
  Contender& self = queue.HandOver(0, 1);
  const std::size_t before = self.store.requests_sent();
  HoldFor(self, 2749ms);
  CHECK(Commits(self.store.SentSince(before)) == 0);
  HoldFor(self, 1ms);
  CHECK(Commits(self.store.SentSince(before)) == 1);
}

TEST_CASE("A contender that was deleted as it took its turn loses the lock at once") {
  QueueOf queue(2);
  Contender& self = queue.HandOver(0, 1);
  queue.world.servers.Remove(self.ticket().path);
  Hold hold(self.store, self.clock, {self.ticket()}, 5s, Ignore);
  hold.OnReady(0);
  self.store.Run();
  CHECK(hold.loss() == EndCause::kRemoved);
}

TEST_CASE("A release before LOCK's version is read writes the record with a guessed version") {
  QueueOf queue(3);
  Contender& self = queue.HandOver(0, 1);
  self.Release(queue.world.servers);  // sends nothing before it
  CHECK(RecordedIn(queue.world) == Name(self.ticket().path));
  CHECK(queue[2].RunToHold());
}

TEST_CASE("A wrong guess of LOCK's version overwrites nothing") {
  QueueOf queue(2);
  Contender& self = queue.HandOver(0, 1);
  queue.world.servers.Write("/l", "mine");
  SECTION("before it is read") {}
  SECTION("after it is read") { HoldFor(self, 10s); }
  self.Release(queue.world.servers);
  CHECK(queue.world.servers.nodes.at("/l").data == "mine");
}

TEST_CASE("A holder reads LOCK's version over the next connection if the answer is lost") {
  QueueOf queue(2);
  Contender& self = queue[1];
  queue[0].Leave(queue.world.servers);  // without a record: the guess is wrong
  REQUIRE(self.RunToHold());
  Hold hold(self.store, self.clock, {self.ticket()}, 5s, Ignore);
  self.store.PlaceFault("get /l", GENERATE(Fault::kNotDone, Fault::kReplyLost));
  hold.OnReady(0);
  self.store.Run();
  hold.Release({.duration = 1s, .host = "host"});
  self.store.Run();
  CHECK(RecordedIn(queue.world) == Name(self.ticket().path));
}

}  // namespace
}  // namespace zklock::lock
