#include "lock/survey/survey.h"
#include "support/contender_names.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lock/data/run_history.h"
#include "support/fake_store.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::Fault;
using Scope = SurveyRequest::Scope;

constexpr std::int64_t kSession = 7;
using test::kUuid;

using Strings = std::vector<std::string>;

struct SurveyBench : test::FakeBench {
  /// Servers with these persistent znodes, which have no data.
  SurveyBench(std::initializer_list<const char*> paths = {}) {
    for (const char* const path : paths) servers.Put(path, 0);
  }
  /// Adds contenders of one session. Returns the last one's path.
  std::string Join(const std::string& lock = "/l", int count = 1) {
    std::string path;
    while (count-- > 0) path = servers.Put(lock + "/_c_x-lock-", kSession, true);
    return path;
  }
  /// Runs a whole survey, which must succeed, and returns its result.
  SurveyResult Find(SurveyRequest request) {
    const Survey survey{store, clock, std::move(request)};
    store.Run();
    REQUIRE(survey.IsOver());
    REQUIRE_FALSE(survey.failure());
    return survey.result();
  }
  SurveyResult Find(const std::string& path, Scope scope, const std::string& chroot = "") {
    return Find({.place = {path, chroot}, .scope = scope});
  }
  LockSurvey Read(const std::string& path = "/l", bool with_last_run = false) {
    return Find({.place = {path, ""}, .with_last_run = with_last_run}).locks.at(0);
  }
  Survey Look(const std::string& path, Scope scope = Scope::kLock, const std::string& chroot = "") {
    return {store, clock, {.place = {path, chroot}, .scope = scope, .connect_timeout = 15s}};
  }
};

Strings Names(const LockSurvey& lock) {
  Strings names;
  for (const QueueEntry& entry : lock.entries) names.push_back(entry.name.full);
  return names;
}

Strings Paths(const SurveyResult& result) {
  Strings paths;
  for (const LockSurvey& lock : result.locks) paths.push_back(lock.path);
  return paths;
}

using Waits = std::vector<std::optional<std::size_t>>;

/// Returns the position that each entry waits for.
Waits WaitsOf(const LockSurvey& lock) {
  Waits waits;
  for (const QueueEntry& entry : lock.entries) {
    waits.push_back(entry.waits_for ? Waits::value_type(entry.waits_for->position) : std::nullopt);
  }
  return waits;
}

/// Records everything that is reported.
class Scribe final : public SurveySink {
 public:
  Strings told;
  std::size_t room = std::string::npos;  ///< takes this many entries and no more
  std::function<void()> on_entry = [] {};

  void OnLock(const LockSurvey& lock) override {
    told.push_back(lock.path + " " + std::to_string(lock.held) + "/" +
                   std::to_string(lock.waiting));
  }
  void OnEntry(const QueueEntry& entry) override {
    told.push_back((entry.position ? std::to_string(*entry.position) : "-") + " " +
                   entry.name.full);
    if (room != 0) --room;
    on_entry();
  }
  void OnLockEnd(const LockSurvey& lock) override { told.push_back("end " + lock.path); }
  void OnEnd() override { told.push_back("all"); }
  [[nodiscard]] bool WantsMore() const override { return room > 0; }
  Strings Take() { return std::exchange(told, {}); }
};

}  // namespace

TEST_CASE("A lock that does not exist has no queue") {
  SurveyBench bench;
  Survey survey = bench.Look("/l");
  bench.store.Run();
  REQUIRE(survey.IsOver());
  REQUIRE_FALSE(survey.failure());
  REQUIRE(survey.result().locks.size() == 1);
  CHECK_FALSE(survey.result().locks[0].exists);
  CHECK(survey.result().locks[0].readable);
  CHECK_FALSE(survey.result().locks[0].IsHeld());
}

TEST_CASE("A queue is read in order, with each contender's data") {
  SurveyBench bench{"/l"};
  bench.servers.Put("/l/z-" + kUuid + "-lock-", kSession, true, "first");
  bench.servers.Put("/l/m-" + kUuid + "-__READ__", kSession, true, "second");
  bench.servers.Put("/l/a-" + kUuid + "-__READ__", kSession, true, "third");
  bench.servers.Put("/l/notes", 0);
  const LockSurvey lock = bench.Read();
  CHECK(lock.path == "/l");
  CHECK(lock.exists);
  CHECK(Names(lock) == Strings{"z-" + kUuid + "-lock-0000000000",
                               "m-" + kUuid + "-__READ__0000000001",
                               "a-" + kUuid + "-__READ__0000000002"});
  CHECK(lock.entries[0].data == "first");
  CHECK(lock.entries[2].data == "third");
  CHECK(lock.entries[0].stat.created_zxid < lock.entries[1].stat.created_zxid);
  CHECK(WaitsOf(lock) == Waits{std::nullopt, 1, 1});
  CHECK(lock.ignored_children == Strings{"notes"});
}

TEST_CASE("A contender that vanishes during the survey is left out") {
  SurveyBench bench{"/l"};
  const std::string first = bench.Join();
  bench.servers.Put("/l/_c_y-lock-", kSession, true);
  bench.store.Before("get " + first, [&] { bench.servers.Remove(first); });
  const LockSurvey lock = bench.Read();
  CHECK(Names(lock) == Strings{"_c_y-lock-0000000001"});
  CHECK(WaitsOf(lock) == Waits{std::nullopt});
}

