#include "protocol/lease.h"
#include "support/random.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <optional>
#include <random>
#include <vector>

namespace zklock::protocol {
namespace {

using namespace std::chrono_literals;

TimePoint At(Duration since_start) { return TimePoint(1000s) + since_start; }

/// Returns the lease's end, relative to the start of the test, or none.
std::optional<Duration> End(const Lease& lease) {
  if (!lease.End()) return std::nullopt;
  return *lease.End() - At(0s);
}

std::optional<Duration> Ends(Duration since_start) { return since_start; }

/// Returns how long a command may run after `from`, with the default grace period of 5 s.
Duration UntilStop(const Lease& lease, Duration from) {
  REQUIRE(lease.End());
  return StopTime(*lease.End(), GraceFor(5s, lease.timeout())) - At(from);
}

/// The protocol's definitions of s and p, taken literally; no request is ever forgotten.
class Reference {
 public:
  explicit Reference(Duration timeout) : timeout_(timeout) {}
  void ConnectAccepted(TimePoint sent, Duration granted) {
    connects_.push_back(sent);
    timeout_ = std::min(timeout_, granted);
  }
  void Answered(TimePoint sent, TimePoint answered) { answered_.push_back({sent, answered}); }
  void Committed(TimePoint sent, TimePoint answered) {
    Answered(sent, answered);
    commits_.push_back(sent);
  }

  [[nodiscard]] Duration timeout() const { return timeout_; }
  [[nodiscard]] std::optional<TimePoint> last_commit() const {
    if (commits_.empty()) return std::nullopt;
    return *std::max_element(commits_.begin(), commits_.end());
  }

  [[nodiscard]] std::optional<TimePoint> End() const {
    if (commits_.empty()) return std::nullopt;
    const TimePoint s = *last_commit();
    std::vector<TimePoint> proofs;
    for (const auto& [sent, answered] : answered_) {
      if (answered <= s - timeout_ / 4) proofs.push_back(sent);
    }
    for (const TimePoint c : connects_) {
      if (c <= s) proofs.push_back(c);
    }
    if (proofs.empty()) return std::nullopt;
    const TimePoint p = *std::max_element(proofs.begin(), proofs.end());
    return p + timeout_ - (timeout_ >= 12s ? timeout_ / 24 : Duration(500ms));
  }

