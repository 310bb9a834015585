// Reservations: locks that outlive the zklock that acquired them, until they are released.

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "cli/inspect/inspect_output.h"
#include "cli/queue/lock_peer.h"
#include "cli/reserve/reserving.h"
#include "cli/skewed_clock.h"
#include "cli/zklock.h"
#include "support/contender_names.h"
#include "support/peer.h"
#include "support/source.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

using nlohmann::json;

Exit Try(const std::string& lock) { return RunZklock({"try", lock, "--", "true"}).exit; }

/// Returns `zklock WORDS` on a host whose clock is wrong.
ChildOptions Skewed(const std::string& seconds, const Words& words) {
  return WithSkewedClock(Zklock(words), seconds);
}
constexpr char kThreeDaysAhead[] = "259200";
constexpr char kThreeDaysBehind[] = "-259200";

}  // namespace

TEST_CASE("the reservation stories of a pipeline, a freeze and a rack work as written") {
  ChildOptions options = Zklock({});
  options.argv = {SourcePath("tests/cli/reserve/reservation-stories"), Binary(),
                  NewLock("stories")};
  const Finished finished = Run(options, Exited(0));
  CHECK(finished.err.empty());
  for (const char* const line : {"build2  job 3 of pipeline 42 has released staging",
                                 "/ci/deploy reserved: freeze until DATE: incident 4711 1 DATE",
                                 "rack1   went down: host1 host2 host3 host4 host5",
                                 "rack1   came back: host1 host2 host4 host5",
                                 "rack1   both are back, and all permits are free"}) {
    CHECK_THAT(finished.out, Catch::Contains(line));
  }
}

TEST_CASE("inspect shows the ID for which a waiter will reserve the lock and the reason") {
  auto [lock, holder] = HoldNewLock("reserve");
  Child waiter = Child::Start(
      Zklock({"exclusive", "-v", "--reserve", "freeze", "--reason", "incident 4711", lock}));
  waiter.ReadErrUntil("waiting for");
  CHECK_THAT(RunZklock({"inspect", lock}).out,
             Catch::Contains("  to reserve for freeze: incident 4711\n"));
  const json waiting = json::parse(RunZklock({"inspect", "--json", lock}).out)[0]["contenders"][1];
  CHECK(waiting["reserve"] == json{{"id", "freeze"}, {"reason", "incident 4711"}});
  CHECK(waiting["reservation"] == nullptr);
  holder.CloseInput();
  CHECK(waiter.Wait() == Exited(0));
  const json reserved = json::parse(RunZklock({"inspect", "--json", lock}).out)[0]["contenders"][0];
  CHECK(reserved["reserve"] == nullptr);
  CHECK(reserved["reservation"]["reason"] == "incident 4711");
}

TEST_CASE("a lock stays reserved after zklock has ended, until it is released") {
  const std::string mode = GENERATE(as<std::string>{}, "exclusive", "write", "read", "try");
  const std::string lock = NewLock("reserve");
  REQUIRE(RunZklock({mode, "--reserve", "freeze", lock}).exit == Exited(0));
  RunZklock({"try", "--write", lock, "--", "true"}, Exited(75));
  RunZklock({"try", "--read", lock, "--", "true"}, Exited(mode == "read" ? 0 : 75));
  CHECK(FirstOf(lock)["state"] == "reserved");
  CHECK(Unreserve("thaw", lock) == Exited(75));
  CHECK(Unreserve("freeze", lock) == Exited(0));
  CHECK(Unreserve("freeze", lock) == Exited(75));
  CHECK(Try(lock) == Exited(0));
}

TEST_CASE("a command runs under the reservation of its ID at once, with the same token") {
  const std::string lock = NewLock("reserve");
  const auto token = [&] {
    const Finished finished =
        RunZklock(ReserveWords("ci", lock, {"-c", "echo $ZKLOCK_TOKEN; exit 3"}), Exited(3));
    return std::stoll(finished.out);
  };
  const Child waiter = [&] {
    Reserve("ci", lock);
    return StartWaiter(lock);
  }();
  const auto first = token();
  CHECK(token() == first);
  CHECK(FirstOf(lock)["token"] == std::to_string(first));
  // The token is older than the waiter's znode: it does not change with the runs under the
  // reservation.
  const Words children = InQueueOrder(Tree().Children(lock));
  REQUIRE(children.size() == 2);
  CHECK(Tree().Get(lock + "/" + children[1])->created_zxid > first);
}