TEST_CASE("A contender that cannot see zklock's is reported, unless no session owns it") {
  using Kind = protocol::IncompatibleContender::Kind;
  SurveyBench bench{"/l"};
  const std::string mark = GENERATE("-lock-", "-__READ__");
  bench.servers.Put("/l/host-" + std::string(kUuid) + mark, kSession, true);
  const std::string kazoo = "/l/0123456789abcdef0123456789abcdef__lock__0000000001";
  CHECK(bench.Read().incompatible == std::nullopt);
  bench.servers.Put(kazoo, 0);
  CHECK(bench.Read().incompatible == std::nullopt);
  bench.servers.Remove(kazoo);
  bench.servers.Put(kazoo, kSession);
  REQUIRE(bench.Read().incompatible);
  CHECK(bench.Read().incompatible->kind == Kind::kKazoo);
  CHECK(bench.Read().incompatible->child == kazoo.substr(3));
  bench.servers.Remove(kazoo);
  bench.Join();  // Curator's mutex sees exclusive contenders, but no readers
  const auto found = bench.Read().incompatible;
  CHECK((found ? std::optional(found->kind) : std::nullopt) ==
        (mark == "-lock-" ? std::nullopt : std::optional(Kind::kCuratorMutex)));
}

TEST_CASE("Permits of zklock and of Curator are compatible") {
  SurveyBench bench{"/s", "/s/leases"};
  bench.servers.Put("/s/leases/" + protocol::MakePermitPrefix("host", kUuid), kSession, true);
  bench.servers.Put("/s/leases/_c_x-lease-", kSession, true);
  CHECK(bench.Read("/s/leases").held == 2);
  CHECK(bench.Read("/s/leases").incompatible == std::nullopt);
}

TEST_CASE("A persistent child with a number is not a contender, and no entry waits for it") {
  SurveyBench bench{"/l"};
  bench.Join();
  bench.servers.Put("/l/build-2024010203", 0);
  bench.servers.Put("/l/_c_y-lock-2124010203", kSession);
  const LockSurvey lock = bench.Read();
  REQUIRE(Names(lock) ==
          Strings{"_c_x-lock-0000000000", "_c_y-lock-2124010203", "build-2024010203"});
  CHECK_FALSE(lock.entries[2].IsContender());
  CHECK(lock.entries[2].position == std::nullopt);
  CHECK(WaitsOf(lock) == Waits{std::nullopt, 1, std::nullopt});
}

TEST_CASE("A contender that we cannot read keeps its position") {
  SurveyBench bench{"/l"};
  const std::string first = bench.Join();
  bench.servers.Put("/l/_c_y-lock-", kSession, true);
  bench.servers.nodes.at(first).readable = false;
  const LockSurvey lock = bench.Read();
  REQUIRE(lock.entries.size() == 2);
  CHECK_FALSE(lock.entries[0].readable);
  CHECK(lock.entries[0].IsContender());
  CHECK(WaitsOf(lock) == Waits{std::nullopt, 1});
}

TEST_CASE("A lock whose children cannot be listed ends the survey as refused") {
  SurveyBench bench{"/app", "/app/l"};
  bench.servers.nodes.at("/app/l").readable = false;
  Survey survey = bench.Look("/app/l", Scope::kLock, "/app");
  bench.store.Run();
  REQUIRE(survey.failure());
  const auto* refused = std::get_if<Refused>(&*survey.failure());
  REQUIRE(refused != nullptr);
  CHECK(refused->path == "/l");
}

TEST_CASE("At most 64 requests are pending, and all are answered") {
  SurveyBench bench{"/l"};
  bench.Join("/l", 500);
  bench.store.Connect();
  Survey survey = bench.Look("/l");
  std::size_t answered = 0;
  std::size_t most = 0;
  while (bench.store.Step()) {
    ++answered;
    most = std::max(most, bench.store.requests_sent() - answered);
  }
  REQUIRE(survey.IsOver());
  CHECK(most == 64);
  CHECK(survey.result().locks.at(0).entries.size() == 500);
}

TEST_CASE("Only the beginning of a contender's data is kept") {
  SurveyBench bench{"/l"};
  bench.servers.Put("/l/_c_x-lock-", kSession, true, std::string(1000000, 'x'));
  CHECK(bench.Read().entries.at(0).data.size() == 4096);
}

TEST_CASE("A lost connection or session at any request does not change the result") {
  for (const Fault fault : {Fault::kNotDone, Fault::kReplyLost, Fault::kExpiredNotDone}) {
    for (std::size_t request = 0; request < 6; ++request) {
      CAPTURE(request);
      SurveyBench bench{"/l"};
      bench.Join("/l", 3);
      bench.store.PlaceFault(request, fault);
      CHECK(bench.Read().entries.size() == 3);
    }
  }
}

TEST_CASE("A connection that breaks at the same request every time is given up") {
  SurveyBench bench{"/l"};
  for (std::size_t i = 0; i < 100; ++i) bench.store.PlaceFault(2 * i + 1, Fault::kNotDone);
  Survey survey = bench.Look("/l");
  for (int i = 0; i < 1000 && !survey.IsOver(); ++i) {
    bench.store.Connect();
    bench.store.Step();
  }
  REQUIRE(survey.failure());
  CHECK(std::holds_alternative<Unreachable>(*survey.failure()));
}

