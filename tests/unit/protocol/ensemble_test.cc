#include "protocol/ensemble.h"

#include <catch2/catch.hpp>
#include <limits>
#include <random>

#include "protocol/lease.h"

namespace zklock::protocol {
namespace {

using namespace std::chrono_literals;
using Kind = Finding::Kind;

/// Returns the facts about a server in a sound ensemble.
ServerFacts Sound(const std::string& name, int id) {
  return {.name = name,
          .reached = true,
          .role = id == 1 ? ServerRole::kLeader : ServerRole::kFollower,
          .id = id,
          .connect = Spread{2ms, 5ms, 20},
          .commit = Spread{3ms, 9ms, 20},
          .granted = 30s,
          .clock = ClockOffset{1ms, 3ms},
          .connections = 2,
          .connection_limit = 60,
          .srvr = WordEnd::kAnswered,
          .conf = WordEnd::kAnswered,
          .cons = WordEnd::kAnswered,
          .same_ensemble = true};
}

EnsembleFacts SoundEnsemble() {
  return {.servers = {Sound("zk1:2181", 1), Sound("zk2:2181", 2), Sound("zk3:2181", 3)},
          .members = Members{.voters = {1, 2, 3}},
          .asked = 30s};
}

std::vector<Kind> Kinds(const EnsembleFacts& facts) {
  std::vector<Kind> kinds;
  for (const Finding& finding : Judge(facts)) kinds.push_back(finding.kind);
  return kinds;
}

using KindList = std::vector<Kind>;

}  // namespace

TEST_CASE("A sound ensemble has no findings") { CHECK(Judge(SoundEnsemble()).empty()); }

TEST_CASE("Servers that grant different session timeouts are to be fixed") {
  EnsembleFacts facts = SoundEnsemble();
  facts.servers[1].granted = 12s;
  const auto findings = Judge(facts);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0] ==
        Finding{.kind = Kind::kDifferentGrants, .servers = {1}, .least = 12s, .most = 30s});
  CHECK(ShouldBeFixed(Kind::kDifferentGrants));
  CHECK(ShortestGrant(facts) == 12s);
}

TEST_CASE("A session timeout that zklock refuses is to be fixed, a short one is mentioned") {
  EnsembleFacts facts = SoundEnsemble();
  for (ServerFacts& server : facts.servers) server.granted = 3999ms;
  facts.asked = 3999ms;
  CHECK(Kinds(facts) == KindList{Kind::kUselessGrant});
  for (ServerFacts& server : facts.servers) server.granted = 4s;
  facts.asked = 4s;
  CHECK(Kinds(facts) == KindList{Kind::kShortGrant});
  for (ServerFacts& server : facts.servers) server.granted = 10s;
  facts.asked = 11s;
  CHECK(Kinds(facts) == KindList{Kind::kGrantBelowAsked});
}

TEST_CASE("The worst commit is compared with the period of heartbeats at the shortest timeout") {
  EnsembleFacts facts = SoundEnsemble();
  auto& worst = facts.servers[2].commit->worst;
  worst = 1875ms;  // half of 30 s / 8
  CHECK(Kinds(facts).empty());
  worst += 1ns;
  CHECK(Kinds(facts) == KindList{Kind::kSlow});
  worst = 3750ms;
  CHECK(Kinds(facts) == KindList{Kind::kSlow});
  worst += 1ns;
  CHECK(Judge(facts) ==
        std::vector<Finding>{
            {.kind = Kind::kTooSlow, .servers = {2}, .least = 3750ms, .most = 3750ms + 1ns}});
  worst = 600ms;
  facts.servers[0].granted = 4s;  // a heartbeat every 500 ms
  CHECK(Kinds(facts) == KindList{Kind::kDifferentGrants, Kind::kTooSlow, Kind::kShortGrant});
}