TEST_CASE("a run that would wait for the reservation that it runs under is refused") {
  const std::string lock = NewLock("reserved");
  const auto below = [&](const Words& outer, Words inner) {
    inner.insert(inner.begin(), Binary());
    inner.insert(inner.end(), {lock, "--", "echo", "ran"});
    Words words = ReserveWords("ci", lock, outer);
    words.emplace_back("--");
    words.insert(words.end(), inner.begin(), inner.end());
    return RunZklock(words);
  };
  for (const Words& inner : {Words{"exclusive"}, Words{"read"}, Words{"exclusive", "--no-nest"},
                             Words{"write", "--reserve", "other"}}) {
    CAPTURE(inner);
    const Finished finished = below({}, inner);
    CHECK(finished.exit == Exited(64));
    CHECK_THAT(finished.err, Catch::Contains(lock + " is reserved for ci by an outer zklock"));
    CHECK(finished.out.empty());
  }
  CHECK(below({}, {"exclusive", "--reserve", "ci"}).exit == Exited(0));
  CHECK(below({}, {"exclusive", "--wait", "100ms"}).exit == Exited(75));
  CHECK(below({}, {"try"}).exit == Exited(75));
  RunZklock({"exclusive", "--reserve", "ci", lock, "--", Binary(), "inspect", "--mine", lock},
            Exited(76));
  // With two permits, one is free; with one, none is.
  for (const std::string number : {"1", "2"}) {
    const std::string semaphore = NewLock("reserved");
    RunZklock({"exclusive", "--reserve", "ci", "--permits", number, semaphore, "--", Binary(),
               "exclusive", "--permits", number, semaphore, "--", "true"},
              Exited(number == "1" ? 64 : 0));
  }
}

TEST_CASE("a run waits for a reservation whose run has ended, whatever the environment says") {
  const std::string lock = NewLock("reserved");
  const Finished outer =
      RunZklock({"exclusive", "--reserve", "ci", lock, "--", "sh", "-c", "echo $ZKLOCK_HELD"});
  REQUIRE_THAT(outer.out, Catch::Contains("-reserve-lock-"));
  Child waiter = Child::Start(With(HolderOptions({"exclusive"}, lock),
                                   {"ZKLOCK_HELD=" + outer.out.substr(0, outer.out.size() - 1)}));
  CHECK(Tree().WaitForChildren(lock, 2).size() == 2);
  CHECK(Unreserve("ci", lock) == Exited(0));
  CHECK(waiter.ReadLine() == "held");
}

TEST_CASE("zklock passes signals to a command under a reservation, and the reservation stays") {
  const std::string lock = NewLock("reserve");
  Child child = Child::Start(Zklock(ReserveWords(
      "ci", lock, {"-c", "trap 'echo told; exit 4' TERM; echo up; sleep 1000 & wait"})));
  REQUIRE(child.ReadLine() == "up");
  child.Signal(SIGTERM);
  CHECK(child.ReadLine() == "told");
  CHECK(child.Wait() == Exited(4));
  CHECK(FirstOf(lock)["reservation"]["id"] == "ci");
}

TEST_CASE("nothing ends a command whose reservation is released or taken away") {
  const std::string lock = NewLock("reserve");
  const bool by_force = GENERATE(false, true);
  ChildOptions options = Zklock(ReserveWords("ci", lock, {"-c", "echo up; read go; echo on"}));
  options.keep_stdin = true;
  Child child = Child::Start(options);
  REQUIRE(child.ReadLine() == "up");
  if (by_force) {
    const std::string name = FirstOf(lock)["name"];
    RunZklock({"release", "--force", "--contender", name, "--yes", lock}, Exited(0));
  } else {
    CHECK(Unreserve("ci", lock) == Exited(0));
  }
  CHECK(Try(lock) == Exited(0));
  child.Write("\n");
  CHECK(child.ReadLine() == "on");
  CHECK(child.Wait() == Exited(0));
  CHECK_THAT(child.err(), Catch::Contains(lock + " is no longer reserved for ci"));
}