TEST_CASE("Without a server the survey ends after the connect timeout") {
  SurveyBench bench;
  Survey survey = bench.Look("/l");
  bench.clock.Advance(14s);
  survey.OnReady(0);
  CHECK_FALSE(survey.IsOver());
  CHECK(survey.GetInterest().wake == bench.clock.Now() + 1s);
  bench.clock.Advance(1s);
  survey.OnReady(0);
  REQUIRE(survey.failure());
  CHECK(std::holds_alternative<Unreachable>(*survey.failure()));
  CHECK(survey.GetInterest().wake == kNever);
}

TEST_CASE("A server that does not answer is given up") {
  SurveyBench bench;
  bench.store.Connect();
  Survey survey = bench.Look("/l");
  bench.clock.Advance(10s);
  survey.OnReady(0);
  CHECK(bench.store.server_given_up());
}

TEST_CASE("A survey may be destroyed before its replies arrive") {
  SurveyBench bench{"/l"};
  bench.store.Connect();
  { Survey survey = bench.Look("/l"); }
  while (bench.store.Step()) {
  }
}

TEST_CASE("A tree is searched for locks that have contenders") {
  SurveyBench bench{"/j", "/j/a", "/j/a/b", "/j/empty", "/j/c", "/k"};
  for (const char* const lock : {"/j/a", "/j/a/b", "/j/c", "/k"}) {
    bench.servers.Put(std::string(lock) + "/_c_x-lock-", kSession, true);
  }
  CHECK(Paths(bench.Find("/j", Scope::kTree)) == Strings{"/j/a", "/j/a/b", "/j/c"});
}

TEST_CASE("The walk skips contenders, but not persistent znodes with a number") {
  SurveyBench bench{"/j"};
  const std::string contender = bench.Join("/j");
  bench.servers.Put("/j/build-2024010203", 0);
  bench.servers.Put("/j/build-2024010203/_c_y-lock-", kSession, true);
  CHECK(Paths(bench.Find("/j", Scope::kTree)) == Strings{"/j", "/j/build-2024010203"});
  CHECK(bench.store.CountSent("list " + contender) == 0);
}

TEST_CASE("The servers' own znodes are not walked, a user's znodes of the same name are") {
  SurveyBench bench{"/zookeeper", "/app", "/app/zookeeper"};
  bench.Join("/zookeeper");
  bench.Join("/app/zookeeper");
  SECTION("from the root") {
    CHECK(Paths(bench.Find("/", Scope::kTree)) == Strings{"/app/zookeeper"});
  }
  SECTION("from a chroot") {
    CHECK(Paths(bench.Find("/app", Scope::kTree, "/app")) == Strings{"/zookeeper"});
  }
}

TEST_CASE("Contenders in the root of a chroot are read") {
  SurveyBench bench{"/app"};
  bench.servers.Put("/app/_c_x-lock-", kSession, true, "said");
  const SurveyResult result = bench.Find("/app", Scope::kTree, "/app");
  CHECK(Paths(result) == Strings{"/"});
  CHECK(result.locks.at(0).entries.at(0).data == "said");
}

TEST_CASE("Znodes of a tree that we cannot list are named, and the rest is found") {
  SurveyBench bench{"/j", "/j/a", "/j/b"};
  for (const char* const path : {"/j", "/j/a", "/j/b"}) bench.Join(path);
  bench.servers.nodes.at("/j/a").readable = false;
  const SurveyResult result = bench.Find("/j", Scope::kTree);
  CHECK(Paths(result) == Strings{"/j", "/j/b"});
  CHECK(result.unlistable == Strings{"/j/a"});
}

TEST_CASE("The records of runs are not walked, and need not be listable") {
  SurveyBench bench{"/j", "/j/a", "/j/a/last-run", "/j/a/last-start"};
  bench.Join("/j/a");
  for (const char* const path : {"/j/a/last-run", "/j/a/last-start"}) {
    bench.servers.nodes.at(path).readable = false;
  }
  const SurveyResult result = bench.Find("/j", Scope::kTree);
  CHECK(Paths(result) == Strings{"/j/a"});
  CHECK(result.unlistable.empty());
}

TEST_CASE("A LOCK may have the name of a record at the top of the tree") {
  SurveyBench bench{"/last-run", "/last-run/job"};
  bench.Join("/last-run/job");
  CHECK(Paths(bench.Find("/", Scope::kTree)) == Strings{"/last-run/job"});
  for (const char* const path : {"/a", "/a/last-run", "/a/last-run/job"}) {
    bench.servers.Put(path, 0);
  }
  bench.Join("/a/last-run/job");
  CHECK(Paths(bench.Find({.place = {"/a", "/a"}, .scope = Scope::kTree})) == Strings{});
}

TEST_CASE("A tree that does not exist has no locks") {
  SurveyBench bench;
  CHECK(bench.Find("/j", Scope::kTree).locks.empty());
}

TEST_CASE("A lost connection at any request of a walk does not change the result") {
  for (std::size_t request = 0; request < 11; ++request) {
    CAPTURE(request);
    SurveyBench bench{"/j", "/j/a", "/j/a/b", "/j/c"};
    bench.Join("/j/a");
    bench.Join("/j/c");
    bench.store.PlaceFault(request, Fault::kNotDone);
    CHECK(Paths(bench.Find("/j", Scope::kTree)) == Strings{"/j/a", "/j/c"});
  }
}

