#include "lock/hold/hold.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "support/fake_store.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::FakeClock;
using test::FakeServers;
using test::FakeStore;

struct Notes {
  void Add(const HoldEvent& event) {
    if (const auto* lease = std::get_if<LeaseEvent>(&event)) {
      leases.push_back(lease->end);
      graces.push_back(lease->grace);
    }
    if (std::holds_alternative<AnswerOverdueEvent>(event)) ++suspects;
    if (std::holds_alternative<ProvenAgainEvent>(event)) ++confirmations;
    if (const auto* own = std::get_if<OwnDataEvent>(&event)) own_data.push_back(own->data);
  }
  std::vector<TimePoint> leases;
  std::vector<Duration> graces;
  int suspects = 0;
  int confirmations = 0;
  std::vector<std::string> own_data;
};

/// A held lock with T = 30 s: P is 3.75 s, the lease's margin 1.25 s.
struct Held {
  explicit Held(bool served = true) : store(servers, clock) {
    servers.Put("/l", 0, false, "zklock/1");
    store.Connect();
    store.Create("/l/host-lock-", "", zookeeper::NodeKind::kEphemeralSequential,
                 [this](const zookeeper::CreateReply& reply) {
                   ticket = {.lock = {"/l", ""},
                             .mode = protocol::Mode::kExclusive,
                             .path = reply.path,
                             .session = store.session_id(),
                             .token = reply.stat.created_zxid,
                             .lock_version = 0};
                 });
    store.Run();
    began = clock.Now();
    hold = std::make_unique<Hold>(store, clock, std::vector<Ticket>{ticket}, 5s,
                                  [this](const HoldEvent& event) { notes.Add(event); });
    if (served) Pass(0s);
  }

  /// Lets `span` pass as an event loop would, with every wake-up in between.
  void Pass(Duration span, bool servers_answer = true) {
    const TimePoint end = clock.Now() + span;
    for (;;) {
      if (servers_answer) store.Run();
      const TimePoint wake = hold->GetInterest().wake;
      if (wake > end) break;
      clock.Set(std::max(wake, clock.Now()));
      hold->OnReady(0);
    }
    clock.Set(end);
  }
  [[nodiscard]] std::size_t Heartbeats() const {
    const auto& log = store.log();
    return static_cast<std::size_t>(std::count(log.begin(), log.end(), "check " + ticket.path));
  }

  FakeClock clock;
  FakeServers servers;
  FakeStore store;
  Notes notes;
  Ticket ticket;
  TimePoint began;
  std::unique_ptr<Hold> hold;
};

TEST_CASE("A holder proves its lock by one heartbeat every eighth of T") {
  Held held;
  held.Pass(30s);
  CHECK(held.Heartbeats() == 8);
  CHECK_FALSE(held.hold->loss());
  CHECK(std::is_sorted(held.notes.leases.begin(), held.notes.leases.end()));
  CHECK(held.hold->lease_end() > held.clock.Now() + 15s);
}

TEST_CASE("Without an answer the lease ends exactly in time") {
  Held held;
  held.store.Disconnect();
  held.Pass(28s, false);
  CHECK_FALSE(held.hold->loss());
  held.Pass(1s, false);
  REQUIRE(held.hold->loss());
  CHECK(*held.hold->loss() == EndCause::kUnproven);
  CHECK(held.hold->lease_end() == held.began + 30s - 1250ms);
}

TEST_CASE("A loss shows the time since the last proof, and how long the process was not running") {
  Held held;
  SECTION("without an answer") {
    held.store.Disconnect();
    held.Pass(29s, false);
    CHECK(held.hold->Unconfirmed() == 29s);
    CHECK_FALSE(held.hold->paused());
  }
  SECTION("stopped") {
    held.Pass(0s);
    CHECK(held.hold->GetInterest().wake < held.clock.Now() + 4s);
    held.clock.Advance(40s);
    held.hold->OnReady(0);
    CHECK(held.hold->Unconfirmed() == 40s);
    REQUIRE(held.hold->paused());
    CHECK(*held.hold->paused() > 36s);
  }
  SECTION("stopped, but proven since") {
    held.Pass(0s);
    (void)held.hold->GetInterest();
    held.clock.Advance(10s);
    held.hold->OnReady(0);
    CHECK(held.hold->paused());
    held.Pass(4s);
    CHECK_FALSE(held.hold->paused());
  }
}

TEST_CASE("A holder reads what was written to its contender before anything else is committed") {
  Held held;
  const std::size_t before = held.store.log().size();
  held.servers.Write(held.ticket.path, "why it is deleted next");
  held.store.Run();
  REQUIRE(held.store.log().size() == before + 1);
  CHECK(held.store.log().back().starts_with("get "));
}