TEST_CASE("a second INT ends the check whether the reservation still exists") {
  Proxy proxy(TestServers());
  Child child = Child::Start(
      Zklock({"exclusive", "-z", proxy.address(), "--reserve", "ci", NewLock("reserve"), "-c",
              "trap 'exit 4' INT; echo up;"
              "while :; do sleep 0.01; done"}));
  REQUIRE(child.ReadLine() == "up");
  proxy.Freeze();
  child.Signal(SIGINT);
  proxy.WaitForConnections(2);
  child.Signal(SIGINT);
  CHECK(child.Wait() == Exited(4));
  CHECK_THAT(child.err(), !Catch::Contains("cannot tell"));
}

TEST_CASE("a run waits for another ID's reservation and finds its own ID's while it waits") {
  auto [lock, holder] = HoldNewLock("reserve");
  Child first = WaitToReserve("ci", lock);
  Child same = WaitToReserve("ci", lock);
  Child other = WaitToReserve("other", lock);
  holder.CloseInput();
  CHECK(first.Wait() == Exited(0));
  CHECK(same.Wait() == Exited(0));
  Tree().WaitForChildren(lock, 2);
  CHECK(FirstOf(lock)["reservation"]["id"] == "ci");
  CHECK_FALSE(other.HasEnded());
  CHECK(Unreserve("ci", lock) == Exited(0));
  CHECK(other.Wait() == Exited(0));
  CHECK(FirstOf(lock)["reservation"]["id"] == "other");
}

TEST_CASE("two callers with one ID make one reservation, a hundred times", "[slow]") {
  const std::string lock = NewLock("reserve");
  Tree tree;
  for (int round = 0; round < 100; ++round) {
    Child first = Child::Start(Zklock(ReserveWords("ci", lock)));
    Child second = Child::Start(Zklock(ReserveWords("ci", lock)));
    REQUIRE(first.Wait() == Exited(0));
    REQUIRE(second.Wait() == Exited(0));
    REQUIRE(tree.Children(lock).size() == 1);
    REQUIRE(Unreserve("ci", lock) == Exited(0));
    REQUIRE(tree.Children(lock).empty());
  }
}

TEST_CASE("several LOCKs are reserved together or not at all, and released one by one") {
  const std::string first = NewLock("reserve");
  const std::string second = NewLock("reserve");
  {
    const Child holder = StartHolder(second);
    RunZklock({"exclusive", "--nonblock", "--reserve", "ci", first, second}, Exited(75));
    CHECK(Tree().Children(first).empty());
  }
  RunZklock({"exclusive", "--reserve", "ci", first, "--also-read", second}, Exited(0));
  CHECK(FirstOf(first)["mode"] == "exclusive");
  CHECK(FirstOf(second)["mode"] == "read");
  CHECK(Unreserve("ci", second) == Exited(0));
  // If part of a release fails, the messages name both parts.
  CHECK(RunZklock({"release", "--reserve", "ci", second, first}, Exited(75)).err ==
        "zklock: " + second + " is not reserved for ci\nzklock: released " + first +
            ", which was reserved for ci\n");
  CHECK(Try(first) == Exited(0));
}

TEST_CASE("a reservation that ends while its run waits for another LOCK is made anew") {
  const bool is_released = GENERATE(false, true);
  const std::string first = NewLock("reserve-a");
  const std::string second = first + "-b";
  Words reserve = {"exclusive", "--reserve", "pipeline"};
  if (!is_released) reserve.insert(reserve.end(), {"--for", "1s"});
  RunZklock(reserve + Words{first}, Exited(0));
  Child other = StartHolder(second);
  Child run =
      Child::Start(HolderOptions({"exclusive", "-v", "--reserve", "pipeline", first}, second));
  run.ReadErrUntil("waiting for " + second);
  if (is_released) {
    RunZklock({"release", first, "--reserve", "pipeline"}, Exited(0));
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // past the end
  }
  CHECK(Finish(other) == Exited(0));
  CHECK(run.ReadLine() == "held");
  CHECK(Try(first) == Exited(75));
  CHECK(Try(second) == Exited(75));
  CHECK(Finish(run) == Exited(0));
}

TEST_CASE("an ID has one permit, and others have the rest") {
  const std::string lock = NewLock("reserve");
  const Words permits = {"--permits", "2"};
  Reserve("web1", lock, permits);
  Reserve("web1", lock, permits);
  Reserve("web2", lock, permits);
  Child third = WaitToReserve("web3", lock, permits);
  CHECK_THAT(RunZklock({"inspect", lock}).out, Catch::Contains("2 of 2 permits used, 0 free"));
  CHECK(Unreserve("web1", lock) == Exited(0));
  CHECK(third.Wait() == Exited(0));
  CHECK(Unreserve("web2", lock) == Exited(0));
  CHECK(Unreserve("web3", lock) == Exited(0));
}

