// When zklock is killed, at any moment, its contenders are deleted as soon as everything that the
// lock covers has ended: no one waits for the session to expire.

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "cli/gate.h"
#include "cli/hold/hold_script.h"
#include "cli/zklock.h"
#include "support/peer.h"
#include "support/process.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

using namespace std::chrono_literals;

// Longer than a test waits for a contender to disappear.
const Words kLongSession = {"--session-timeout", "40s"};
constexpr std::chrono::seconds kSoon = 20s;

Words Exclusive(const Words& more) { return Words{"exclusive"} + kLongSession + more; }

void WaitUntilFree(const std::string& lock) {
  Tree().WaitForChildren(
      lock,
      [](const auto& names) {
        return std::none_of(names.begin(), names.end(), [](const std::string& name) {
          return name.find("-lock-") != std::string::npos ||
                 name.find("-lease-") != std::string::npos;
        });
      },
      kSoon);
}

/// Ends a holder's command, and kills the holder once it has reported that end.
void KillAfterCommand(Child& holder) {
  holder.CloseInput();
  holder.ReadErrUntil("\"exited\"");
  holder.Signal(SIGKILL);
  CHECK(holder.Wait() == Killed(SIGKILL));
}

/// A command that starts a nested run of the same LOCK, which outlives it and writes "nested" when
/// it begins. All processes of the nested run keep $FILE locked.
const std::string kLeavesNestedRun =
    "$Z exclusive $L -- flock -n $FILE sh -c 'echo nested; exec sleep 1000' & read x";

class NestedRun {
 public:
  [[nodiscard]] ChildOptions In(Words words) const {
    ChildOptions options = Zklock(words + Words{lock, "--", "sh", "-c", kLeavesNestedRun});
    options.also_environment = {"Z=" + Binary(), "L=" + lock, file_variable()};
    options.keep_stdin = true;
    return options;
  }
  [[nodiscard]] std::string file_variable() const { return "FILE=" + file_; }
  /// Checks that the next run's `flock` succeeds: it fails while a process that has the file locked
  /// is alive.
  void CheckThatNextRunsAlone() const {
    CHECK(
        RunZklock({"exclusive", "--wait", "20s", lock, "--", "flock", "-n", file_, "echo", "alone"},
                  Exited(0))
            .out == "alone\n");
  }

  const std::string lock = NewPersistentLock("nested");

 private:
  const TemporaryDirectory directory_;
  const std::string file_ = directory_.Write("file", "");
};

}  // namespace

TEST_CASE("a zklock killed while it still records the start of its run leaves no contender") {
  const std::string lock = NewPersistentLock("history");
  Gate gate("get " + lock + "/last-run");
  Child holder = Child::Start(
      gate.Before(HolderOptions(Exclusive({"--history", "5", "--events", "2"}), lock)));
  REQUIRE(holder.ReadLine() == "held");
  gate.WaitUntilReached();
  KillAfterCommand(holder);
  gate.Open();
  WaitUntilFree(lock);
}

TEST_CASE("a zklock killed while it records a success leaves no contender") {
  const std::string lock = NewPersistentLock("interval");
  Proxy proxy(TestServers());
  Child holder = Child::Start(HolderOptions(
      Exclusive({"--min-interval", "1h", "--events", "2", "-z", proxy.address()}), lock));
  REQUIRE(holder.ReadLine() == "held");
  proxy.FreezeReplies();
  KillAfterCommand(holder);
  proxy.Thaw();
  WaitUntilFree(lock);
}

TEST_CASE("a zklock killed while it closes its session leaves no contender") {
  const std::string lock = NewLock("close");
  const std::string descendants = GENERATE("leave", "wait", "kill");
  CAPTURE(descendants);
  Proxy proxy(TestServers());
  Child holder = Child::Start(HolderOptions(
      Exclusive({"--descendants", descendants, "--events", "2", "-z", proxy.address()}), lock));
  REQUIRE(holder.ReadLine() == "held");
  proxy.Freeze();
  KillAfterCommand(holder);
  proxy.Cut();  // what zklock has sent is lost
  proxy.Thaw();
  WaitUntilFree(lock);
}