TEST_CASE("A command may start while more than a third of T is left") {
  Held held;
  held.clock.Advance(18s);
  CHECK(held.hold->SufficesToStart());
  held.clock.Advance(1s);
  CHECK_FALSE(held.hold->SufficesToStart());
  held.Pass(8s);  // two heartbeats
  CHECK(held.hold->SufficesToStart());
}

TEST_CASE("No command may start while a heartbeat is unanswered") {
  Held held;
  held.Pass(3751ms, false);
  REQUIRE(held.Heartbeats() == 1);
  CHECK_FALSE(held.hold->SufficesToStart());
  held.store.Run();
  CHECK(held.hold->SufficesToStart());
}

TEST_CASE("Any commit of the session extends the lease with which a command may start") {
  Held held;
  held.clock.Advance(10s);
  held.store.Sync("/l", [](const zookeeper::Reply&) {});
  held.store.Run();
  held.clock.Advance(9s);
  CHECK_FALSE(held.hold->SufficesToStart());
  held.store.Set("/l", "", zookeeper::kAnyVersion, [](const zookeeper::SetReply&) {});
  held.store.Run();
  CHECK(held.hold->SufficesToStart());
  CHECK(held.hold->lease_end() == held.began + 10s + 30s - 1250ms);
  CHECK(held.notes.leases.back() == held.hold->lease_end());
}

TEST_CASE("A silent server is given up before half of the remaining time is over") {
  Held held;
  held.Pass(3751ms, false);  // a heartbeat is sent
  REQUIRE(held.Heartbeats() == 1);
  held.Pass(4s, false);
  CHECK(held.store.server_given_up());
  CHECK(held.notes.suspects == 1);
  CHECK_FALSE(held.hold->loss());
  held.store.Run();  // another server, the same session
  CHECK(held.notes.confirmations == 1);
  held.Pass(60s);
  CHECK_FALSE(held.hold->loss());
}

TEST_CASE("After a reconnect a sync and a heartbeat are sent at once") {
  Held held;
  held.store.Disconnect();
  const std::size_t before = held.store.requests_sent();
  held.store.Connect();
  const auto& log = held.store.log();
  REQUIRE(log.size() >= before + 2);
  CHECK(log[before] == "sync /l");
  CHECK(log[before + 1] == "check " + held.ticket.path);
}

TEST_CASE("A lock whose contender is deleted is lost, which the watch reports at once") {
  Held held;
  held.servers.Remove(held.ticket.path);
  held.store.Run();
  REQUIRE(held.hold->loss());
  CHECK(*held.hold->loss() == EndCause::kRemoved);
}

TEST_CASE("Nothing is sent before the first wait, which then notices an earlier deletion") {
  Held held(false);
  CHECK(held.store.log().size() == 1);  // the create
  held.servers.Remove(held.ticket.path);
  held.Pass(0s);
  CHECK(held.hold->loss() == EndCause::kRemoved);
}

TEST_CASE("A holder receives what is written to its contender, also over a new connection") {
  Held held;
  held.servers.Write(held.ticket.path, "first");
  held.store.Run();
  held.servers.Write(held.ticket.path, "second");
  held.store.Run();
  CHECK(held.notes.own_data == std::vector<std::string>{"", "first", "second"});
  held.store.Disconnect();
  held.servers.Write(held.ticket.path, "third");
  held.store.Run();
  CHECK(held.notes.own_data.back() == "third");
  CHECK_FALSE(held.hold->loss());
}

TEST_CASE("A contender deleted while disconnected is a lost lock at the first heartbeat") {
  Held held;
  held.store.Disconnect();
  held.servers.Remove(held.ticket.path);
  held.store.Run();
  REQUIRE(held.hold->loss());
  CHECK(*held.hold->loss() == EndCause::kRemoved);
}

TEST_CASE("An expired session is a lost lock") {
  Held held;
  held.store.Expire();
  held.store.Run();
  REQUIRE(held.hold->loss());
  CHECK(*held.hold->loss() == EndCause::kExpired);
}

TEST_CASE("After a long sleep the lease is checked before anything else") {
  Held held;
  held.clock.Advance(10min);
  held.hold->OnReady(0);
  REQUIRE(held.hold->loss());
  CHECK(*held.hold->loss() == EndCause::kUnproven);
}

TEST_CASE("A late answer to a heartbeat counts from the time of sending") {
  Held held;
  held.Pass(3751ms, false);
  const TimePoint sent = held.clock.Now();
  held.clock.Advance(20s);
  held.store.Step();
  CHECK(held.hold->lease_end() < sent + 30s);
}