TEST_CASE("a command runs under the reservation that --resume finds, and not without one") {
  const std::string lock = NewLock("reserve");
  const std::string other = NewLock("reserve");
  const auto resume = [](const Words& locks) {
    Words words = Words{"exclusive", "--resume", "ci"} + locks +
                  Words{"--", "sh", "-c", "echo $ZKLOCK_TOKEN"};
    return RunZklock(words);
  };
  Finished finished = resume({lock});
  CHECK(finished.exit == Exited(75));
  CHECK(finished.out.empty());
  CHECK_THAT(finished.err, Catch::Contains(lock + " is not (or no longer) reserved for ci"));
  CHECK_FALSE(Tree().Exists(lock));

  Reserve("ci", lock, {"--for", "1h"});
  Reserve("other", other);
  finished = resume({lock});
  CHECK(finished.exit == Exited(0));
  CHECK(finished.out == FirstOf(lock)["token"].get<std::string>() + "\n");
  finished = resume({lock, other});
  CHECK(finished.exit == Exited(75));
  CHECK_THAT(finished.err, Catch::Contains(other + " is not (or no longer) reserved for ci"));
  RunZklock({"read", "--resume", "ci", lock, "--", "true"}, Exited(78));

  CHECK(Unreserve("ci", lock) == Exited(0));
  CHECK(resume({lock}).exit == Exited(75));
  CHECK(Tree().Children(lock).empty());
}

TEST_CASE("a reservation of a permit is used with the number of permits that it was made with") {
  const std::string semaphore = NewLock("reserve");
  const std::string lock = NewLock("reserve");
  Reserve("ci", semaphore, {"--permits", "3"});
  Reserve("ci", lock);
  const auto resume = [](const Words& permits, const std::string& path) {
    Words words = Words{"exclusive", "--resume", "ci"} + permits + Words{path};
    Words dry = words + Words{"--dry-run", "--", "true"};
    Finished finished = RunZklock(words + Words{"--", "echo", "it ran"});
    // A dry run prints its findings, and ends with the same status as the run.
    CHECK(RunZklock(dry).exit == finished.exit);
    return finished;
  };
  const auto reserve = [](const Words& permits, const std::string& path) {
    Words words = Words{"exclusive", "--reserve", "ci", "--for", "1h"} + permits + Words{path};
    Words dry = words + Words{"--dry-run"};
    Finished finished = RunZklock(words + Words{"--", "echo", "it ran"});
    CHECK(RunZklock(dry).exit == finished.exit);
    return finished;
  };
  for (const auto& run : {std::function(resume), std::function(reserve)}) {
    CHECK(run({"--permits", "3"}, semaphore).out == "it ran\n");
    CHECK(run({}, lock).out == "it ran\n");
    for (const auto& [permits, path, why] :
         {std::tuple(Words{"--permits", "2"}, semaphore, "it is in use with --permits 3"),
          std::tuple(Words{}, semaphore, "it is in use as a semaphore"),
          std::tuple(Words{"--permits", "3"}, lock, "it is in use without permits")}) {
      CAPTURE(permits, path);
      const Finished refused = run(permits, path);
      CHECK(refused.exit == Exited(78));
      CHECK(refused.out.empty());
      CHECK_THAT(refused.err, Catch::Contains(path + " cannot be used: " + why));
    }
  }
  // A run that is refused does not renew the reservation.
  CHECK(FirstOf(lock)["reservation"]["until"].is_null());
}

TEST_CASE("without a server --resume waits for --connect-timeout, not for a session's timeout") {
  const auto begin = std::chrono::steady_clock::now();
  RunZklock({"exclusive", "-z", "127.0.0.1:1", "--connect-timeout", "100ms", "--resume", "ci",
             NewLock("reserve"), "--", "true"},
            Exited(69));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
}

TEST_CASE("a reservation that has ended is not resumed, though nobody has deleted it") {
  const std::string lock = NewLock("reserve");
  Reserve("ci", lock, {"--for", "500ms"});
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  CHECK(RunZklock({"exclusive", "--resume", "ci", lock, "--", "true"}, Exited(75)).err ==
        "zklock: " + lock + " is not (or no longer) reserved for ci; the command was not run\n");
  CHECK(Tree().Children(lock).size() == 1);
}