TEST_CASE("A server that cannot be reached is to be fixed, unless another of its addresses can") {
  EnsembleFacts facts = SoundEnsemble();
  facts.servers[2] = {.name = "zk3:2181"};
  CHECK(Judge(facts) == std::vector<Finding>{{.kind = Kind::kUnreached, .servers = {2}}});
  facts.servers[2].name = "zk2:2181";
  CHECK(Judge(facts) == std::vector<Finding>{{.kind = Kind::kUnreachedAddress, .servers = {2}}});
}

TEST_CASE("A server without a quorum says so itself, and is not also reported as unreached") {
  for (const ServerRole role : {ServerRole::kReadOnly, ServerRole::kNotServing}) {
    EnsembleFacts facts = SoundEnsemble();
    facts.servers[0] = {.name = "zk1:2181", .role = role};
    CHECK(Judge(facts) == std::vector<Finding>{{.kind = Kind::kNoQuorum, .servers = {0}}});
  }
}

TEST_CASE("A server that does not know the session belongs to another ensemble") {
  EnsembleFacts facts = SoundEnsemble();
  facts.servers[1].same_ensemble = false;
  CHECK(Judge(facts) == std::vector<Finding>{{.kind = Kind::kOtherEnsemble, .servers = {1}}});
  CHECK(ShouldBeFixed(Kind::kOtherEnsemble));
  facts.servers[1].same_ensemble.reset();
  CHECK(Judge(facts) == std::vector<Finding>{{.kind = Kind::kNotCompared, .servers = {1}}});
}

TEST_CASE("A server that is not in the configuration is to be fixed") {
  EnsembleFacts facts = SoundEnsemble();
  facts.members = Members{.voters = {1, 2, 4}, .observers = {5}};
  facts.servers.push_back(Sound("zk5:2181", 5));
  CHECK(Judge(facts) == std::vector<Finding>{{.kind = Kind::kNotMember, .servers = {2}}});
  CHECK(ShouldBeFixed(Kind::kNotMember));
  facts.servers[2].same_ensemble = false;
  CHECK(Kinds(facts) == KindList{Kind::kOtherEnsemble});
}

TEST_CASE("A ZooKeeper older than 3.5 is to be fixed") {
  for (const char* version : {"3.4.14", "3.4", "2.9.1"}) CHECK(IsOldVersion(version));
  for (const char* version : {"3.5.0", "3.10.1", "4.0.0", "", "3", "x.y"}) {
    CHECK_FALSE(IsOldVersion(version));
  }
  EnsembleFacts facts = SoundEnsemble();
  facts.servers[0].is_old = true;
  CHECK(Judge(facts) == std::vector<Finding>{{.kind = Kind::kOldVersion, .servers = {0}}});
  CHECK(ShouldBeFixed(Kind::kOldVersion));
}

TEST_CASE("An ended session proves nothing about another ensemble") {
  CHECK(IsSameEnsemble(true, 1h, 30s) == true);
  CHECK(IsSameEnsemble(true, std::nullopt, 30s) == true);
  CHECK(IsSameEnsemble(false, 15s, 30s) == false);
  CHECK(IsSameEnsemble(false, 15s + 1ns, 30s) == std::nullopt);
  CHECK(IsSameEnsemble(false, std::nullopt, 30s) == std::nullopt);
}

TEST_CASE("Two names with one number are the same server only within one ensemble") {
  EnsembleFacts facts = SoundEnsemble();
  facts.servers[2].id = 2;
  facts.members = Members{.voters = {1, 2}};
  CHECK(Kinds(facts) == KindList{Kind::kSameServer, Kind::kEvenMembers});
  facts.servers[2].same_ensemble = false;
  CHECK(Kinds(facts) == KindList{Kind::kOtherEnsemble, Kind::kEvenMembers});
  facts.servers[2].same_ensemble = true;
  facts.servers[2].name = facts.servers[1].name;  // IPv4 and IPv6 of one host
  CHECK(Kinds(facts) == KindList{Kind::kEvenMembers});
}