TEST_CASE("last-run is read on request, and truncated") {
  SurveyBench bench{"/l"};
  bench.servers.now_ms = 1234;
  bench.servers.Put("/l/last-run", 0, false, std::string(kMostLastRun - 1, 'x') + "yz");
  CHECK_FALSE(bench.Read().last_run);
  const LockSurvey lock = bench.Read("/l", true);
  REQUIRE(lock.last_run);
  CHECK(*lock.last_run == std::string(kMostLastRun - 1, 'x') + "y");
  CHECK(lock.last_run_stat.modified_ms == 1234);
  CHECK_FALSE(lock.last_run_refused);
  CHECK(lock.readable);
}

TEST_CASE("Without a child last-run, none is read") {
  SurveyBench bench{"/l"};
  CHECK_FALSE(bench.Read("/l", true).last_run);
  CHECK(bench.store.CountSent("get /l/last-run") == 0);
}

TEST_CASE("A last-run that vanishes or cannot be read does not end the survey") {
  SurveyBench bench{"/l"};
  bench.servers.Put("/l/last-run", 0, false, "text");
  bool refused = false;
  SECTION("it vanishes") {
    bench.store.Before("get /l/last-run", [&] { bench.servers.Remove("/l/last-run"); });
  }
  SECTION("it cannot be read") {
    bench.servers.nodes.at("/l/last-run").readable = false;
    refused = true;
  }
  const Survey survey{bench.store, bench.clock, {.place = {"/l", ""}, .with_last_run = true}};
  bench.store.Run();
  REQUIRE(survey.IsOver());
  REQUIRE_FALSE(survey.failure());
  CHECK_FALSE(survey.result().locks.at(0).last_run);
  CHECK(survey.result().locks.at(0).last_run_refused == refused);
}

TEST_CASE("A run that begins or ends while it is read is not reported as lost") {
  SurveyBench bench{"/l", "/l/last-run"};
  const auto record = [&bench](const std::string& path, bool has_ended) {
    RunHistory history;
    history.Enter({.end = has_ended ? RunRecord::End::kEnded : RunRecord::End::kNone,
                   .duration = has_ended ? std::optional(1000ms) : std::nullopt,
                   .token = bench.servers.nodes.at(path).czxid,
                   .contender = path.substr(path.rfind('/') + 1)});
    bench.servers.Write("/l/last-run", history.Format(5));
  };
  /// Returns the runs without an end: "running" or "lost".
  const auto find = [&bench] {
    const LockSurvey lock = bench.Read("/l", true);
    const auto history = RunHistory::Parse(lock.last_run.value_or(""));
    Strings runs;
    for (const auto& [run, line] : history->entries()) {
      if (run.end != RunRecord::End::kNone) continue;
      const bool runs_on = std::count(lock.running.begin(), lock.running.end(), run.contender) == 1;
      runs.emplace_back(runs_on ? "running" : "lost");
    }
    return runs;
  };

  SECTION("it begins after the list of contenders") {
    std::string path;
    bench.store.Before("get /l/last-run", [&] {
      path = bench.Join();
      record(path, false);
    });
    CHECK(find() == Strings{"running"});
  }
  SECTION("it begins after the list of a semaphore's permits") {
    bench.servers.Put("/l/leases", 0, false, "2");
    bench.servers.Put("/l/locks", 0);
    std::string path;
    bench.store.Before("get /l/last-run", [&] {
      path = bench.servers.Put("/l/leases/" + kUuid + "-lease-", kSession, true);
      record(path, false);
    });
    CHECK(find() == Strings{"running"});
  }
  SECTION("it begins after the list of contenders, and ends before it is looked for") {
    std::string path;
    bench.store.Before("get /l/last-run", [&] {
      path = bench.Join();
      record(path, false);
      bench.store.Before("get " + path, [&] {
        record(path, true);
        bench.servers.Remove(path);
      });
    });
    CHECK(find() == Strings{});
  }
  SECTION("it ends before its contender is read") {
    const std::string path = bench.Join();
    record(path, false);
    bench.store.Before("get " + path, [&] {
      record(path, true);
      bench.servers.Remove(path);
    });
    CHECK(find() == Strings{});
  }
  SECTION("it was lost") {
    const std::string path = bench.Join();
    record(path, false);
    bench.servers.Remove(path);
    CHECK(find() == Strings{"lost"});
    CHECK(bench.store.CountSent("get /l/last-run") == 2);
  }
  SECTION("it is lost before its contender is read") {
    const std::string path = bench.Join();
    record(path, false);
    bench.store.Before("get " + path, [&] { bench.servers.Remove(path); });
    CHECK(find() == Strings{"lost"});
  }
  SECTION("the record names no contender") {
    RunHistory history;
    history.Enter({.token = 5, .contender = "../x\n-lock-0000000001"});
    bench.servers.Write("/l/last-run", history.Format(5));
    CHECK(find() == Strings{"lost"});
    CHECK(bench.store.CountSent("get /l/") == 1);
  }
}

TEST_CASE("The child last-start is read if that is requested") {
  SurveyBench bench{"/l"};
  bench.servers.now_ms = 1234;
  bench.servers.Put("/l/last-start", 0, false, "zklock/1 17 db1");
  CHECK_FALSE(bench.Read().last_start);
  const auto read = [&] {
    return bench.Find({.place = {"/l", ""}, .with_last_start = true}).locks.at(0);
  };
  const LockSurvey lock = read();
  REQUIRE(lock.last_start);
  CHECK(lock.last_start->host == "db1");
  CHECK(lock.last_start->token == 17);
  CHECK(lock.last_started.count() == 1234);
  SECTION("it cannot be read") { bench.servers.nodes.at("/l/last-start").readable = false; }
  SECTION("it vanishes") {
    bench.store.Before("get /l/last-start", [&] { bench.servers.Remove("/l/last-start"); });
  }
  SECTION("it has other data") { bench.servers.nodes.at("/l/last-start").data = "17"; }
  CHECK_FALSE(read().last_start);
}