TEST_CASE("a second --reserve with --for renews all its reservations, and never shortens one") {
  const std::string lock = NewLock("reserve");
  const std::string other = NewLock("reserve");
  const auto reserve = [&](const std::string& lasts) {
    RunZklock({"exclusive", "--reserve", "ci", "--for", lasts, lock, other}, Exited(0));
  };
  const auto end_of = [](const std::string& one) { return FirstOf(one)["reservation"]["until"]; };
  reserve("1h");
  const json first = end_of(lock);
  reserve("30m");
  CHECK(end_of(lock) == first);
  reserve("3h");
  CHECK(end_of(lock) > first);
  CHECK(end_of(other) > first);
  CHECK(end_of(lock).is_string());
}

TEST_CASE("a renewal stores a new reason and label, and nothing else changes them") {
  const std::string lock = NewLock("reserve");
  const auto reserve = [&](const Words& more) {
    return Run(Zklock(ReserveWords("ci", lock, more)), Exited(0)).err;
  };
  const auto check = [&](const std::string& reason, const std::string& label) {
    const json first = FirstOf(lock);
    CHECK(first["reservation"]["reason"] == reason);
    CHECK(first["label"] == label);
  };
  // If the reservation has no end, --for does not add one, and a message says so.
  const bool has_end = GENERATE(false, true);
  const Words first = {"--reason", "audit", "--label", "one"};
  CHECK(reserve(has_end ? first + Words{"--for", "1h"} : first).empty());
  CHECK(reserve({"--for", "1m"}).empty() == has_end);
  check("audit", "one");
  CHECK(reserve({"--for", "1m", "--reason", "thaw"}).empty() == has_end);
  check("thaw", "one");
  CHECK(reserve({"--for", "2h", "--label", "two"}).empty() == has_end);
  check("thaw", "two");
  CHECK(FirstOf(lock)["reservation"]["until"].is_string() == has_end);
  CHECK(reserve({"--reason", "thaw", "--label", "three"}).empty());
  CHECK(
      reserve({"--reason", "other"}) ==
      "zklock: " + lock +
          " stays reserved for ci with its reason unchanged: only a renewal (--for) changes it\n");
  check("thaw", "two");
}

TEST_CASE("Curator and kazoo programs wait for a reservation made before or while they queue") {
  struct Other {
    LockPeer (*peer)();
    std::string recipe;
    Words dialect;
  };
  const Other other = GENERATE(Other{LockPeer::Curator, "mutex", {}},
                               Other{LockPeer::Kazoo, "lock", {"--dialect", "kazoo"}});
  LockPeer peer = other.peer();
  Tree tree;
  const std::string lock = NewLock("reserve");
  REQUIRE(peer.Ask("job", "make " + other.recipe + " " + lock) == "made");

  Reserve("freeze", lock, other.dialect);
  CHECK(peer.Ask("job", "acquire 200") == "busy");
  peer.Tell("job", "acquire");
  tree.WaitForChildren(lock, 2);
  CHECK(Unreserve("freeze", lock) == Exited(0));
  CHECK(peer.Answer("job") == "acquired");

  // Now the reservation is made while the other program waits: its predecessor is deleted and
  // replaced.
  Child first = WaitToReserve("freeze", lock, other.dialect);
  REQUIRE(peer.Ask("late", "make " + other.recipe + " " + lock) == "made");
  peer.Tell("late", "acquire");
  tree.WaitForChildren(lock, 3);
  CHECK(peer.Ask("job", "release") == "released");
  CHECK(first.Wait() == Exited(0));
  CHECK(FirstOf(lock)["state"] == "reserved");
  tree.WaitForChildren(lock, 2);
  // "late" does not answer until it holds the lock, so only another acquire can show that the lock
  // is taken.
  CHECK(peer.Ask("third", "make " + other.recipe + " " + lock) == "made");
  CHECK(peer.Ask("third", "acquire 200") == "busy");
  CHECK(Unreserve("freeze", lock) == Exited(0));
  CHECK(peer.Answer("late") == "acquired");
}

