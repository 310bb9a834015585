// A survey of a LOCK that is a semaphore: one queue, spread over its permits and its turnstile.

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lock/survey/holders.h"
#include "lock/survey/survey.h"
#include "support/fake_store.h"
#include "unit/lock/run_calls.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::Fault;
using Scope = SurveyRequest::Scope;
using Words = std::vector<std::string>;

struct SemaphoreBench : test::FakeBench {
  /// `permits`: the data of /s/leases, which is the limit; empty as Curator leaves it.
  explicit SemaphoreBench(const std::string& permits = "2") {
    servers.Put("/s", 0);
    servers.Put("/s/leases", 0, false, permits);
    servers.Put("/s/locks", 0);
  }
  std::string Permit(std::int64_t session) {
    return servers.Put("/s/leases/_c_x-lease-", session, true, "said");
  }
  std::string InTurnstile(std::int64_t session) {
    return servers.Put("/s/locks/_c_x-lock-", session, true, "said");
  }
  /// Creates both znodes of a contender that waits for a permit.
  void Waiter(std::int64_t session) {
    InTurnstile(session);
    Permit(session);
  }

  SurveyResult Look(Scope scope = Scope::kGuess, const std::string& path = "/s") {
    Survey survey{store, clock, {.place = {path, ""}, .scope = scope, .connect_timeout = 15s}};
    store.Run();
    REQUIRE(survey.IsOver());
    REQUIRE_FALSE(survey.failure());
    return survey.result();
  }
  LockSurvey Only() {
    const SurveyResult result = Look();
    REQUIRE(result.locks.size() == 1);
    return result.locks[0];
  }
  Words Holders() {
    const auto holders = RunCalls(store, clock, [](Calls& calls) {
      return ReadHolders(calls, {"/s", ""});
    });
    Words paths;
    for (const Holder& holder : holders) paths.push_back(holder.path);
    return paths;
  }
};

/// Returns one line per entry: position, path, and which contender it waits for.
Words Told(const LockSurvey& lock) {
  Words told;
  for (const QueueEntry& entry : lock.entries) {
    std::string line = entry.position ? std::to_string(*entry.position) : "-";
    line += " " + entry.path.substr(3);
    if (entry.Waits()) line += " waits";
    if (entry.waits_for) {
      line += entry.waits_for->any_holder ? " for any from " : " for ";
      line += std::to_string(entry.waits_for->position) + " " + entry.waits_for->path.substr(3);
    }
    told.push_back(line);
  }
  return told;
}

const std::string kPermit = "leases/_c_x-lease-000000000";
const std::string kPlace = "locks/_c_x-lock-000000000";

}  // namespace

TEST_CASE("The permits of one run count as one contender, and all of them as used") {
  SemaphoreBench bench;
  const auto take = [&](int session, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      bench.servers.Put(
          "/s/leases/host-00000000-0000-4000-8000-0000000000" + std::to_string(session) + "-lease-",
          session, true);
    }
  };
  take(11, 2);
  bench.Permit(12);
  bench.servers.Write("/s/leases", "4");
  LockSurvey lock = bench.Only();
  CHECK(lock.held == 2);
  CHECK(lock.used == 3);
  CHECK(lock.FreePermits() == 1U);
  CHECK(lock.entries.front().more.size() == 1);
  // There is no room for three more: their contender is still in the turnstile.
  bench.InTurnstile(13);
  take(13, 3);
  lock = bench.Only();
  CHECK(lock.held == 2);
  CHECK(lock.used == 3);
  CHECK(lock.waiting == 1);
  REQUIRE(lock.entries.size() == 3);
  CHECK(lock.entries.back().more.size() == 2);
  CHECK(lock.entries.back().waits_for);
}

TEST_CASE(
    "A semaphore is one queue: its holders, the waiter for a permit, the rest of the turnstile") {
  SemaphoreBench bench;
  bench.Permit(11);
  bench.Permit(12);
  bench.Waiter(13);
  bench.InTurnstile(14);
  bench.InTurnstile(15);
  const LockSurvey lock = bench.Only();
  CHECK(lock.path == "/s");
  CHECK(lock.kind == LockKind::kSemaphore);
  CHECK(lock.permit_limit == 2);
  CHECK(lock.held == 2);
  CHECK(lock.waiting == 3);
  CHECK(lock.FreePermits() == 0);
  CHECK(lock.ignored_children.empty());
  CHECK(Told(lock) == Words{"1 " + kPermit + "0", "2 " + kPermit + "1",
                            "3 " + kPermit + "2 waits for any from 1 " + kPermit + "0",
                            "4 " + kPlace + "1 waits for 3 " + kPermit + "2",
                            "5 " + kPlace + "2 waits for 4 " + kPlace + "1"});
  CHECK(lock.entries[2].turnstile_name == "_c_x-lock-0000000000");
  CHECK(lock.entries[3].data == "said");
  CHECK(bench.Holders() == Words{"/s/" + kPermit + "0", "/s/" + kPermit + "1"});
}

