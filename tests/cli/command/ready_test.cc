// zklock forks the guard and the command while the servers are still committing the write that
// acquires the lock. These tests cover what can happen in the meantime.

#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/read_file.h"
#include "cli/command/forks.h"
#include "cli/gate.h"
#include "cli/zklock.h"
#include "process/tree/process_tree.h"
#include "protocol/queue_ahead.h"
#include "support/contender_names.h"
#include "support/peer.h"
#include "support/process.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

using namespace std::chrono_literals;

struct Ready {
  pid_t guard = 0;
  pid_t command = 0;
};

/// Waits until zklock has forked guard and command, and the guard has left its session.
Ready WaitForReady(const Child& zklock) {
  return WaitFor([&]() -> std::optional<Ready> {
    for (const pid_t guard : process::ChildrenOf(zklock.pid())) {
      const auto commands = process::ChildrenOf(guard);
      if (!commands.empty() && getsid(guard) == guard) return Ready{guard, commands.front()};
    }
    return {};
  });
}

/// Waits until zklock has reaped all its children.
void WaitUntilChildless(const Child& zklock) {
  WaitUntil([&] { return process::ChildrenOf(zklock.pid()).empty(); });
}

std::string ProgramOf(pid_t pid) {
  return std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe").string();
}

/// A zklock whose create was committed but not yet answered, with guard and command forked.
struct Joining {
  explicit Joining(const std::string& name, const Words& words = {"exclusive"},
                   const Forks& forks = {}, const std::function<void()>& prepare = {})
      : lock(NewPersistentLock(name)), gate("create " + lock), zklock([&] {
          ChildOptions options = forks.Use(gate.Before(HolderOptions(words, lock)));
          options.prepare = prepare;
          return Child::Start(options);
        }()) {
    gate.WaitUntilReached();
    ready = WaitForReady(zklock);
  }
  const std::string lock;
  Gate gate;
  Child zklock;
  Ready ready;
};

}  // namespace

TEST_CASE("the command is forked while the servers commit, and executed when they answer") {
  Joining joining("ready");
  CHECK(ProgramOf(joining.ready.command) == std::filesystem::canonical(Binary()).string());
  joining.gate.Open();
  CHECK(joining.zklock.ReadLine() == "held");
  CHECK(ParentOf(joining.ready.command) == joining.ready.guard);
  CHECK(ProgramOf(joining.ready.command) != std::filesystem::canonical(Binary()).string());
  CHECK(Finish(joining.zklock) == Exited(0));
}

TEST_CASE("the guard has left the process group before the contender exists") {
  const std::string lock = NewPersistentLock("early");
  Gate gate("connect");
  Child zklock = Child::Start(gate.Before(HolderOptions({"exclusive"}, lock)));
  gate.WaitUntilReached();
  const Ready ready = WaitForReady(zklock);  // although zklock has no session yet
  CHECK(process::ReadProcessStat(ready.guard).value().name == "lock-guard");
  CHECK(getpgid(ready.command) == zklock.pid());
  SECTION("and closes the session created afterwards") {
    gate.Open();
    REQUIRE(zklock.ReadLine() == "held");
    CHECK(ParentOf(ready.command) == ready.guard);
    zklock.SignalGroup(SIGKILL);
  }
  SECTION("and closes nothing if no session was created") { zklock.SignalGroup(SIGKILL); }
  WaitUntilGone(ready.command);
  WaitUntilGone(ready.guard);
  // The guard ends only after the servers have answered its close.
  CHECK(Tree().Children(lock).empty());
}

TEST_CASE("no contender exists while a guard is in the process group") {
  const std::string lock = NewPersistentLock("slow");
  Forks forks;
  Gate gate("connect");
  forks.HoldGuards();
  const Child zklock = Child::Start(forks.Use(gate.Before(HolderOptions({"exclusive"}, lock))));
  gate.WaitUntilReached();
  const pid_t guard = WaitForChild(zklock.pid());
  gate.Open();
  Tree().WaitForChildren(lock, 1);
  CHECK_FALSE(process::ReadProcessStat(guard));  // that guard timed out; there may be a new one
}