TEST_CASE("A LOCK whose data cannot be read is marked") {
  SurveyBench bench{"/l"};
  bench.store.Refuse("get /l", zookeeper::Error::kNoAuth);
  CHECK_FALSE(bench.Read().readable);
}

TEST_CASE("The last runs of a tree of 500 LOCKs are read with at most 64 requests pending") {
  SurveyBench bench{"/j"};
  for (int i = 0; i < 500; ++i) {
    const std::string lock = "/j/" + std::to_string(10000 + i);
    bench.servers.Put(lock, 0, false, "zklock/1");
    bench.servers.Put(lock + "/last-run", 0, false, std::to_string(i));
    if (i % 2 == 0) bench.servers.Put(lock + "/_c_x-lock-", kSession, true);
  }
  bench.store.Connect();
  const Survey survey{
      bench.store,
      bench.clock,
      {.place = {"/j", ""}, .scope = Scope::kTree, .with_last_run = true, .with_free = true}};
  std::size_t answered = 0;
  std::size_t most = 0;
  while (bench.store.Step()) {
    ++answered;
    most = std::max(most, bench.store.requests_sent() - answered);
  }
  REQUIRE(survey.IsOver());
  CHECK(most == 64);
  const auto& locks = survey.result().locks;
  REQUIRE(locks.size() == 500);
  CHECK(locks[0].last_run == "0");
  CHECK(locks[0].held == 1);
  CHECK(locks[499].last_run == "499");
  CHECK(locks[499].held == 0);
}

TEST_CASE("A lost connection at any request does not change what is read of last-run") {
  for (std::size_t request = 0; request < 8; ++request) {
    CAPTURE(request);
    SurveyBench bench{"/l"};
    bench.servers.Put("/l/last-run", 0, false, "text");
    bench.Join();
    bench.store.PlaceFault(request, Fault::kReplyLost);
    CHECK(bench.Read("/l", true).last_run == "text");
  }
}

TEST_CASE("The free LOCKs of a tree are reported on request") {
  SurveyBench bench{"/j", "/j/folder", "/j/foreign", "/j/permits"};
  bench.servers.Put("/j/foreign/child", 0, false, "text");
  bench.servers.Put("/j/free", 0, false, "zklock/1");
  bench.servers.Put("/j/free/below", 0, false, "zklock/1");
  bench.servers.Put("/j/kept", 0, false, "an administrator's");
  bench.servers.Put("/j/kept/last-run", 0);
  bench.servers.Put("/j/started", 0, false, "an administrator's");
  bench.servers.Put("/j/started/last-start", 0);
  bench.servers.Put("/j/permits/leases", 0, false, "2");
  bench.servers.Put("/j/permits/locks", 0);
  bench.servers.Put("/j/used", 0);
  bench.Join("/j/used");
  const auto look = [&](const std::string& path, Scope scope, bool with_free) {
    const Survey survey{
        bench.store, bench.clock, {.place = {path, ""}, .scope = scope, .with_free = with_free}};
    bench.store.Run();
    return Paths(survey.result());
  };
  CHECK(look("/j", Scope::kTree, true) ==
        Strings{"/j/free", "/j/free/below", "/j/kept", "/j/permits", "/j/started", "/j/used"});
  CHECK(look("/j/free", Scope::kGuess, true) == Strings{"/j/free", "/j/free/below"});
  CHECK(look("/j/folder", Scope::kGuess, true) == Strings{"/j/folder"});
  CHECK(look("/j/started", Scope::kGuess, false) == Strings{"/j/started"});
  CHECK(look("/j/free", Scope::kGuess, false).empty());
  bench.servers.Put("/j/foreign/child/deep", 0, false, "zklock/1");
  CHECK(look("/j", Scope::kGuess, true) == Strings{"/j/foreign/child/deep", "/j/free",
                                                   "/j/free/below", "/j/kept", "/j/permits",
                                                   "/j/started", "/j/used"});
}

TEST_CASE("Results are reported in order, as they arrive") {
  SurveyBench bench{"/j", "/j/a", "/j/b"};
  bench.Join("/j/a", 2);
  bench.servers.Put("/j/b/_c_x-__READ__", kSession, true);
  Scribe scribe;
  const Survey survey{
      bench.store, bench.clock, {.place = {"/j", ""}, .scope = Scope::kTree}, &scribe};
  bench.store.Run();
  CHECK(scribe.told == Strings{"/j/a 1/1", "1 _c_x-lock-0000000000", "2 _c_x-lock-0000000001",
                               "end /j/a", "/j/b 1/0", "1 _c_x-__READ__0000000000", "end /j/b",
                               "all"});
  CHECK(survey.result().locks.empty());
}

TEST_CASE("The first contenders are reported before the last ones are read") {
  SurveyBench bench{"/l"};
  bench.Join("/l", 500);
  bench.store.Connect();
  Scribe scribe;
  const Survey survey{bench.store, bench.clock, {.place = {"/l", ""}}, &scribe};
  while (scribe.told.size() < 2) REQUIRE(bench.store.Step());
  CHECK(scribe.told == Strings{"/l 1/499", "1 _c_x-lock-0000000000"});
  CHECK(bench.store.requests_sent() < 100);
}