TEST_CASE("Permits that are surveyed without their semaphore do not wait for each other") {
  SemaphoreBench bench;
  for (int i = 0; i < 2; ++i) bench.Permit(11);
  for (int i = 0; i < 2; ++i) bench.servers.Put("/s/leases/_c_x-lock-", 12, true);
  const LockSurvey lock = bench.Look(Scope::kLock, "/s/leases").locks.at(0);
  REQUIRE(lock.entries.size() == 4);
  CHECK_FALSE(lock.entries[0].Waits());
  CHECK_FALSE(lock.entries[1].Waits());
  // Other contenders do wait: for them, this is an ordinary LOCK.
  CHECK(lock.entries[2].waits_for->position == 2);
  CHECK(lock.entries[3].waits_for->position == 3);
  CHECK(lock.held == 2);
  CHECK(lock.waiting == 2);
}

TEST_CASE("A semaphore may have free permits, or be unused") {
  SemaphoreBench bench("3");
  SECTION("one permit is used") {
    bench.Permit(11);
    const LockSurvey lock = bench.Only();
    CHECK(lock.held == 1);
    CHECK(lock.FreePermits() == 2);
    CHECK(Told(lock) == Words{"1 " + kPermit + "0"});
  }
  SECTION("no permit is used") {
    const LockSurvey lock = bench.Only();
    CHECK(lock.kind == LockKind::kSemaphore);
    CHECK(lock.FreePermits() == 3);
    CHECK_FALSE(lock.IsHeld());
    CHECK(bench.Look(Scope::kTree).locks.empty());
    CHECK(bench.Holders().empty());
  }
  SECTION("a contender that has just joined waits for none") {
    bench.Permit(11);
    bench.InTurnstile(12);
    const LockSurvey lock = bench.Only();
    CHECK(lock.held == 1);
    CHECK(lock.waiting == 1);
    CHECK(Told(lock) == Words{"1 " + kPermit + "0", "2 " + kPlace + "0 waits"});
  }
  SECTION("a contender with a permit that is still in the turnstile holds") {
    bench.Permit(11);
    bench.Waiter(12);
    const LockSurvey lock = bench.Only();
    CHECK(lock.held == 2);
    CHECK(lock.waiting == 0);
    CHECK(Told(lock) == Words{"1 " + kPermit + "0", "2 " + kPermit + "1"});
    CHECK(bench.Holders().size() == 2);
  }
}

TEST_CASE("If the limit is unknown, the turnstile shows which permit waits") {
  SemaphoreBench bench("");
  bench.Permit(11);
  SECTION("none") {
    const LockSurvey lock = bench.Only();
    CHECK(lock.kind == LockKind::kSemaphore);
    CHECK(lock.permit_limit == std::nullopt);
    CHECK(lock.FreePermits() == std::nullopt);
    CHECK(lock.held == 1);
  }
  SECTION("the last permit") {
    bench.Permit(12);
    bench.Waiter(13);
    const LockSurvey lock = bench.Only();
    CHECK(lock.held == 2);
    CHECK(lock.waiting == 1);
    CHECK(Told(lock).back() == "3 " + kPermit + "2 waits for any from 1 " + kPermit + "0");
    CHECK(bench.Holders().size() == 2);
  }
  SECTION("one whose session has an older permit too") {
    bench.Permit(12);
    bench.InTurnstile(12);
    const LockSurvey lock = bench.Only();
    CHECK(lock.held == 2);
    CHECK(lock.waiting == 1);
  }
}

TEST_CASE("A contender that has left the turnstile holds, whatever the limit") {
  SemaphoreBench bench("1");
  bench.Permit(11);
  bench.Permit(12);
  const LockSurvey lock = bench.Only();
  CHECK(lock.held == 2);
  CHECK(lock.FreePermits() == 0);
}