TEST_CASE("An even number is to be fixed if it is known to be the number of voters") {
  EnsembleFacts facts = SoundEnsemble();
  facts.servers.push_back(Sound("zk4:2181", 4));
  facts.members->voters.insert(4);
  CHECK(Judge(facts) == std::vector<Finding>{{.kind = Kind::kEvenMembers, .count = 4}});
  CHECK(ShouldBeFixed(Kind::kEvenMembers));
  facts.members = Members{.voters = {1, 2, 3}, .observers = {4}};
  CHECK(Judge(facts).empty());
  facts.members = Members{.voters = {1, 2, 3, 4}, .weighted = true};
  CHECK(Judge(facts).empty());
  facts.members.reset();
  CHECK(Judge(facts) == std::vector<Finding>{{.kind = Kind::kEvenList, .count = 4}});
  CHECK_FALSE(ShouldBeFixed(Kind::kEvenList));
}

TEST_CASE("A list that names a part of the ensemble, and a single server, are mentioned") {
  EnsembleFacts facts = SoundEnsemble();
  facts.servers.resize(2);
  CHECK(Judge(facts) ==
        std::vector<Finding>{{.kind = Kind::kPartialList, .count = 3, .least_count = 2}});
  facts.servers.resize(1);
  facts.members.reset();
  facts.servers[0].role = ServerRole::kStandalone;
  CHECK(Kinds(facts) == KindList{Kind::kSingleServer});
  CHECK_FALSE(ShouldBeFixed(Kind::kSingleServer));
}

TEST_CASE("A clock is off only if more than a second is proven") {
  EnsembleFacts facts = SoundEnsemble();
  for (ServerFacts& server : facts.servers) server.clock = ClockOffset{-1500ms, 500ms};
  CHECK(Kinds(facts).empty());
  facts.servers[1].clock = ClockOffset{-1500ms, 499ms};
  CHECK(Judge(facts) ==
        std::vector<Finding>{{.kind = Kind::kClockOff, .servers = {1}, .most = -1500ms}});
  facts.servers[2].clock = ClockOffset{90s, 10ms};
  CHECK(Judge(facts) ==
        std::vector<Finding>{{.kind = Kind::kClockOff, .servers = {2}, .most = 90s}});
  for (ServerFacts& server : facts.servers) server.clock.reset();
  CHECK(Kinds(facts) == KindList{Kind::kClockUnknown});
}

TEST_CASE("Local sessions that cannot queue are to be fixed, and explain that no clock is known") {
  EnsembleFacts facts = SoundEnsemble();
  facts.servers[1].is_local = true;
  facts.servers[1].clock.reset();
  const Finding local{.kind = Kind::kLocalSessions, .servers = {1}};
  CHECK(Judge(facts) == std::vector{local});
  for (ServerFacts& server : facts.servers) {
    server.is_local = true;
    server.clock.reset();
  }
  CHECK(Kinds(facts) == KindList{Kind::kLocalSessions});
}

TEST_CASE("Connections near their limit are to be fixed; 0 is no limit") {
  EnsembleFacts facts = SoundEnsemble();
  facts.servers[0].connections = 53;
  CHECK(Kinds(facts).empty());
  facts.servers[0].connections = 54;
  CHECK(Judge(facts) ==
        std::vector<Finding>{
            {.kind = Kind::kFewConnectionsLeft, .servers = {0}, .count = 60, .least_count = 54}});
  facts.servers[0].connection_limit = 0;
  CHECK(Kinds(facts).empty());
  facts.servers[0].connection_limit = std::numeric_limits<std::uint64_t>::max();
  CHECK(Kinds(facts).empty());
}

TEST_CASE("Words that are disabled or answered with garbage are mentioned, never to be fixed") {
  EnsembleFacts facts = SoundEnsemble();
  facts.servers[0].conf = WordEnd::kClosed;
  facts.servers[1].cons = WordEnd::kUnusable;
  facts.servers[2] = {.name = "zk3:2181", .srvr = WordEnd::kUnusable};
  const auto findings = Judge(facts);
  REQUIRE(findings.size() == 3);
  CHECK(findings[0].kind == Kind::kUnreached);
  CHECK(findings[1] == Finding{.kind = Kind::kWordsClosed, .servers = {0}});
  CHECK(findings[2] == Finding{.kind = Kind::kWordsUnusable, .servers = {1}});
  CHECK_FALSE(ShouldBeFixed(Kind::kWordsClosed));
  CHECK_FALSE(ShouldBeFixed(Kind::kWordsUnusable));
}