TEST_CASE("a reservation ends by the servers' clock, whatever the clocks of the hosts say") {
  const std::string lock = NewLock("reserve");
  SECTION("not before") {
    REQUIRE(Run(Skewed(kThreeDaysBehind, ReserveWords("ci", lock, {"--for", "1h"}))).exit ==
            Exited(0));
    // By this host's clock, the reservation ended long ago.
    const Words words = {"exclusive", "--wait", "2s", lock, "--", "true"};
    Run(Skewed(kThreeDaysAhead, words), Exited(75));
    CHECK(FirstOf(lock)["reservation"]["overdue"] == false);
  }
  SECTION("and then at once") {
    REQUIRE(Run(Skewed(kThreeDaysAhead, ReserveWords("ci", lock, {"--for", "6s"}))).exit ==
            Exited(0));
    CHECK(Try(lock) == Exited(75));
    Run(Skewed(kThreeDaysBehind, {"exclusive", lock, "--", "true"}), Exited(0));
    CHECK(Unreserve("ci", lock) == Exited(75));
  }
}

TEST_CASE("a reservation that has ended is not found again, but made anew") {
  const std::string lock = NewLock("reserve");
  Reserve("ci", lock, {"--for", "1s"});
  const std::string first = FirstOf(lock)["token"];
  // Waits for the end of the reservation.
  RunZklock(ReserveWords("other", lock), Exited(0));
  CHECK(Unreserve("other", lock) == Exited(0));
  Reserve("ci", lock);
  CHECK(std::stoll(FirstOf(lock)["token"].get<std::string>()) > std::stoll(first));
}

TEST_CASE("an overdue reservation is deleted although another program directly follows it") {
  auto [tree, lock] = MadeLock("reserve", "zklock/1");
  const bool is_kazoo = GENERATE(false, true);
  const Words dialect = is_kazoo ? Words{"--dialect", "kazoo"} : Words{};
  Words words = Words{"--for", "2s"} + dialect;
  Reserve("freeze", lock, words);
  std::optional<LockPeer> kazoo;
  if (is_kazoo) {
    kazoo = LockPeer::Kazoo();
    REQUIRE(kazoo->Ask("job", "make lock " + lock) == "made");
    kazoo->Tell("job", "acquire");
  } else {
    tree.Create(lock + "/" + kCuratorLock, ZnodeKind::kEphemeralSequential);
  }
  const std::string other = InQueueOrder(tree.WaitForChildren(lock, 2)).back();
  Words waits = Words{"exclusive"} + dialect;
  Child waiter = StartWaiter(waits, lock);
  if (is_kazoo) {
    CHECK(kazoo->Answer("job") == "acquired");
    CHECK(InQueueOrder(tree.WaitForChildren(lock, 2)).front() == other);
    CHECK(kazoo->Ask("job", "release") == "released");
  } else {
    CHECK(InQueueOrder(tree.WaitForChildren(lock, 2)).front() == other);
    tree.Delete(lock + "/" + other);
  }
  CHECK(waiter.ReadLine() == "held");
}

TEST_CASE("an overdue reservation is deleted by a zklock after one that lacks DELETE") {
  const std::string chief_user = "operator:oak";
  Tree chief(chief_user);
  const std::string lock = chief.Create(NewLock("reserve"), ZnodeKind::kPersistent, "zklock/1");
  Reserve("freeze", lock, {"--for", "2s"});
  chief.SetAcl(lock,
               {{chief_user, kRead | kWrite | kCreate | kDelete | kAdmin}, {"", kRead | kCreate}});
  Child first = StartWaiter(lock);
  Child second = Child::Start(
      With(HolderOptions({"exclusive", "--verbose"}, lock), {"ZKLOCK_AUTH=digest:" + chief_user}));
  second.ReadErrUntil("waiting for " + lock);
  first.ReadErrUntil("cannot delete the reservation of " + lock + " for freeze, which ended at ");
  second.ReadErrUntil("deleted the reservation of " + lock + " for freeze");
  CHECK(first.ReadLine() == "held");
}

TEST_CASE("a zklock that is interrupted before its turn leaves nothing") {
  auto [lock, holder] = HoldNewLock("reserve");
  Child waiter = WaitToReserve("ci", lock);
  waiter.Signal(SIGTERM);
  CHECK(waiter.Wait() == Exited(128 + SIGTERM));
  CHECK(Tree().Children(lock).size() == 1);
}