TEST_CASE("If contenders cannot be read, the limit shows which one waits") {
  SemaphoreBench bench("1");
  bench.servers.nodes.at(bench.Permit(11)).readable = false;
  bench.servers.nodes.at(bench.InTurnstile(12)).readable = false;
  bench.servers.nodes.at(bench.Permit(12)).readable = false;
  const LockSurvey lock = bench.Only();
  CHECK(Told(lock) ==
        Words{"1 " + kPermit + "0", "2 " + kPermit + "1 waits for any from 1 " + kPermit + "0"});
}

TEST_CASE("Children named like a semaphore's do not make one") {
  SemaphoreBench bench("zklock/1");
  SECTION("two locks of these names") {
    bench.servers.Put("/s/locks/_c_x-lock-", 11, true);
    bench.servers.Put("/s/leases/_c_x-lock-", 12, true);
    const SurveyResult result = bench.Look();
    REQUIRE(result.locks.size() == 2);
    CHECK(result.locks[0].path == "/s/leases");
    CHECK(result.locks[1].path == "/s/locks");
    CHECK(bench.Holders().empty());
  }
  SECTION("one of which is free") {
    bench.servers.Put("/s/locks/_c_x-lock-", 11, true);
    const SurveyResult result = bench.Look();
    REQUIRE(result.locks.size() == 1);
    CHECK(result.locks[0].path == "/s/locks");
  }
  SECTION("a lock that has a queue of its own") {
    bench.servers.Put("/s/_c_x-lock-", 11, true);
    bench.Permit(12);
    const LockSurvey lock = bench.Only();
    CHECK(lock.kind == LockKind::kMutex);
    CHECK(lock.ignored_children == Words{"leases", "locks"});
    CHECK(bench.Holders() == Words{"/s/_c_x-lock-0000000000"});
  }
}

TEST_CASE("Other children of a semaphore are named, and a survey of a tree searches them") {
  SemaphoreBench bench;
  bench.Permit(11);
  bench.servers.Put("/s/below", 0);
  bench.servers.Put("/s/below/_c_x-lock-", 12, true);
  bench.servers.Put("/s/leases/notes", 0);
  bench.servers.Put("/s/leases/build-2024010203", 0);
  const LockSurvey lock = bench.Only();
  CHECK(lock.ignored_children == Words{"below", "leases/notes"});
  CHECK(Told(lock) == Words{"1 " + kPermit + "0", "- leases/build-2024010203"});
  bench.servers.Put("/s/leases/notes/_c_x-lock-", 13, true);
  bench.servers.Put("/s/leases/build-2024010203/_c_x-lock-", 14, true);
  Words paths;
  for (const LockSurvey& found : bench.Look(Scope::kTree).locks) paths.push_back(found.path);
  CHECK(paths == Words{"/s", "/s/leases/build-2024010203", "/s/below", "/s/leases/notes"});
}

TEST_CASE("A lost connection at any request does not change the result for a semaphore") {
  for (const Fault fault : {Fault::kNotDone, Fault::kReplyLost, Fault::kExpiredNotDone}) {
    for (std::size_t request = 0; request < 12; ++request) {
      CAPTURE(request);
      SemaphoreBench bench;
      bench.Permit(11);
      bench.Permit(12);
      bench.Waiter(13);
      bench.InTurnstile(14);
      bench.store.PlaceFault(request, fault);
      const LockSurvey lock = bench.Only();
      CHECK(Told(lock).size() == 4);
      CHECK(lock.held == 2);
      CHECK(lock.waiting == 2);
      bench.store.PlaceFault(bench.store.requests_sent() + request % 9, fault);
      CHECK(bench.Holders().size() == 2);
    }
  }
}

TEST_CASE("Contenders of a semaphore that vanish during the survey are left out") {
  for (std::size_t request = 5; request < 11; ++request) {
    for (const bool first : {false, true}) {
      CAPTURE(request, first);
      SemaphoreBench bench;
      const std::string held = bench.Permit(11);
      bench.Permit(12);
      bench.Waiter(13);
      bench.InTurnstile(14);
      bench.store.Before(request, [&] {
        if (first) return bench.servers.Remove(held);
        bench.servers.EndSession(13);
      });
      const LockSurvey lock = bench.Only();
      CHECK(lock.held + lock.waiting == Told(lock).size());
      CHECK(lock.held <= 2);
    }
  }
}