 private:
  Duration timeout_;
  std::vector<TimePoint> connects_;
  std::vector<std::pair<TimePoint, TimePoint>> answered_;  // sent, answered
  std::vector<TimePoint> commits_;
};

Duration RandomTimeout(std::mt19937_64& random) {
  const Duration timeouts[] = {4s, 6s, 10s, 12s, 30s, 40s};
  return timeouts[random() % std::size(timeouts)];
}

template <typename L>
void Apply(L& lease, std::size_t kind, TimePoint sent, TimePoint answered) {
  if (kind == 0) {
    lease.ConnectAccepted(sent, lease.timeout());
  } else if (kind < 4) {
    lease.Committed(sent, answered);
  } else {
    lease.Answered(sent, answered);
  }
}

// Servers that answer at once.
void Answered(Lease& lease, TimePoint sent) { lease.Answered(sent, sent); }
void Committed(Lease& lease, TimePoint sent) { lease.Committed(sent, sent); }

/// Returns the lease of a session that was created, and proven by a commit, at the start.
Lease Proven(Duration timeout) {
  Lease lease(timeout);
  lease.ConnectAccepted(At(0s), timeout);
  Committed(lease, At(0s));
  return lease;
}

}  // namespace

TEST_CASE("Without an answer there is no lease") {
  const Lease lease(30s);
  CHECK_FALSE(lease.End());
  CHECK_FALSE(lease.last_commit());
  CHECK(lease.timeout() == 30s);
}

TEST_CASE("A connect and the create that follows prove the session from the connect on") {
  Lease lease(30s);
  lease.ConnectAccepted(At(0s), lease.timeout());
  CHECK_FALSE(lease.End());
  Committed(lease, At(50ms));
  CHECK(End(lease) == Ends(28750ms));
  CHECK(lease.last_commit() == At(50ms));
}

TEST_CASE("A connect at the time of the commit counts, one after it does not") {
  Lease lease(30s);
  Committed(lease, At(10s));
  lease.ConnectAccepted(At(10s) + 1ns, lease.timeout());
  CHECK_FALSE(lease.End());
  lease.ConnectAccepted(At(10s), lease.timeout());
  CHECK(End(lease) == Ends(38750ms));
  Committed(lease, At(11s));
  CHECK(End(lease) == Ends(38750ms + 1ns));
}

TEST_CASE("Reads alone never prove anything") {
  Lease lease(30s);
  lease.ConnectAccepted(At(0s), lease.timeout());
  for (Duration t = 1s; t < 100s; t += 1s) Answered(lease, At(t));
  CHECK_FALSE(lease.End());
  CHECK_FALSE(lease.last_commit());
}

TEST_CASE("A commit alone proves nothing") {
  Lease lease(30s);
  Committed(lease, At(0s));
  CHECK_FALSE(lease.End());
  Committed(lease, At(7500ms) - 1ns);
  CHECK_FALSE(lease.End());
  Committed(lease, At(7500ms));
  CHECK(End(lease) == Ends(28750ms));
}

TEST_CASE("An answered request counts from a quarter of the timeout before the commit") {
  Lease lease(30s);
  Answered(lease, At(2s));
  Answered(lease, At(2500ms));
  Answered(lease, At(2500ms) + 1ns);
  Committed(lease, At(10s));
  CHECK(End(lease) == Ends(31250ms));
}

TEST_CASE(
    "A late answer counts from its request, but only a quarter of the timeout after it arrived") {
  Lease lease(30s);
  lease.Committed(At(0s), At(5s));
  Committed(lease, At(12500ms) - 1ns);
  CHECK_FALSE(lease.End());
  Committed(lease, At(12500ms));
  CHECK(End(lease) == Ends(28750ms));
}

TEST_CASE("Two requests that a paused server answers together prove nothing") {
  Lease lease(30s);
  lease.Answered(At(0s), At(8s));
  lease.Committed(At(7500ms), At(8s));
  CHECK_FALSE(lease.End());
}

TEST_CASE("Without more commits no answer moves the lease") {
  Lease lease = Proven(30s);
  for (Duration t = 1s; t < 25s; t += 1s) Answered(lease, At(t));
  lease.ConnectAccepted(At(25s), lease.timeout());
  CHECK(End(lease) == Ends(28750ms));
  Committed(lease, At(26s));
  CHECK(End(lease) == Ends(53750ms));
}

TEST_CASE("Answers out of order all count") {
  Lease lease(30s);
  Committed(lease, At(20s));
  Answered(lease, At(5s));
  CHECK(End(lease) == Ends(33750ms));
  Answered(lease, At(12s));
  CHECK(End(lease) == Ends(40750ms));
  Answered(lease, At(8s));
  Committed(lease, At(3s));
  CHECK(End(lease) == Ends(40750ms));
  CHECK(lease.last_commit() == At(20s));
}

TEST_CASE("The margin is a twenty-fourth of the timeout, and at least half a second") {
  for (const auto& [timeout, end] : std::vector<std::pair<Duration, Duration>>{
           {4s, 3500ms}, {6s, 5500ms}, {12s, 11500ms}, {24s, 23s}, {48s, 46s}}) {
    Lease lease = Proven(timeout);
    CHECK(End(lease) == Ends(end));
  }
}

TEST_CASE("A holder with heartbeats survives at least 8 s without servers") {
  const Duration timeout = 30s;
  Lease lease = Proven(timeout);
  const Duration period = HeartbeatPeriod(timeout);
  CHECK(period == 3750ms);
  for (int beat = 1; beat <= 20; ++beat) {
    // The servers vanish just before this heartbeat is sent.
    CHECK(UntilStop(lease, beat * period) >= 8s);
    Committed(lease, At(beat * period));
  }
  // p is two heartbeats old: 20 * 3.75 - 7.5 + 28.75 - 5.
  CHECK(UntilStop(lease, 0s) == 91250ms);
}

TEST_CASE("A holder far from the servers survives at least 8 s without them") {
  const Duration timeout = 30s;
  const Duration round_trip = 500ms;
  Lease lease(timeout);
  lease.ConnectAccepted(At(0s), lease.timeout());
  lease.Committed(At(0s), At(0s) + round_trip);
  for (int beat = 1; beat <= 20; ++beat) {
    const Duration sent = beat * HeartbeatPeriod(timeout);
    CHECK(UntilStop(lease, sent + round_trip) >= 8s);
    lease.Committed(At(sent), At(sent) + round_trip);
  }
  // p is three heartbeats old: two heartbeats ago, the slow answer had not yet arrived.
  CHECK(UntilStop(lease, 0s) == 87500ms);
}

TEST_CASE("A waiter whose turn comes starts with at least 8 s") {
  const Duration timeout = 30s;
  for (Duration turn = 20s; turn < 40s; turn += 100ms) {
    Lease lease = Proven(timeout);
    for (Duration t = 0s; t < turn; t += lease.PingSpan()) Answered(lease, At(t));
    Committed(lease, At(turn));
    CHECK(UntilStop(lease, turn) >= 8s);
  }
}

TEST_CASE("A lease suffices to start a command while more than a third of the timeout is left") {
  Lease lease(30s);
  CHECK_FALSE(lease.SufficesToStart(At(0s)));
  lease.ConnectAccepted(At(0s), 30s);
  CHECK_FALSE(lease.SufficesToStart(At(0s)));
  Committed(lease, At(0s));
  CHECK(lease.SufficesToStart(At(18750ms) - 1ns));
  CHECK_FALSE(lease.SufficesToStart(At(18750ms)));
}

TEST_CASE("A lease is in hand while half of the timeout less twice the margin is left") {
  struct Case {
    Duration timeout;
    Duration until;
  };
  // With short timeouts, a third of the timeout is more than that.
  const auto [timeout, until] = GENERATE(
      values<Case>({{30s, 16250ms}, {12s, 6500ms}, {6s, 3500ms}, {4s, 3500ms - Duration(4s) / 3}}));
  Lease lease(timeout);
  CHECK_FALSE(lease.IsInHand(At(0s)));
  lease.ConnectAccepted(At(0s), timeout);
  CHECK_FALSE(lease.IsInHand(At(0s)));
  Committed(lease, At(0s));
  CHECK(lease.IsInHand(At(until) - 1ns));
  CHECK_FALSE(lease.IsInHand(At(until)));
  CHECK_FALSE(lease.IsInHand(At(1h)));
}

TEST_CASE("A shorter timeout that a reconnect grants can take the lease in hand away") {
  Lease lease = Proven(30s);
  REQUIRE(lease.IsInHand(At(5s)));
  lease.ConnectAccepted(At(5s), 6s);
  CHECK_FALSE(lease.IsInHand(At(5s)));
  Committed(lease, At(5s));
  CHECK(lease.IsInHand(At(5s)));
}

/// Sends heartbeats as the next in line does, and calls `check` at each moment in between.
template <typename Check>
void WaitAsNextInLine(Lease& lease, Duration round_trip, Check check) {
  TimePoint now = At(0s);
  for (int beat = 0; beat < 20; ++beat) {
    const TimePoint sent = now;
    const TimePoint answered = sent + round_trip;
    // The first heartbeat is the one that proves the lease when it joins.
    if (beat > 0) check(answered);
    lease.Committed(sent, answered);
    check(answered);
    now = answered + lease.PingSpan();
    check(now);
  }
}

TEST_CASE("The next in line always has a lease in hand, however long it waits") {
  const Duration timeout = GENERATE(Duration(30s), Duration(12s), Duration(6s), Duration(4s));
  // A third of the margin's allowance for round trips, which is smaller with a timeout of 4 s.
  const Duration round_trip =
      timeout == 4s ? Duration(50ms) : std::max<Duration>(timeout / 24, 500ms) / 3;
  Lease lease(timeout);
  lease.ConnectAccepted(At(0s), timeout);
  WaitAsNextInLine(lease, round_trip - 1ms,
                   [&](TimePoint moment) { REQUIRE(lease.IsInHand(moment)); });
}

TEST_CASE("The next in line at a server that pings rarely has a lease in hand only now and then") {
  Lease lease(4s);
  lease.ConnectAccepted(At(0s), 4s);
  lease.ConnectAccepted(At(0s), 8s);  // it pings every 2 s
  CHECK(lease.PingSpan() == 2s);
  int moments = 0;
  int in_hand = 0;
  WaitAsNextInLine(lease, 1ms, [&](TimePoint moment) {
    ++moments;
    if (lease.IsInHand(moment)) ++in_hand;
  });
  CHECK(in_hand > 0);
  CHECK(in_hand < moments);
}

TEST_CASE("A lost answer takes the lease in hand away until the next heartbeats are answered") {
  Lease lease = Proven(30s);
  for (Duration t = 7500ms; t <= 75s; t += 7500ms) Committed(lease, At(t));
  // The heartbeats at 82.5 s and 90 s are not answered.
  CHECK(lease.IsInHand(At(83s)));
  CHECK_FALSE(lease.IsInHand(At(84s)));
  Committed(lease, At(97500ms));
  CHECK_FALSE(lease.IsInHand(At(97500ms)));
  Committed(lease, At(105s));
  CHECK(lease.IsInHand(At(105s)));
}

TEST_CASE("Servers that return before the stop signal extend the lease from the last answer") {
  Lease lease = Proven(30s);
  Committed(lease, At(3750ms));
  // 8 s of silence, then the same connection works again.
  Committed(lease, At(15500ms));
  CHECK(End(lease) == Ends(3750ms + 28750ms));
}

TEST_CASE("A reconnect extends the lease only with a commit after it") {
  Lease lease = Proven(30s);
  lease.ConnectAccepted(At(12s), lease.timeout());
  Answered(lease, At(13s));
  CHECK(End(lease) == Ends(28750ms));
  Committed(lease, At(13s));
  CHECK(End(lease) == Ends(12s + 28750ms));
}

TEST_CASE("A shorter timeout that a reconnect grants moves the lease's end back at once") {
  Lease lease = Proven(30s);
  REQUIRE(End(lease) == Ends(28750ms));
  lease.ConnectAccepted(At(10s), 6s);
  CHECK(lease.timeout() == 6s);
  CHECK(End(lease) == Ends(5500ms));  // from what was proven before
  Committed(lease, At(10s));
  CHECK(End(lease) == Ends(15500ms));
}

TEST_CASE("A longer timeout that a reconnect grants does not extend the lease") {
  Lease lease = Proven(6s);
  lease.ConnectAccepted(At(2s), 30s);
  CHECK(lease.timeout() == 6s);
  CHECK(End(lease) == Ends(5500ms));
  Committed(lease, At(2s));
  CHECK(End(lease) == Ends(7500ms));
}

TEST_CASE("The shortest of all granted timeouts counts") {
  Lease lease(30s);
  for (const Duration granted : {30s, 20s, 40s, 8s, 30s}) lease.ConnectAccepted(At(0s), granted);
  Committed(lease, At(0s));
  CHECK(lease.timeout() == 8s);
  CHECK(End(lease) == Ends(7500ms));
}

TEST_CASE("With a shorter timeout an answer counts sooner") {
  Lease lease = Proven(30s);
  lease.ConnectAccepted(At(5s), 8s);
  Answered(lease, At(10s));
  Committed(lease, At(12s));
  CHECK(End(lease) == Ends(10s + 7500ms));
}

TEST_CASE("A server that grants more than requested ticks slowly: answers count later") {
  Lease lease(4s);
  lease.ConnectAccepted(At(0s), 4s);
  lease.ConnectAccepted(At(0s), 8s);  // its minimum: it pings every 2 s
  Answered(lease, At(10s));
  Committed(lease, At(12s) - 1ns);
  CHECK(End(lease) == Ends(3500ms));
  Committed(lease, At(12s));
  CHECK(End(lease) == Ends(13500ms));
}

TEST_CASE("Generated events: the lease follows the protocol's definition") {
  test::ForRandomRounds(300, [](std::mt19937_64& random) {
    const Duration timeout = RandomTimeout(random);
    Lease lease(timeout);
    Reference reference(timeout);
    TimePoint sent = At(0s);
    TimePoint answered = sent;
    std::optional<TimePoint> last_end;
    // Some sequences are dense, some sparse; some have long gaps between commits.
    const auto steps = static_cast<unsigned>(timeout / 1ms) / (random() % 2 == 0 ? 32 : 2);
    const std::size_t kinds = random() % 2 == 0 ? 8 : 40;
    for (int event = 0; event < 80; ++event) {
      sent += random() % steps * 1ms;
      answered = std::max<TimePoint>(answered, sent + random() % steps * 1ms);
      const std::size_t kind = random() % kinds;
      Apply(lease, kind, sent, answered);
      Apply(reference, kind, sent, answered);
      CAPTURE(event);
      REQUIRE(lease.End() == reference.End());
      REQUIRE(lease.last_commit() == reference.last_commit());
      REQUIRE(lease.End() >= last_end);
      last_end = lease.End();
    }
  });
}

TEST_CASE("Generated events, slightly out of order: the lease follows the protocol's definition") {
  test::ForRandomRounds(300, [](std::mt19937_64& random) {
    const Duration timeout = RandomTimeout(random);
    Lease lease(timeout);
    Reference reference(timeout);
    const std::size_t kinds = random() % 2 == 0 ? 8 : 40;
    for (int event = 0; event < 80; ++event) {
      const auto jitter = random() % static_cast<unsigned>(timeout / 16 / 1ms) * 1ms;
      const TimePoint sent = At(event * (timeout / 16)) + jitter;
      const TimePoint late = sent - timeout / 16;
      const TimePoint answered = sent + random() % 2 * (timeout / 8);
      const std::size_t kind = random() % kinds;
      for (const TimePoint moment : {sent, late}) {
        Apply(lease, kind, moment, answered);
        Apply(reference, kind, moment, answered);
      }
      CAPTURE(event);
      REQUIRE(lease.End() == reference.End());
      REQUIRE(lease.last_commit() == reference.last_commit());
    }
  });
}

TEST_CASE("Generated events, in any order: the lease is never too long and never moves back") {
  test::ForRandomRounds(300, [](std::mt19937_64& random) {
    const Duration timeout = RandomTimeout(random);
    Lease lease(timeout);
    Reference reference(timeout);
    std::optional<TimePoint> last_end;
    for (int event = 0; event < 80; ++event) {
      const TimePoint sent = At(random() % static_cast<unsigned>(2 * timeout / 1ms) * 1ms);
      const TimePoint answered = sent + random() % static_cast<unsigned>(timeout / 1ms) * 1ms;
      const std::size_t kind = random() % 8;
      Apply(lease, kind, sent, answered);
      Apply(reference, kind, sent, answered);
      CAPTURE(event);
      REQUIRE(lease.End() <= reference.End());
      REQUIRE(lease.End() >= last_end);
      last_end = lease.End();
    }
  });
}

TEST_CASE("Generated events, with any granted timeouts: the lease is never too long") {
  test::ForRandomRounds(300, [](std::mt19937_64& random) {
    const Duration timeout = RandomTimeout(random);
    Lease lease(timeout);
    Reference reference(timeout);
    TimePoint sent = At(0s);
    for (int event = 0; event < 80; ++event) {
      sent += random() % 2000 * 1ms;
      const std::size_t kind = random() % 12;
      if (kind == 11) {
        const Duration granted = RandomTimeout(random);
        lease.ConnectAccepted(sent, granted);
        reference.ConnectAccepted(sent, granted);
      } else {
        Apply(lease, kind, sent, sent);
        Apply(reference, kind, sent, sent);
      }
      CAPTURE(event);
      REQUIRE(lease.timeout() == reference.timeout());
      REQUIRE(lease.End() <= reference.End());
    }
  });
}

TEST_CASE("Answers that take too long leave too little lease to start, however often they arrive") {
  CHECK(Lease(4s).AnswerBudget() / 2 / 1ms == 583);
  CHECK(Lease(10s).AnswerBudget() / 2 / 1ms == 1833);
  CHECK(Lease(30s).AnswerBudget() / 2 / 1ms == 5625);
  for (const Duration timeout : {Duration(4s), Duration(10s), Duration(30s)}) {
    const Duration longest = Lease(timeout).AnswerBudget() / 2;
    for (const auto& [took, suffices] :
         {std::pair(longest - 1ms, true), std::pair(longest + 1ms, false)}) {
      Lease lease(timeout);
      TimePoint sent = At(1000s);
      for (int round = 0; round < 5; ++round) {
        lease.Committed(sent, sent + took);
        if (round > 0) CHECK(lease.SufficesToStart(sent + took) == suffices);
        sent += took + lease.PingSpan();
      }
    }
  }
}

TEST_CASE("A session that is too short for a server's pings needs that server's timeout") {
  Lease lease(10s);
  CHECK_FALSE(lease.SufficientTimeout(0s));
  lease.ConnectAccepted(At(0s), 10s);
  CHECK_FALSE(lease.SufficientTimeout(0s));
  lease.ConnectAccepted(At(1s), 20s);
  CHECK(lease.AnswerBudget() / 2 / 1ms == 583);
  CHECK(lease.SufficientTimeout(1200ms) == 20s);
  CHECK_FALSE(lease.SufficientTimeout(Lease(20s).AnswerBudget()));
  lease.ConnectAccepted(At(2s), 40s);
  CHECK(lease.AnswerBudget() < 0s);
  CHECK_FALSE(lease.CanBeExtended());
  CHECK(lease.SufficientTimeout(0s) == 40s);
}

TEST_CASE("The stop signal is sent a grace period before the lease's end, KILL 250 ms before it") {
  CHECK(StopTime(At(100s), 5s) == At(95s));
  CHECK(KillTime(At(95s), At(100s), 5s) == At(99750ms));
}

TEST_CASE("The lease limits the grace period") {
  CHECK(GraceFor(5s, 30s) == 5s);
  CHECK(GraceFor(60s, 30s) == 5s);
  CHECK(GraceFor(1s, 30s) == 1s);
  CHECK(GraceFor(5s, 6s) == 1s);
  CHECK(GraceFor(0s, 6s) == 0s);
  CHECK(StopTime(At(100s), GraceFor(60s, 30s)) == At(95s));
}

TEST_CASE("With hardly any grace period the stop signal is sent with KILL, never after it") {
  for (const Duration grace : {Duration(0ms), Duration(100ms), Duration(249ms), Duration(250ms)}) {
    const TimePoint stop = StopTime(At(100s), grace);
    CHECK(stop == At(99750ms));
    CHECK(KillTime(stop, At(100s), grace) == At(99750ms));
  }
}

TEST_CASE("A tree that is stopped early is killed after the grace period") {
  CHECK(KillTime(At(0s), At(100s), 5s) == At(5s));
  CHECK(KillTime(At(3700s), At(100s), 5s) == At(99750ms));
}

TEST_CASE("A lease without an end stops nothing, and an endless grace period kills nothing") {
  CHECK(StopTime(kNever, 5s) == kNever);
  CHECK(KillTime(At(100s), kNever, 5s) == At(105s));
  CHECK(KillTime(At(100s), kNever, Duration::max()) == kNever);
}

TEST_CASE("A span may begin before the host's start, and one that overflows never ends") {
  CHECK(After(TimePoint(-1h), 30s) == TimePoint(30s - 1h));
  CHECK(After(TimePoint(-1h), 0s) == TimePoint(-1h));
  CHECK(After(TimePoint(-1h), Duration::max()) == TimePoint(Duration::max() - 1h));
  CHECK(After(TimePoint(1h), Duration::max()) == kNever);
  CHECK(After(kNever, 30s) == kNever);
}

TEST_CASE("Nested guards are spared for 5 s, but only until KILL is due") {
  CHECK(NestedGuardsUntil(At(100s), kNever) == At(105s));
  CHECK(NestedGuardsUntil(At(100s), At(101s)) == At(100750ms));
  CHECK(NestedGuardsUntil(At(100s), At(100s)) < At(100s));
}

TEST_CASE("A holder sends a heartbeat every eighth of the timeout") {
  CHECK(HeartbeatPeriod(30s) == 3750ms);
  CHECK(HeartbeatPeriod(4s) == 500ms);
}

TEST_CASE("A silent server is given up after a period, 2 s, or half of the remaining time") {
  CHECK(AnswerTimeout(30s, 60s, 0s) == 3750ms);
  CHECK(AnswerTimeout(30s, 4s, 0s) == 2s);
  CHECK(AnswerTimeout(6s, 60s, 0s) == 2s);
  CHECK(AnswerTimeout(6s, 3s, 0s) == 1500ms);
  CHECK(AnswerTimeout(40s, Duration::max(), 0s) == 5s);
}

TEST_CASE("An answer gets 50 ms even if no time is left") {
  CHECK(AnswerTimeout(30s, 99ms, 0s) == 50ms);
  CHECK(AnswerTimeout(30s, 0s, 1s) == 50ms);
  CHECK(AnswerTimeout(30s, -10s, 1s) == 50ms);
}

/// Simulates a holder that connected at 0 and whose servers answer each request after `answer`.
/// Calls `check` with the lease and the time until the stop signal when each heartbeat is sent.
/// Returns when the lock is lost, or after 50 heartbeats.
template <typename F>
void HoldWith(Duration timeout, Duration answer, F check) {
  Lease lease(timeout);
  lease.ConnectAccepted(At(0s), timeout);
  TimePoint sent = At(answer);  // when the create is sent
  for (int heartbeat = 0; heartbeat < 50; ++heartbeat) {
    lease.Committed(sent, sent + answer);
    sent = std::max(sent + HeartbeatPeriod(timeout), sent + answer);
    const TimePoint stop = StopTime(*lease.End(), GraceFor(Duration::max(), timeout));
    if (stop - sent <= answer) return;
    check(lease, stop - sent);
  }
}

TEST_CASE("A server is not left while its answers are quick enough to hold the lock") {
  for (const Duration timeout : {4s, 6s, 10s, 30s, 40s}) {
    Duration slowest{};
    for (Duration answer = 10ms; answer < timeout / 2; answer += 10ms) {
      HoldWith(timeout, answer, [&](const Lease& lease, Duration until_stop) {
        slowest = answer;
        CAPTURE(timeout / 1ms, answer / 1ms, until_stop / 1ms);
        REQUIRE(AnswerTimeout(timeout, until_stop, lease.commits_take()) >= answer);
      });
    }
    CHECK(slowest > timeout / 10);
  }
}

TEST_CASE("A silent server is left while another one that is as quick can still answer twice") {
  for (const Duration timeout : {4s, 6s, 10s, 30s, 40s}) {
    Duration slowest{};
    for (Duration answer = 10ms; answer < timeout / 2; answer += 10ms) {
      HoldWith(timeout, answer, [&](const Lease& lease, Duration until_stop) {
        const Duration left_after = AnswerTimeout(timeout, until_stop, lease.commits_take());
        if (until_stop < 4 * answer) return;
        slowest = std::max(slowest, answer);
        CAPTURE(timeout / 1ms, answer / 1ms, until_stop / 1ms);
        REQUIRE(left_after + 2 * answer <= until_stop);
        // Neither of these two answers arrives too late.
        const Duration rest = until_stop - left_after;
        REQUIRE(AnswerTimeout(timeout, rest - answer, answer) >= answer);
      });
    }
    CHECK(slowest >= timeout / 20);
  }
}

TEST_CASE("The slowest of the last commits counts, though not for long") {
  Lease lease(4s);
  lease.Committed(At(0s), At(0s) + 300ms);
  CHECK(lease.commits_take() == 300ms);
  lease.Committed(At(1s), At(1s) + 10ms);
  CHECK(lease.commits_take() == 150ms);
  lease.Answered(At(2s), At(3s));
  CHECK(lease.commits_take() == 150ms);
  lease.Committed(At(3s), At(60s));
  CHECK(lease.commits_take() == 1s);
}

}  // namespace zklock::protocol