TEST_CASE("the guard closes a session whose close the servers have not answered") {
  const std::string lock = NewLock("unanswered");
  Proxy proxy(TestServers());
  const auto start = [&](Words words) {
    return HolderOptions(Exclusive(std::move(words)) + Words{"-z", proxy.address()}, lock);
  };
  SECTION("after the command") {
    Child holder = Child::Start(start({}));
    REQUIRE(holder.ReadLine() == "held");
    proxy.Freeze();
    holder.Write("9\n");
    CHECK(holder.Wait() == Exited(9));
    holder.ReadToEnd();  // the guard keeps none of zklock's streams
  }
  SECTION("after a wait") {
    Child holder = StartHolder(lock);
    Child waiter = Child::Start(start({"--verbose"}));
    waiter.ReadErrUntil("waiting for");
    proxy.Freeze();
    waiter.Signal(SIGTERM);
    CHECK(waiter.Wait() == Exited(128 + SIGTERM));
    CHECK(Finish(holder) == Exited(0));
  }
  proxy.Cut();
  proxy.Thaw();
  WaitUntilFree(lock);
}

TEST_CASE("when zklock is killed after its command, its nested runs end first, then the lock") {
  const NestedRun nested;
  Child outer = Child::Start(nested.In(Exclusive({"--events", "2"})));
  REQUIRE(outer.ReadLine() == "nested");
  KillAfterCommand(outer);
  nested.CheckThatNextRunsAlone();
  outer.ReadToEnd();
}

TEST_CASE(
    "processes that the command left behind live on when zklock is killed after its command") {
  const std::string lock = NewLock("left");
  Proxy proxy(TestServers());
  ChildOptions options = Zklock(Exclusive({"--events", "2", "-z", proxy.address(), lock, "--", "sh",
                                           "-c", "sh -c 'echo $$; exec sleep 1000' & read x"}));
  options.keep_stdin = true;
  Child holder = Child::Start(std::move(options));
  const pid_t left = std::stoi(holder.ReadLine());
  proxy.Freeze();
  KillAfterCommand(holder);
  proxy.Cut();
  proxy.Thaw();
  WaitUntilFree(lock);
  CHECK(kill(left, SIGKILL) == 0);
}

TEST_CASE("a zklock that is only stopped after its command keeps the lock for its nested run") {
  const NestedRun nested;
  Child outer = Child::Start(nested.In(Exclusive({"--events", "2"})));
  REQUIRE(outer.ReadLine() == "nested");
  outer.CloseInput();
  outer.ReadErrUntil("\"exited\"");
  outer.Signal(SIGSTOP);
  outer.WaitUntilStopped();
  RunZklock({"try", nested.lock, "--", "true"}, Exited(75));
  outer.Signal(SIGCONT);
  outer.Signal(SIGTERM);  // ends the nested run
  outer.ReadToEnd();
  nested.CheckThatNextRunsAlone();
}

TEST_CASE("a zklock killed while it acquires a permit or a set leaves no contender") {
  Tree tree;
  const std::string lock = NewPersistentLock("way");
  const std::string other = NewPersistentLock("way");
  for (const char* const child : {"/locks", "/leases"}) {
    tree.Create(lock + child, ZnodeKind::kPersistent, "2");
  }
  const bool whole_group = GENERATE(false, true);
  const std::string step = GENERATE("turnstile", "permit", "first of a set", "last of a set");
  CAPTURE(step, whole_group);
  const bool is_set = step.ends_with("set");
  const Words words = is_set ? Words{other} : Words{"--permits", "2"};
  std::string created = lock + (step == "turnstile" ? "/locks/" : "/leases/");
  if (is_set)
    created = (step == "first of a set" ? std::min(lock, other) : std::max(lock, other)) + "/";
  Gate gate((step == "turnstile" ? "multi " : "create ") + created);
  Child zklock = Child::Start(gate.Before(HolderOptions(Exclusive(words), lock)));
  gate.WaitUntilReached();
  whole_group ? zklock.SignalGroup(SIGKILL) : zklock.Signal(SIGKILL);
  gate.Open();
  WaitUntilFree(lock + "/locks");
  WaitUntilFree(lock + "/leases");
  WaitUntilFree(lock);
  WaitUntilFree(other);
}

TEST_CASE("a killed waiter at the head of the turnstile leaves no contender") {
  auto [lock, holder] = HoldNewLock("waiter", {"exclusive", "--permits", "1"});
  Child waiter = StartWaiter(Exclusive({"--permits", "1"}), lock);
  Tree tree;
  tree.WaitForChildren(lock + "/locks", 1);
  waiter.Signal(SIGKILL);
  tree.WaitForChildren(lock + "/locks", 0, kSoon);
  tree.WaitForChildren(lock + "/leases", 1, kSoon);
}