TEST_CASE("Of a semaphore's long queue only a few are read, but all are counted") {
  SemaphoreBench bench("100");
  for (int i = 0; i < 100; ++i) bench.Permit(100 + i);
  bench.Waiter(300);
  for (int i = 0; i < 400; ++i) bench.InTurnstile(1000 + i);
  bench.store.Connect();
  SurveyResult result;
  Survey survey{bench.store,
                bench.clock,
                {.place = {"/s", ""}, .most_contenders = 3, .connect_timeout = 15s}};
  std::size_t answered = 0;
  std::size_t most = 0;
  while (bench.store.Step()) {
    ++answered;
    most = std::max(most, bench.store.requests_sent() - answered);
  }
  REQUIRE(survey.IsOver());
  CHECK(most <= 64);
  CHECK(bench.store.requests_sent() < 20);
  const LockSurvey& lock = survey.result().locks.at(0);
  CHECK(lock.held == 100);
  CHECK(lock.waiting == 401);
  CHECK(Told(lock) == Words{"1 " + kPermit + "0", "2 " + kPermit + "1", "3 " + kPermit + "2"});
}

TEST_CASE("A semaphore whose permits we cannot list is refused if it alone is surveyed") {
  SemaphoreBench bench;
  bench.Permit(11);
  bench.servers.nodes.at("/s/leases").readable = false;
  Survey survey{bench.store, bench.clock, {.place = {"/s", ""}, .connect_timeout = 15s}};
  bench.store.Run();
  REQUIRE(survey.failure());
  const auto* refused = std::get_if<Refused>(&*survey.failure());
  REQUIRE(refused != nullptr);
  CHECK(refused->right_path == "/s/leases");
  CHECK(bench.Look().unlistable == Words{"/s/leases"});
}

TEST_CASE("A watch finds a change in either child of a semaphore, and reads only that") {
  SemaphoreBench bench;
  bench.Permit(11);
  bench.Permit(12);
  class Counts final : public SurveySink {
   public:
    std::vector<std::string> told;
    void OnLockEnd(const LockSurvey& lock) override {
      told.push_back(std::to_string(lock.held) + "/" + std::to_string(lock.waiting));
    }
  } counts;
  Survey survey{bench.store,
                bench.clock,
                {.place = {"/s", ""}, .scope = Scope::kGuess, .watch = true},
                &counts};
  const auto go = [&] {
    bench.store.Run();
    bench.clock.Advance(100ms);
    survey.OnReady(0);
    bench.store.Run();
  };
  go();
  CHECK(counts.told == Words{"2/0"});
  const std::size_t asked = bench.store.log().size();
  bench.InTurnstile(13);
  go();
  CHECK(counts.told.back() == "2/1");
  const auto& log = bench.store.log();
  CHECK(Words(log.begin() + static_cast<std::ptrdiff_t>(asked), log.end()) ==
        Words{"list /s/locks", "get /s/locks/_c_x-lock-0000000000"});
  const std::string permit = bench.Permit(13);
  go();
  CHECK(counts.told.back() == "2/1");
  bench.servers.EndSession(11);
  go();
  CHECK(counts.told.back() == "2/0");
  bench.servers.EndSession(13);
  go();
  CHECK(counts.told.back() == "1/0");
  const std::size_t told = counts.told.size();
  go();
  CHECK(counts.told.size() == told);
}

TEST_CASE("A stray in the turnstile blocks the semaphore once its number has been reached") {
  const bool was_reached = GENERATE(false, true);
  const bool is_held = GENERATE(false, true);
  const bool is_lost = GENERATE(false, true);  // the reply about the turnstile
  CAPTURE(was_reached, is_held, is_lost);
  SemaphoreBench bench;
  // The permits have other numbers.
  bench.servers.nodes.at("/s/leases").next_number = 9;
  bench.servers.nodes.at("/s/locks").next_number = was_reached ? 4 : 3;
  bench.servers.Put("/s/locks/x-lock-0000000003", 0);
  if (is_held) bench.Permit(7);
  if (is_lost) bench.store.PlaceFault("get /s/locks", Fault::kReplyLost);
  const SurveyResult result = bench.Look(Scope::kLock);
  REQUIRE(result.locks.size() == 1);
  REQUIRE_FALSE(result.locks[0].entries.empty());
  CHECK(result.locks[0].entries.back().blocking == (was_reached ? "locks/x-lock-0000000003" : ""));
}

}  // namespace zklock::lock