TEST_CASE("only --reserve, or --force with the name, releases a reservation") {
  const std::string lock = NewLock("reserve");
  Reserve("ci", lock);
  const Child waiter = StartWaiter(lock);
  const std::string name = FirstOf(lock)["name"];
  for (const Words& words :
       {Words{"--holders"}, Words{"--holders", "--force"}, Words{"--contender", name}}) {
    CAPTURE(words);
    CHECK_THAT(RunZklock(Words{"release", "--yes", lock} + words, Exited(75)).err,
               Catch::Contains(lock + " stays reserved for ci; use --reserve ci"));
  }
  RunZklock({"release", "--yes", "--all", lock}, Exited(75));
  Tree().WaitForChildren(lock, 1);  // the waiter was asked
  CHECK(FirstOf(lock)["name"] == name);
  RunZklock({"release", "--yes", "--force", "--contender", name, lock}, Exited(0));
  CHECK(Tree().Children(lock).empty());
}

TEST_CASE("a reservation is released however many others hold the lock") {
  const std::string lock = NewLock("reserve");
  Tree tree;
  const auto reserve = [&](const std::string& id, int number) {
    // Each permit belongs to a different run.
    std::string uuid = kUuid;
    uuid.replace(0, 8, std::to_string(10'000'000 + number));
    tree.Create(Numbered(lock + "/leases/web1-" + uuid + "-reserve-lease-", number),
                ZnodeKind::kPersistent,
                R"({"version":1,"reservation":{"id":")" + id + R"(","token":1}})");
  };
  for (int i = 0; i < 256; ++i) reserve("other", i);
  reserve("ci", 256);
  CHECK(Unreserve("ci", lock) == Exited(0));
  CHECK(tree.Children(lock + "/leases").size() == 256);
}

TEST_CASE("a child that only looks like a reservation is not one") {
  const std::string lock = NewLock("reserve");
  Tree tree;
  const std::string data = R"({"version":1,"reservation":{"id":"ci","token":1}})";
  SECTION("an ephemeral znode is a contender") {
    tree.Create(lock + "/web1-" + kUuid + "-reserve-lock-", ZnodeKind::kEphemeralSequential, data);
    CHECK(FirstOf(lock)["state"] == "held");
    CHECK(FirstOf(lock)["reservation"].is_null());
    CHECK(Unreserve("ci", lock) == Exited(75));
    RunZklock({"try", "--reserve", "ci", lock}, Exited(75));
  }
  SECTION("a persistent znode with another name or invalid data reserves nothing") {
    const auto [name, text] = GENERATE_COPY(table<std::string, std::string>(
        {{"lock-0000000000", data},
         {"reserve-lock-0000000000", ""},
         {"reserve-lock-0000000000", R"({"reservation":{"id":"a b","token":1}})"},
         {"reserve-lock-0000000000", R"({"reservation":{"id":"ci","token":9000000000000000000}})"},
         {"reserve-lock-0000000000", std::string(900000, 'x')},
         {"reserve-lock-0000000000", "\xff\xfe{"}}));
    tree.Create(lock + "/web1-" + kUuid + "-" + name, ZnodeKind::kPersistent, text);
    CHECK(Unreserve("ci", lock) == Exited(75));
    RunZklock({"try", "--reserve", "ci", lock}, Exited(78));
    RunZklock({"inspect", "-q", lock}, Exited(0));
  }
}

TEST_CASE("a reservation made with credentials can be released only with them") {
  const std::string lock = Tree().Create(NewLock("reserve")) + "/lock";
  const auto as = [](const std::string& user, const Words& words) {
    return Run(With(Zklock(words), {"ZKLOCK_AUTH=digest:" + user}));
  };
  const std::string alice = "alice:tulip";
  CHECK(as(alice, ReserveWords("ci", lock, {"--for", "1s"})).exit == Exited(0));
  for (const std::string user : {"bob:rose"}) {
    const Finished finished = as(user, {"release", "--reserve", "ci", lock});
    CHECK(finished.exit == Exited(77));
    CHECK_THAT(finished.err, Catch::Contains("DELETE") && Catch::Contains(lock));
  }
  CHECK(as(alice, {"release", "--reserve", "ci", lock}).exit == Exited(0));
}