TEST_CASE("a try creates no contender while its guard is in the process group") {
  const std::string lock = NewPersistentLock("try");
  Forks forks;
  Gate gate("create " + lock);
  forks.HoldGuards();
  const Child zklock = Child::Start(forks.Use(gate.Before(HolderOptions({"try"}, lock))));
  const pid_t guard = WaitForChild(zklock.pid());
  gate.WaitUntilReached();
  CHECK_FALSE(process::ReadProcessStat(guard));  // that guard timed out; there may be a new one
}

TEST_CASE("a fork refused before the session exists is tried again") {
  const std::string lock = NewPersistentLock("refused");
  Forks forks;
  Gate gate("connect");
  forks.Refuse();
  Child zklock = Child::Start(forks.Use(gate.Before(HolderOptions({"exclusive"}, lock))));
  forks.WaitForRefusal();
  gate.WaitUntilReached();
  forks.Allow();
  gate.Open();
  CHECK(zklock.ReadLine() == "held");
  CHECK(Finish(zklock) == Exited(0));
}

TEST_CASE("a set has a single guard that exists before its first contender") {
  const std::string lock = NewPersistentLock("several");
  Gate gate("connect");
  Child zklock =
      Child::Start(gate.Before(HolderOptions({"exclusive", lock + "-a", lock + "-b"}, lock)));
  gate.WaitUntilReached();
  const Ready ready = WaitForReady(zklock);
  gate.Open();
  CHECK(zklock.ReadLine() == "held");
  CHECK(ParentOf(ready.command) == ready.guard);
  CHECK(process::ChildrenOf(zklock.pid()) == std::vector<pid_t>{ready.guard});
  CHECK(Finish(zklock) == Exited(0));
}

TEST_CASE("only waiters with few contenders ahead of them have their guard and command ready") {
  const std::string lock = NewPersistentLock("next");
  Child holder = StartHolder({"exclusive", "--verbose"}, lock);
  Child next = Child::Start(HolderOptions({"exclusive", "--verbose"}, lock));
  next.ReadErrUntil("waiting for " + lock);
  const Ready ready = WaitForReady(next);
  Child other = Child::Start(HolderOptions({"exclusive", "--verbose"}, lock));
  other.ReadErrUntil("waiting for " + lock);
  WaitForReady(other);
  Tree tree;
  for (std::size_t i = 0; i < protocol::QueueAhead::kNear; ++i) {
    tree.Create(lock + "/" + kZklockLock, ZnodeKind::kEphemeralSequential, "");
  }
  Child far = Child::Start(HolderOptions({"exclusive", "--verbose"}, lock));
  far.ReadErrUntil("waiting for " + lock);
  WaitUntilChildless(far);
  SECTION("its command is the one that was forked") {
    REQUIRE(Finish(holder) == Exited(0));
    CHECK(next.ReadLine() == "held");
    CHECK(ParentOf(ready.command) == ready.guard);
  }
  SECTION("its guard closes its session when it is killed") {
    next.Signal(SIGKILL);
    WaitUntilGone(ready.command);
    WaitUntilGone(ready.guard);
    REQUIRE(Finish(holder) == Exited(0));
    CHECK(other.ReadLine() == "held");
  }
  SECTION("it forks again if its guard or its command was killed") {
    kill(GENERATE(true, false) ? ready.guard : ready.command, SIGKILL);
    WaitUntilGone(ready.command);
    REQUIRE(Finish(holder) == Exited(0));
    CHECK(next.ReadLine() == "held");
    CHECK(Finish(next) == Exited(0));
  }
}

TEST_CASE("a waiter for a permit, which blocks the turnstile, has its guard and command ready") {
  const std::string lock = NewPersistentLock("turn");
  const Words words = {"exclusive", "--verbose", "--permits", "1"};
  Child holder = StartHolder(words, lock);
  Child waiter = Child::Start(HolderOptions(words, lock));
  waiter.ReadErrUntil("waiting for " + lock);
  const Ready ready = WaitForReady(waiter);
  REQUIRE(Finish(holder) == Exited(0));
  CHECK(waiter.ReadLine() == "held");
  CHECK(ParentOf(ready.command) == ready.guard);
}