TEST_CASE("The store knows when the command would be stopped, so that it can hurry") {
  Held held;
  CHECK(held.store.stop_time == held.hold->lease_end() - 5s);
  held.Pass(20s);
  CHECK(held.store.stop_time == held.hold->lease_end() - 5s);
}

// ---- a renegotiated session timeout ------------------------------------------------------------

TEST_CASE("A server that shortens the session timeout moves the lease's end back at once") {
  Held held;
  held.Pass(20s);
  const TimePoint before = held.hold->lease_end();
  held.store.Disconnect();
  held.store.SetGranted(6s);
  held.store.Connect();  // no answers yet
  CHECK(held.hold->lease_end() == before - 30s + 1250ms + 5500ms);
  CHECK(held.notes.leases.back() == held.hold->lease_end());
  CHECK(held.notes.graces.back() == 1s);
  CHECK(held.store.stop_time == held.hold->lease_end() - 1s);
  CHECK_FALSE(held.hold->loss());
}

TEST_CASE("With a shortened session timeout heartbeats are sent more often, and the lock is kept") {
  Held held;
  held.Pass(20s);
  held.store.Disconnect();
  held.store.SetGranted(8s);
  held.store.Connect();
  held.Pass(0s);
  const std::size_t before = held.Heartbeats();
  held.Pass(8s);
  CHECK(held.Heartbeats() == before + 8);
  held.store.Disconnect();
  const TimePoint gone = held.clock.Now();
  held.Pass(8s, false);
  CHECK(held.hold->loss() == EndCause::kUnproven);
  CHECK(held.hold->lease_end() <= gone + 7500ms);
}

TEST_CASE("A longer session timeout does not extend a lease that a shorter one has shortened") {
  Held held;
  for (const Duration granted : {6s, 40s}) {
    held.store.Disconnect();
    held.store.SetGranted(granted);
    held.store.Connect();
  }
  held.Pass(20s);
  held.store.Disconnect();
  CHECK(held.hold->lease_end() <= held.clock.Now() + 5500ms);
  held.Pass(6s, false);
  CHECK(held.hold->loss() == EndCause::kUnproven);
}

TEST_CASE("A lock whose shortened lease has already ended is lost at once") {
  Held held;
  held.store.Disconnect();
  held.Pass(10s, false);
  held.store.SetGranted(6s);
  held.store.Connect();
  held.Pass(0s, false);
  CHECK(held.hold->loss() == EndCause::kUnproven);
}

TEST_CASE("With a session timeout below four seconds the lock is lost") {
  Held held;
  held.store.Disconnect();
  held.store.SetGranted(3999ms);
  held.store.Connect();
  CHECK(held.hold->loss() == EndCause::kShortSession);
  CHECK(held.hold->lease_end() <= held.began + 3999ms);
}

// ---- the release ----------------------------------------------------------------------------

TEST_CASE("A lock that is still held is released with a record") {
  Held held;
  held.Pass(20s);
  CHECK(held.hold->Release({.duration = 20s, .status = 0, .host = "h"}) == 1);
  held.store.Run();
  CHECK(held.servers.nodes.at("/l").data == "zklock/1 host-lock-0000000000 exclusive " +
                                                std::to_string(held.ticket.token) + " 20.000 0 h");
  CHECK_FALSE(held.servers.Has(held.ticket.path));
}

TEST_CASE("A lock that is lost or no longer proven is released without a record") {
  Held held;
  SECTION("the contender was deleted") {
    held.servers.Remove(held.ticket.path);
    held.store.Run();
  }
  SECTION("the session has expired") {
    held.store.Expire();
    held.store.Run();
  }
  SECTION("the lease has ended, but the session lives") {
    held.store.Disconnect();
    held.Pass(29s, false);
    held.store.Connect();
    REQUIRE(held.servers.Has(held.ticket.path));
  }
  SECTION("the lease has ended while we slept") { held.clock.Advance(29s); }
  const std::size_t before = held.store.requests_sent();
  CHECK(held.hold->Release({.duration = 20s, .status = 0, .host = "h"}) == 0);
  held.store.Run();
  CHECK(held.store.requests_sent() == before);
  CHECK(held.servers.nodes.at("/l").data == "zklock/1");
}

TEST_CASE("A contender whose deletion was not noticed leaves no record either") {
  Held held;
  held.servers.Remove(held.ticket.path);
  CHECK(held.hold->Release({.duration = 20s, .status = 0, .host = "h"}) == 1);
  held.store.Run();
  CHECK(held.servers.nodes.at("/l").data == "zklock/1");
}

}  // namespace
}  // namespace zklock::lock