TEST_CASE(
    "a waiter whose guard was killed gets another, and leaves no contender when it is killed") {
  auto [lock, holder] = HoldNewLock("guards");
  Child waiter = StartWaiter(Exclusive({}), lock);
  const auto guard_of = [&waiter] {
    return WaitFor([&]() -> std::optional<pid_t> {
      const auto children = process::ChildrenOf(waiter.pid());
      for (const pid_t one : children) {
        if (!process::ChildrenOf(one).empty()) return one;
      }
      return {};
    });
  };
  const pid_t first = guard_of();
  kill(first, SIGKILL);
  WaitUntilGone(first);
  const pid_t second = guard_of();
  CHECK(second != first);
  WaitUntil([&] { return getsid(second) == second; });
  waiter.Signal(SIGKILL);
  Tree().WaitForChildren(lock, 1, kSoon);
}

TEST_CASE("a waiter that is killed while no server answers leaves no contender") {
  auto [lock, holder] = HoldNewLock("apart");
  Proxy proxy(TestServers());
  Child waiter = StartWaiter(Exclusive({"-z", proxy.address()}), lock);
  Tree tree;
  tree.WaitForChildren(lock, 2);
  proxy.Freeze();
  proxy.Cut();
  waiter.ReadErrUntil("no server answers");
  waiter.Signal(SIGKILL);
  proxy.Thaw();
  tree.WaitForChildren(lock, 1, kSoon);
}

TEST_CASE("a killed zklock that was about to reserve leaves no contender") {
  auto [lock, holder] = HoldNewLock("reserve");
  const Words command = GENERATE(Words(), Words{"--", "true"});
  Child waiter = Child::Start(Zklock(Exclusive({"-v", "--reserve", "me", lock}) + command));
  waiter.ReadErrUntil("waiting for");
  Tree tree;
  tree.WaitForChildren(lock, 2);
  waiter.Signal(SIGKILL);
  tree.WaitForChildren(lock, 1, kSoon);
}

TEST_CASE("a keeper killed while it acquires its lock leaves no contender") {
  const std::string lock = NewPersistentLock("keeper");
  Tree tree;
  Gate gate("create " + lock + "/");
  std::optional<Child> holder;
  SECTION("while it queues") {
    gate.Open();
    holder = StartHolder(lock);
  }
  SECTION("before it knows that it holds the lock") {}
  Child script = Child::Start(
      gate.Before(Script(lock, "$Z exclusive --hold --session-timeout 40s $L; echo $?; read x")));
  const auto queue = InQueueOrder(tree.WaitForChildren(lock, holder ? 2 : 1));
  REQUIRE(kill(KeeperIn(lock + "/" + queue.back(), tree), SIGKILL) == 0);
  gate.Open();
  CHECK(script.ReadLine() == std::to_string(128 + SIGKILL));
  tree.WaitForChildren(lock, holder ? 1 : 0, kSoon);
}

TEST_CASE("when a keeper is killed, runs nested below its owner end first, then the lock") {
  const NestedRun nested;
  Child script = Child::Start(
      With(Script(nested.lock, "$Z exclusive --hold --session-timeout 40s $L; " + kLeavesNestedRun),
           {nested.file_variable()}));
  REQUIRE(script.ReadLine() == "nested");
  REQUIRE(kill(KeeperOf(nested.lock), SIGKILL) == 0);
  nested.CheckThatNextRunsAlone();
  CHECK(script.Wait() == Killed(SIGTERM));
  script.ReadToEnd();
}

TEST_CASE("a keeper's guard closes a session whose close the servers have not answered") {
  const std::string lock = NewLock("keeper");
  Proxy proxy(TestServers());
  Child script = Child::Start(
      With(Script(lock, "$Z exclusive --hold --session-timeout 40s $L; echo $?; read x"),
           {"ZKLOCK_SERVERS=" + proxy.address()}));
  REQUIRE(script.ReadLine() == "0");
  const pid_t keeper = KeeperOf(lock);
  proxy.Freeze();
  CHECK(Finish(script) == Exited(1));
  WaitUntilGone(keeper);
  proxy.Cut();
  proxy.Thaw();
  WaitUntilFree(lock);
}

}  // namespace zklock::test