TEST_CASE("After a lost connection, nothing is reported again") {
  for (std::size_t request = 0; request < 13; ++request) {
    CAPTURE(request);
    SurveyBench bench{"/l"};
    Strings expected{"/l 1/9"};
    for (int i = 0; i < 10; ++i) {
      bench.Join();
      expected.push_back(std::to_string(i + 1) + " " + test::Numbered("_c_x-lock-", i));
    }
    expected.emplace_back("end /l");
    expected.emplace_back("all");
    bench.store.PlaceFault(request, Fault::kReplyLost);
    Scribe scribe;
    const Survey survey{bench.store, bench.clock, {.place = {"/l", ""}}, &scribe};
    bench.store.Run();
    CHECK(scribe.told == expected);
  }
}

TEST_CASE("While the sink can take no more, nothing is reported or read") {
  SurveyBench bench{"/l"};
  bench.Join("/l", 300);
  Scribe scribe;
  scribe.room = 10;
  Survey survey{bench.store, bench.clock, {.place = {"/l", ""}}, &scribe};
  bench.store.Run();
  CHECK(scribe.told.size() == 11);
  CHECK(bench.store.requests_sent() < 100);
  CHECK_FALSE(survey.IsOver());
  // No answer is expected in the meantime.
  bench.clock.Advance(1h);
  survey.OnReady(0);
  CHECK_FALSE(bench.store.server_given_up());

  scribe.room = 1000;
  survey.Resume();
  bench.store.Run();
  CHECK(survey.IsOver());
  CHECK(scribe.told.size() == 303);
}

TEST_CASE("Of a long queue only the requested number of contenders is read, but all are counted") {
  SurveyBench bench{"/l"};
  const std::string first = bench.Join();
  bench.Join("/l", 9);
  bench.servers.Put("/l/build-2024010203", 0);
  Strings expected{
      "/l 1/10", "1 _c_x-lock-0000000000", "2 _c_x-lock-0000000001", "- build-2024010203", "end /l",
      "all"};
  SECTION("in their order") {}
  SECTION("one more for each that has vanished") {
    bench.store.Before("get " + first, [&] { bench.servers.Remove(first); });
    expected = {"/l 1/9",
                "1 _c_x-lock-0000000001",
                "2 _c_x-lock-0000000002",
                "- build-2024010203",
                "end /l",
                "all"};
  }
  Scribe scribe;
  const Survey survey{
      bench.store, bench.clock, {.place = {"/l", ""}, .most_contenders = 2}, &scribe};
  bench.store.Run();
  CHECK(scribe.told == expected);
}

TEST_CASE("A guess treats a held znode as a lock, and others as a tree") {
  SurveyBench bench{"/j", "/j/a", "/j/build-2024010203"};
  bench.Join("/j/a");
  bench.Join("/j/build-2024010203");
  SECTION("a tree") {
    const SurveyResult result = bench.Find("/j", Scope::kGuess);
    CHECK(Paths(result) == Strings{"/j/a", "/j/build-2024010203"});
    CHECK(result.locks.at(0).in_tree);
  }
  SECTION("a lock that has locks below") {
    bench.Join("/j");
    const SurveyResult result = bench.Find("/j", Scope::kGuess);
    REQUIRE(Paths(result) == Strings{"/j"});
    CHECK_FALSE(result.locks.at(0).in_tree);
    CHECK(result.locks.at(0).ignored_children == Strings{"a"});
  }
  SECTION("a lock that has locks below, which are requested too") {
    bench.Join("/j");
    bench.servers.Put("/j/free", 0, false, "zklock/1");
    const SurveyResult result = bench.Find(
        {.place = {"/j", ""}, .scope = Scope::kGuess, .with_free = true, .below_contenders = true});
    CHECK(Paths(result) == Strings{"/j", "/j/a", "/j/build-2024010203", "/j/free"});
    CHECK(result.locks.at(0).held == 1);
    bench.servers.Put("/j/a/last-run", 0);
    const SurveyResult alone =
        bench.Find({.place = {"/j/a", ""}, .scope = Scope::kGuess, .below_contenders = true});
    CHECK(Paths(alone) == Strings{"/j/a"});
  }
  SECTION("a free lock that zklock has used") {
    bench.servers.Put("/j/free", 0);
    bench.servers.Put("/j/free/last-run", 0);
    const SurveyResult result = bench.Find("/j/free", Scope::kGuess);
    REQUIRE(Paths(result) == Strings{"/j/free"});
    CHECK_FALSE(result.locks.at(0).IsHeld());
  }
  SECTION("a free lock that a stray child blocks") {
    bench.servers.Put("/j/free", 0);
    bench.servers.Put("/j/free/x-lock-0000000003", 0);
    bench.servers.nodes.at("/j/free").next_number = 4;
    for (const Scope scope : {Scope::kGuess, Scope::kTree}) {
      const SurveyResult result = bench.Find("/j/free", scope);
      REQUIRE(Paths(result) == Strings{"/j/free"});
      CHECK_FALSE(result.locks.at(0).IsHeld());
      REQUIRE(result.locks.at(0).entries.size() == 1);
      CHECK(result.locks.at(0).entries.front().blocking == "x-lock-0000000003");
    }
  }
  SECTION("a free lock that a stray child blocks, above others") {
    bench.servers.Put("/j/free", 0);
    bench.servers.Put("/j/free/x-lock-0000000003", 0);
    bench.servers.nodes.at("/j/free").next_number = 4;
    bench.servers.Put("/j/free/below", 0);
    bench.Join("/j/free/below");
    for (const Scope scope : {Scope::kGuess, Scope::kTree}) {
      const SurveyResult result = bench.Find("/j/free", scope);
      REQUIRE(Paths(result) == Strings{"/j/free", "/j/free/below"});
      for (const LockSurvey& lock : result.locks) CHECK(lock.in_tree);
    }
  }
  SECTION("the root, which is no LOCK, with a child that could be in the way of one") {
    bench.servers.Put("/x-lock-0000000003", 0);
    bench.servers.nodes.at("/").next_number = 4;
    for (const Scope scope : {Scope::kGuess, Scope::kTree}) {
      for (const LockSurvey& lock : bench.Find("/", scope).locks) CHECK(lock.path != "/");
    }
  }
  SECTION("a free lock with a child that has a number, and might be a LOCK") {
    const bool was_reached = GENERATE(false, true);
    const bool was_used = GENERATE(false, true);  // as a LOCK
    bench.servers.Put("/j/free", 0, false, was_used ? "zklock/1" : "");
    bench.servers.nodes.at("/j/free").next_number = was_reached ? 2024010204 : 7;
    bench.servers.Put("/j/free/build-2024010203", 0);
    CHECK(Paths(bench.Find("/j/free", Scope::kGuess)) ==
          (was_reached && was_used ? Strings{"/j/free"} : Strings{}));
    bench.Join("/j/free");
    const LockSurvey held = bench.Find("/j/free", Scope::kGuess).locks.at(0);
    CHECK(held.IsHeld());
    CHECK(held.entries.back().blocking == (was_reached ? "build-2024010203" : ""));
  }
  SECTION("a lock that does not exist") {
    const SurveyResult result = bench.Find("/x", Scope::kGuess);
    REQUIRE(Paths(result) == Strings{"/x"});
    CHECK_FALSE(result.locks.at(0).exists);
  }
}