TEST_CASE("inspect shows a reservation in all of its forms") {
  // Not a container znode, which the servers may delete together with its record of the release.
  const std::string lock = Tree().Create(NewLock("reserve"), ZnodeKind::kPersistent, "zklock/1");
  Reserve("freeze", lock, {"--for", "4h", "--reason", "incident 4711"});
  const std::string text = RunZklock({"inspect", lock}).out;
  CHECK(std::regex_search(
      text, std::regex("  1  reserved  exclusive .* freeze until [-0-9]+ [:0-9]+: incident 4711")));
  CHECK(std::regex_search(
      RunZklock({"inspect", lock.substr(0, lock.rfind('/'))}).out,
      std::regex(lock + " +reserved: freeze until [-0-9]+ [:0-9]+: incident 4711")));
  CHECK_THAT(RunZklock({"inspect", "--dot", lock}).out,
             Catch::Contains("1 reserved exclusive\\nfreeze until "));
  RunZklock({"inspect", "-q", lock}, Exited(75));

  CheckSchema(RunZklock({"inspect", "--json", lock}).out);
  const json contender = FirstOf(lock);
  CHECK(contender["session"].is_null());
  CHECK(contender["sinceExact"] == true);
  CHECK(contender["reservation"]["id"] == "freeze");
  CHECK(contender["reservation"]["reason"] == "incident 4711");
  CHECK(contender["reservation"]["until"].is_string());

  Child watcher = Child::Start(Zklock({"inspect", "--watch", lock}));
  CHECK(json::parse(watcher.ReadLine())["contenders"][0]["state"] == "reserved");
  CHECK(Unreserve("freeze", lock) == Exited(0));
  CHECK(json::parse(watcher.ReadLine())["held"] == false);
  CHECK_THAT(RunZklock({"inspect", lock}).out, Catch::Contains("last reserved on "));
}

TEST_CASE("a waiter names the reservation that it waits for") {
  const std::string lock = NewLock("reserve");
  Reserve("freeze", lock, {"--for", "4h", "--reason", "incident 4711"});
  // The message names the last contender ahead: here, the reservation.
  CHECK_THAT(RunZklock({"try", lock, "--", "true"}, Exited(75)).err,
             Catch::Contains(lock + " is reserved for freeze until ") &&
                 Catch::Contains("; the command was not run"));
  Child waiter = Child::Start(Zklock({"exclusive", lock, "--", "true"}));
  // If the look-up of the reservation takes too long, only the next line shows it.
  waiter.ReadErrUntil("; reserved for freeze until ", 2 * kPatience);
}

TEST_CASE("the events of a reservation say whether it is new") {
  const std::string lock = NewLock("reserve");
  const TemporaryDirectory directory;
  const auto run = [&](const Words& more) {
    Words words = Words{"--events", directory.Path("events")} + more;
    RunZklock(ReserveWords("freeze", lock, words), Exited(0));
    std::vector<json> events;
    for (const std::string& line : Lines(directory.Read("events"))) {
      events.push_back(json::parse(line));
    }
    return events;
  };
  const json made = run({}).back();
  CHECK(made["event"] == "reserved");
  CHECK(made["id"] == "freeze");
  CHECK(made["new"] == true);
  CHECK(made["contender"] == FirstOf(lock)["name"]);
  CHECK(made["token"] == FirstOf(lock)["token"]);
  const std::vector<json> events = run({"-c", "true"});
  CHECK(events.back()["event"] == "exited");
  const auto found = std::find_if(events.rbegin(), events.rend(),
                                  [](const json& event) { return event["event"] == "reserved"; });
  REQUIRE(found != events.rend());
  CHECK((*found)["new"] == false);
  CHECK((*found)["token"] == made["token"]);
}

TEST_CASE("completion offers the IDs of reservations") {
  const std::string above = NewLock("reserve");
  Reserve("freeze", above + "/a");
  Reserve("frozen", above + "/b");
  const auto offers = [&](const Words& words, const std::string& expected) {
    Words complete = Words{"--complete", "release"} + words;
    // On a busy machine the servers may take longer than the 300 ms that a completion waits.
    const auto until = std::chrono::steady_clock::now() + kPatience;
    std::string out = RunZklock(complete).out;
    while (out != expected && std::chrono::steady_clock::now() < until) {
      out = RunZklock(complete).out;
    }
    CHECK(out == expected);
  };
  offers({above + "/a", "--reserve", ""}, "freeze\n");
  offers({"--root", above, "--reserve", "fr"}, "freeze\nfrozen\n");
  offers({"--root", above, "--reserve=fro"}, "--reserve=frozen\n");
}

}  // namespace zklock::test