TEST_CASE("a signal during the commit ends the run before the command is executed") {
  Joining joining("signal");
  SECTION("before the answer") { joining.zklock.Signal(SIGTERM); }
  SECTION("together with the answer") {
    joining.zklock.Signal(SIGSTOP);
    joining.zklock.WaitUntilStopped();
    joining.zklock.Signal(SIGTERM);
    joining.gate.Open();
    // Give the answer time to arrive; if it does not, this section only repeats the one above.
    std::this_thread::sleep_for(100ms);
    joining.zklock.Signal(SIGCONT);
  }
  SECTION("to the whole group, as from a terminal") { joining.zklock.SignalGroup(SIGTERM); }
  joining.gate.Open();
  CHECK(joining.zklock.Wait() == Exited(128 + SIGTERM));
  CHECK(joining.zklock.out().empty());
  Tree().WaitForChildren(joining.lock, 0, 20s);  // well before the session would expire
  WaitUntilGone(joining.ready.command);
  WaitUntilGone(joining.ready.guard);
}

TEST_CASE("Ctrl-C at any moment ends the run, and reaches a command that has begun") {
  const bool nested = GENERATE(false, true);
  CAPTURE(nested);
  const std::string lock = NewPersistentLock("moment");
  std::deque<Proxy> proxies;  // a close that was sent late must still reach the server
  for (int i = 0; i < 100; ++i) {
    const Proxy& proxy = proxies.emplace_back(TestServers());
    const Words zklock = {Binary(), "exclusive", "-z", proxy.address(), lock, "--"};
    Words words(zklock.begin() + 1, zklock.end());
    words = words + (nested ? zklock : Words{}) + Words{"sleep", "1000"};
    Child child = Child::StartOnTerminal(Zklock(words));
    proxy.WaitForConnections(1);
    std::this_thread::sleep_for(i * (nested ? 200us : 100us));
    child.Write("\x03");
    CAPTURE(i);
    REQUIRE(child.Wait() == Killed(SIGINT));
  }
  Tree().WaitForChildren(lock, 0, 20s);  // well before the sessions would expire
}

TEST_CASE("a command stopped before it is executed does not block zklock") {
  Joining joining("stopped", {"exclusive", "--verbose"});
  REQUIRE(kill(joining.ready.command, SIGSTOP) == 0);
  joining.gate.Open();
  joining.gate.WaitUntilPassed();  // zklock holds the lock and refreshes it
  // As with Ctrl-Z: the shell waits until the whole job has stopped.
  joining.zklock.Signal(SIGTSTP);
  joining.zklock.WaitUntilStopped();
  CHECK(joining.zklock.err().find("running") == std::string::npos);
  joining.zklock.SignalGroup(SIGCONT);
  CHECK(joining.zklock.ReadLine() == "held");
  CHECK(Finish(joining.zklock) == Exited(0));
}

TEST_CASE("a signal while zklock reads the last run ends it before the command is executed") {
  const std::string lock = NewPersistentLock("asked");
  Gate gate("get " + lock + "/last-run");
  Child zklock =
      Child::Start(gate.Before(HolderOptions({"exclusive", "--min-interval", "1h"}, lock)));
  gate.WaitUntilReached();
  zklock.Signal(SIGTERM);
  CHECK(zklock.Wait() == Exited(128 + SIGTERM));
  CHECK(zklock.out().empty());
  gate.Open();
  Tree().WaitForChildren(lock, 0);
}

TEST_CASE("a signal while zklock records a run interrupts the recording") {
  const std::string lock = NewPersistentLock("recorded");
  Gate gate("create " + lock + "/last-run");
  Child zklock =
      Child::Start(gate.Before(HolderOptions({"exclusive", "--min-interval", "1h"}, lock)));
  CHECK(zklock.ReadLine() == "held");
  zklock.CloseInput();
  gate.WaitUntilReached();
  const auto told_at = std::chrono::steady_clock::now();
  zklock.Signal(SIGTERM);
  CHECK(zklock.Wait() == Exited(0));
  CHECK(std::chrono::steady_clock::now() - told_at < 20s);  // well before the lease ends
  zklock.ReadToEnd();
  CHECK_THAT(zklock.err(), Catch::Contains("--min-interval"));
}