TEST_CASE("A simple lock's only znode holds the lock if a session owns it") {
  SurveyBench bench{"/l"};
  SECTION("a lock") {
    bench.servers.Put("/l/lock", kSession);
    const SurveyResult result = bench.Find("/l", Scope::kGuess);
    const LockSurvey& lock = result.locks.at(0);
    CHECK(lock.kind == LockKind::kSimple);
    CHECK(lock.held == 1);
    CHECK(Names(lock) == Strings{"lock"});
  }
  SECTION("a persistent znode of that name") {
    bench.servers.Put("/l/lock", 0);
    bench.Join("/l/lock");
    CHECK(Paths(bench.Find("/l", Scope::kGuess)) == Strings{"/l/lock"});
    Survey tree = bench.Look("/l", Scope::kTree);
    bench.store.Run();
    CHECK(Paths(tree.result()) == Strings{"/l/lock"});
    Survey alone = bench.Look("/l", Scope::kLock);
    bench.store.Run();
    CHECK(alone.result().locks.at(0).ignored_children == Strings{"lock"});
    CHECK_FALSE(alone.result().locks.at(0).kind);
  }
  SECTION("one that we cannot read, which may be a LOCK") {
    bench.servers.Put("/l/lock", 0);
    bench.servers.nodes.at("/l/lock").readable = false;
    CHECK(bench.Find("/l", Scope::kTree).unlistable == Strings{"/l/lock"});
    CHECK(bench.Find("/l", Scope::kLock).locks.at(0).ignored_children == Strings{"lock"});
  }
}

TEST_CASE("The kind of a lock follows from its contenders") {
  SurveyBench bench{"/l"};
  const auto kind_with = [&](const std::string& mark) {
    bench.servers.Put("/l/_c_x-" + mark, kSession, true);
    return bench.Read().kind;
  };
  CHECK(kind_with("lock-") == LockKind::kMutex);
  CHECK(kind_with("__WRIT__") == LockKind::kReadWrite);
}

TEST_CASE("A LOCK below another does not count for the other's kind") {
  SurveyBench bench{"/l", "/l/lock"};
  bench.Join("/l/lock");
  bench.Join();
  CHECK(bench.Read().kind == LockKind::kMutex);
}

// ---- watching -------------------------------------------------------------------------------

namespace {

/// A watching survey and its requests.
struct Watching {
  Watching(SurveyBench& bench_of, const std::string& path, Scope scope = Scope::kGuess)
      : bench(bench_of),
        survey(bench.store, bench.clock,
               {.place = {path, ""}, .scope = scope, .watch = true, .connect_timeout = 15s},
               &scribe) {
    bench.store.Run();
    asked = bench.store.requests_sent();
  }
  /// Lets the survey run, and returns the requests that it sent.
  Strings Go() {
    for (int i = 0; i < 3; ++i) {
      bench.store.Run();
      bench.clock.Advance(100ms);
      survey.OnReady(0);
    }
    bench.store.Run();
    const std::size_t begin = std::exchange(asked, bench.store.requests_sent());
    return bench.store.SentSince(begin);
  }

  SurveyBench& bench;
  Scribe scribe;
  Survey survey;
  std::size_t asked;
};

}  // namespace