TEST_CASE("Problems to fix precede facts that are worth knowing") {
  EnsembleFacts facts = SoundEnsemble();
  facts.asked = 40s;
  facts.servers[0].srvr = WordEnd::kClosed;
  facts.servers[2] = {.name = "zk3:2181"};
  CHECK(Kinds(facts) == KindList{Kind::kUnreached, Kind::kGrantBelowAsked, Kind::kWordsClosed});
}

TEST_CASE("The median of an even number of times is between the two in the middle") {
  CHECK(SpreadOf({}) == std::nullopt);
  CHECK(SpreadOf({7ms}) == Spread{7ms, 7ms, 1});
  CHECK(SpreadOf({9ms, 1ms, 2ms}) == Spread{2ms, 9ms, 3});
  CHECK(SpreadOf({4ms, 1ms, 2ms, 100ms}) == Spread{3ms, 100ms, 4});
}

TEST_CASE("A clock's offset is corrected by half of the round trip") {
  // Stamped at 1000.0 to 1001.0 ms by the server's clock, at 1000 to 1040 ms by this host's clock.
  const ClockOffset offset = OffsetOf(1000ms, 1040ms, 40ms);
  CHECK(offset == ClockOffset{-19500us, 20500us});
  // Clocks that agree are never proven to differ, whenever the stamp was made.
  for (auto stamped = 1000000us; stamped <= 1040000us; stamped += 100us) {
    const auto cut = std::chrono::floor<std::chrono::milliseconds>(stamped);
    const ClockOffset same = OffsetOf(cut, 1040ms, 40ms);
    CHECK(std::chrono::abs(same.offset) <= same.uncertainty);
  }
}

TEST_CASE("A command without servers gets its stop signal after about half of the timeout") {
  const TimeWithoutServers times = HowLongWithoutServers(30s, 5s, 1ms);
  // The lease ends T/24 and a round trip earlier; the stop signal is sent 5 s before that.
  CHECK(times.usual_to_stop == 18750ms - 1250ms - 1ms - 5s);
  CHECK(times.least_to_stop == times.usual_to_stop - 3750ms);
  // With slower answers there is less time.
  const TimeWithoutServers slow = HowLongWithoutServers(30s, 5s, 500ms);
  CHECK(slow.usual_to_stop < times.usual_to_stop);
  CHECK(slow.least_to_stop < times.least_to_stop);
  // However slow the answers are, the times are not negative.
  const TimeWithoutServers hopeless = HowLongWithoutServers(4s, 5s, 10s);
  CHECK(hopeless.least_to_stop == 0s);
  CHECK(hopeless.usual_to_stop == 0s);
}

TEST_CASE("No lease outlasts the longest time that a command is said to live without servers") {
  constexpr Duration kTimeout = 30s;
  const TimeWithoutServers times = HowLongWithoutServers(kTimeout, 5s, 1ms);
  CHECK(times.most_to_stop == kTimeout - 1250ms - 5s);
  CHECK(times.most_to_end == times.most_to_stop + 5s);
  // A session that commits and reads at random times after its connect.
  std::mt19937 random(1);
  for (int life = 0; life < 1000; ++life) {
    TimePoint now = TimePoint() + 1h;
    Lease lease(kTimeout);
    lease.ConnectAccepted(now, kTimeout);
    for (int i = 0; i < 20; ++i) {
      const TimePoint sent = now;
      now += std::chrono::milliseconds(random() % 5000);
      random() % 2 == 0 ? lease.Committed(sent, now) : lease.Answered(sent, now);
      if (const auto end = lease.End()) REQUIRE(*end - now <= times.most_to_end);
    }
  }
}

}  // namespace zklock::protocol