TEST_CASE("a command that is stopped until the lock is lost does not start", "[slow]") {
  const std::string on_lost = GENERATE(values<std::string>({"stop", "warn"}));
  const bool from_birth = GENERATE(false, true);
  const bool ignores_term = GENERATE(false, true);
  CAPTURE(on_lost, from_birth, ignores_term);
  const Forks forks;
  if (from_birth) forks.StopCommands();
  Joining joining("late", {"exclusive", "-v", "--on-lost", on_lost, "--session-timeout", "4s"},
                  forks, [=] {
                    if (ignores_term) signal(SIGTERM, SIG_IGN);
                  });
  if (!from_birth) REQUIRE(kill(joining.ready.command, SIGSTOP) == 0);
  joining.gate.Open();
  joining.zklock.ReadErrUntil("acquired " + joining.lock);
  joining.gate.Freeze();
  CHECK(joining.zklock.Wait() == Exited(75));
  CHECK(joining.zklock.out().empty());
  CHECK_THAT(joining.zklock.err(), !Catch::Contains("running") && !Catch::Contains("ended with") &&
                                       (Catch::Contains("; sh was not run") ||
                                        Catch::Contains("before the command could be run")));
}

TEST_CASE("a run whose contender is deleted before the command has started exits with 75") {
  const Forks forks;
  forks.StopCommands();
  const std::string lock = NewLock("late");
  const TemporaryDirectory directory;
  const std::string events = directory.Path("events");
  const bool is_asked = GENERATE(false, true);
  ChildOptions options =
      forks.Use(Zklock({"exclusive", "-v", "--events", events, lock, "--", "echo", "run"}));
  // Without job control, zklock does not suspend itself with the command.
  options.own_process_group = false;
  options.prepare = [] { setsid(); };
  Child zklock = Child::Start(std::move(options));
  zklock.ReadErrUntil("acquired " + lock);
  if (is_asked) {
    RunZklock({"release", "--holders", "--yes", "--reason", "a freeze", lock}, Exited(0));
  } else {
    Tree().Delete(lock + "/" + Tree().Children(lock).at(0));
  }
  CHECK(zklock.Wait() == Exited(75));
  CHECK(zklock.out().empty());
  zklock.ReadToEnd();
  CHECK_THAT(zklock.err(), Catch::Contains(is_asked ? "a freeze" : "our contender was deleted") &&
                               Catch::Contains("; echo was not run"));
  CHECK_THAT(ReadFile(events).value(), !Catch::Contains("exited"));
  CHECK(Tree().Children(lock).empty());
}

TEST_CASE("a nested run that loses the outer lock before its command has started exits with 75") {
  const Forks forks;
  forks.StopCommands();
  const std::string lock = NewLock("late");
  const Words nested = Words{"env"} + forks.Use({}).also_environment +
                       Words{"setsid", Binary(), "exclusive", "-v", lock, "--", "echo", "run"};
  Child outer = Child::Start(Zklock(Words{"exclusive", "--on-lost", "warn", lock, "--", "sh", "-c",
                                          "\"$@\"; echo \"status $?\"", "sh"} +
                                    nested));
  outer.ReadErrUntil("the command runs ");
  Tree().Delete(lock + "/" + Tree().Children(lock).at(0));
  CHECK(outer.ReadLine() == "status 75");
  outer.ReadToEnd();
  CHECK_THAT(outer.err(), Catch::Contains("echo was not run"));
}

TEST_CASE("when zklock is killed during the commit, its guard removes the contender") {
  Joining joining("killed");
  SECTION("zklock alone") { joining.zklock.Signal(SIGKILL); }
  SECTION("its whole group, including the command") { joining.zklock.SignalGroup(SIGKILL); }
  joining.gate.Open();
  WaitUntilGone(joining.ready.command);
  WaitUntilGone(joining.ready.guard);
  // The guard ends only after the servers have answered its close.
  CHECK(Tree().Children(joining.lock).empty());
  joining.zklock.ReadToEnd();
  CHECK(joining.zklock.out().empty());
}

TEST_CASE("after a lost connection the command runs under the guard that was forked before it") {
  Joining joining("cut");
  joining.gate.Break();
  CHECK(joining.zklock.ReadLine() == "held");
  CHECK(process::ReadProcessStat(joining.ready.guard));
  CHECK(Tree().Children(joining.lock).size() == 1);
  CHECK(Finish(joining.zklock) == Exited(0));
}

}  // namespace zklock::test