TEST_CASE("A watch reads nothing while nothing changes") {
  SurveyBench bench{"/j", "/j/a", "/j/b"};
  bench.Join("/j/a");
  Watching watching(bench, "/j");
  CHECK(watching.scribe.Take().back() == "all");
  bench.clock.Advance(1h);
  CHECK(watching.Go().empty());
  CHECK(watching.scribe.told.empty());
  CHECK_FALSE(bench.store.server_given_up());
  CHECK(watching.survey.GetInterest().wake == kNever);
}

TEST_CASE("After a change a watch reads only the changed znodes, and reports everything") {
  SurveyBench bench{"/l"};
  const std::string first = bench.Join();
  bench.Join();
  Watching watching(bench, "/l");
  watching.scribe.Take();
  SECTION("a contender joins") {
    bench.Join();
    CHECK(watching.Go() == Strings{"list /l", "get /l", "get /l/_c_x-lock-0000000002"});
    CHECK(watching.scribe.told == Strings{"/l 1/2", "1 _c_x-lock-0000000000",
                                          "2 _c_x-lock-0000000001", "3 _c_x-lock-0000000002",
                                          "end /l", "all"});
  }
  SECTION("a contender leaves") {
    bench.servers.Remove(first);
    CHECK(watching.Go() == Strings{"list /l", "get /l"});
    CHECK(watching.scribe.told == Strings{"/l 1/0", "1 _c_x-lock-0000000001", "end /l", "all"});
  }
  CHECK(watching.Go().empty());
}

TEST_CASE("Many changes at the same time cause one survey of a watch") {
  SurveyBench bench{"/l"};
  Watching watching(bench, "/l");
  watching.scribe.Take();
  bench.Join("/l", 20);
  watching.Go();
  const auto& told = watching.scribe.told;
  CHECK(std::count(told.begin(), told.end(), "all") == 1);
}

TEST_CASE("A watch does not miss a change during its survey") {
  SurveyBench bench{"/l"};
  bench.Join();
  bench.store.Before("get /l/_c_x-lock-", [&] { bench.Join(); });
  Watching watching(bench, "/l");
  watching.Go();
  CHECK(watching.scribe.told == Strings{"/l 1/0", "1 _c_x-lock-0000000000", "end /l", "all",
                                        "/l 1/1", "1 _c_x-lock-0000000000",
                                        "2 _c_x-lock-0000000001", "end /l", "all"});
}

TEST_CASE("A watch finds a lock that is created later") {
  SurveyBench bench;
  Watching watching(bench, "/l");
  CHECK(watching.scribe.Take() == Strings{"/l 0/0", "end /l", "all"});
  CHECK(watching.Go().empty());
  bench.servers.Put("/l", 0);
  bench.Join();
  watching.Go();
  CHECK(watching.scribe.told == Strings{"/l 1/0", "1 _c_x-lock-0000000000", "end /l", "all"});
}

TEST_CASE("A watch finds a lock that is deleted and created again") {
  SurveyBench bench{"/l"};
  Watching watching(bench, "/l");
  watching.scribe.Take();
  bench.servers.Remove("/l");
  watching.Go();
  CHECK(watching.scribe.Take() == Strings{"/l 0/0", "end /l", "all"});
  bench.servers.Put("/l", 0);
  bench.Join();
  watching.Go();
  CHECK(watching.scribe.told.front() == "/l 1/0");
}

TEST_CASE("A watch reads everything again over a new connection") {
  for (const bool expires : {false, true}) {
    CAPTURE(expires);
    SurveyBench bench{"/l"};
    bench.Join();
    Watching watching(bench, "/l");
    watching.scribe.Take();
    if (expires) {
      bench.store.Expire();
    } else {
      bench.store.Disconnect();
    }
    bench.Join();
    bench.store.Run();
    CHECK(watching.scribe.told ==
          Strings{"/l 1/1", "1 _c_x-lock-0000000000", "2 _c_x-lock-0000000001", "end /l", "all"});
    watching.Go();
    watching.scribe.Take();
    bench.Join();
    watching.Go();
    CHECK(watching.scribe.told.front() == "/l 1/2");
  }
}

TEST_CASE("A watch may lose any number of connections") {
  SurveyBench bench{"/l"};
  Watching watching(bench, "/l");
  for (int i = 0; i < 50; ++i) {
    bench.store.Disconnect();
    bench.store.Run();
  }
  CHECK_FALSE(watching.survey.IsOver());
}

TEST_CASE("Watching ends after too long without a server") {
  SurveyBench bench{"/l"};
  Watching watching(bench, "/l");
  bench.store.Disconnect();
  bench.clock.Advance(15s);
  watching.survey.OnReady(0);
  REQUIRE(watching.survey.failure());
  CHECK(std::holds_alternative<Unreachable>(*watching.survey.failure()));
}

TEST_CASE("A watch fills a larger screen from the cache and from the servers") {
  SurveyBench bench{"/l"};
  bench.Join("/l", 3);
  Watching watching(bench, "/l");
  watching.survey.Repeat(1);
  CHECK(watching.Go().empty());
  watching.scribe.Take();
  watching.survey.Repeat(2);
  CHECK(watching.Go().empty());
  CHECK(watching.scribe.told ==
        Strings{"/l 1/2", "1 _c_x-lock-0000000000", "2 _c_x-lock-0000000001", "end /l", "all"});
}

}  // namespace zklock::lock
