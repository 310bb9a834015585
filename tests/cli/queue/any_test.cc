// --any: one of several LOCKs, whichever is free first.

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "cli/queue/lock_peer.h"
#include "cli/zklock.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

using namespace std::chrono_literals;

/// Three new LOCKs.
struct Pool {
  std::string root = NewLock("any");
  Words locks = {root + "/c", root + "/a", root + "/b"};

  /// Returns `zklock WORDS --any LOCK... -- sh -c SCRIPT`.
  [[nodiscard]] ChildOptions Options(Words words, const std::string& script) const {
    ChildOptions options = Zklock(words + Words{"--any"} + locks + Words{"--", "sh", "-c", script});
    options.keep_stdin = true;
    return options;
  }
  [[nodiscard]] Finished Run(const Words& words, const std::string& script = "echo $ZKLOCK_LOCK",
                             const Exit& exit = Exited(0)) const {
    ChildOptions options = Options(words, script);
    options.keep_stdin = false;
    return test::Run(std::move(options), exit);
  }
  /// Starts a waiter, and returns once it is in all queues.
  [[nodiscard]] Child StartWaiter(Words words = {"exclusive"}) const {
    words.insert(words.begin() + 1, "--verbose");
    Child waiter = Child::Start(Options(words, "echo $ZKLOCK_LOCK; read status"));
    for (const std::string& lock : locks) {
      Tree().WaitForChildren(lock, 2);
    }
    return waiter;
  }
  [[nodiscard]] std::vector<Child> HoldAll() const {
    std::vector<Child> holders;
    for (const std::string& lock : locks) holders.push_back(StartHolder(lock));
    return holders;
  }
  [[nodiscard]] std::size_t CountContenders() const {
    std::size_t count = 0;
    for (const std::string& lock : locks) count += Tree().Children(lock).size();
    return count;
  }
};

std::string SortedNames(Words locks) {
  std::sort(locks.begin(), locks.end());
  std::string names;
  for (const std::string& lock : locks) names += (names.empty() ? "" : ", ") + lock;
  return names;
}

}  // namespace

TEST_CASE("any: the first LOCK that is free is taken, and the command learns which") {
  const Pool pool;
  CHECK(pool.Run({"exclusive"}).out == pool.locks[0] + "\n");
  CHECK(pool.CountContenders() == 0);
  Child holder = StartHolder(pool.locks[0]);
  CHECK(pool.Run({"exclusive"}).out == pool.locks[1] + "\n");
  CHECK(pool.Run({"try"}).out == pool.locks[1] + "\n");
  CHECK(pool.Run({"read"}).out == pool.locks[1] + "\n");
  CHECK(pool.Run({"exclusive", "--events", "/dev/stdout"}, "true")
            .out.find(R"("event":"exited","lock":")" + pool.locks[1]) != std::string::npos);
  CHECK(pool.CountContenders() == 1);
}

TEST_CASE("any: a waiter takes the LOCK that is released first, and leaves the other queues") {
  const Pool pool;
  std::vector<Child> holders = pool.HoldAll();
  Child waiter = pool.StartWaiter();
  CHECK(Finish(holders[2]) == Exited(0));
  CHECK(waiter.ReadLine() == pool.locks[2]);
  Tree tree;
  tree.WaitForChildren(pool.locks[0], 1);
  tree.WaitForChildren(pool.locks[1], 1);
  // Another contender can hold the LOCKs whose queues the waiter has left.
  CHECK(Finish(holders[0]) == Exited(0));
  RunZklock({"try", pool.locks[0], "--", "true"}, Exited(0));
  CHECK(Finish(waiter) == Exited(1));  // `read` reached the end of its input
  CHECK(tree.Children(pool.locks[2]).empty());
}

TEST_CASE("any: without waiting, or when the wait is over, no contender is left") {
  const Pool pool;
  std::vector<Child> holders = pool.HoldAll();
  const std::string names = pool.locks[0] + ", " + pool.locks[1] + ", " + pool.locks[2];
  CHECK(pool.Run({"try"}, "true", Exited(75)).err ==
        "zklock: none of " + names + " is free; the command was not run\n");
  CHECK(pool.Run({"exclusive", "-w", "200ms"}, "true", Exited(75)).err ==
        "zklock: none of " + names + " became free within 200ms; the command was not run\n");
  CHECK(pool.Run({"exclusive", "--max-queue", "0"}, "true", Exited(75)).err ==
        "zklock: the queue of each of " + names +
            " is full (--max-queue); the command was not run\n");
  CHECK(pool.CountContenders() == 3);
}

TEST_CASE("any: a waiter that is asked to leave one queue waits in the others") {
  const Pool pool;
  std::vector<Child> holders = pool.HoldAll();
  Child waiter = pool.StartWaiter();
  Tree tree;
  const auto release = [&](const std::string& lock, const Words& words) {
    Words names = tree.WaitForChildren(lock, 2);
    const auto second = *std::find_if(names.begin(), names.end(), [](const std::string& name) {
      return name.ends_with("-0000000001");  // the holder's name ends with 0
    });
    RunZklock(Words{"release", lock, "--yes", "--contender", second} + words, Exited(0));
  };
  release(pool.locks[0], {"--reason", "a test"});
  tree.WaitForChildren(pool.locks[0], 1);
  waiter.ReadErrUntil("('a test'); still waiting for " + pool.locks[1] + ", " + pool.locks[2]);
  release(pool.locks[1], {"--force", "--reason", "another"});
  waiter.ReadErrUntil("('another'); still waiting for " + pool.locks[2] + "\n");
  CHECK(Finish(holders[0]) == Exited(0));
  CHECK(Finish(holders[1]) == Exited(0));
  CHECK(tree.Children(pool.locks[2]).size() == 2);
  release(pool.locks[2], {});
  CHECK(waiter.Wait() == Exited(75));
  CHECK_THAT(waiter.err(), Catch::Contains("asked to leave the queue of " + pool.locks[2] + " by"));
  CHECK(pool.CountContenders() == 1);
}

TEST_CASE("any: after leaving a queue, a run names only the LOCKs that it still waits for") {
  const Pool pool;
  std::vector<Child> holders = pool.HoldAll();
  const std::string still = pool.locks[1] + ", " + pool.locks[2];
  const auto wait = [&](const Words& words) {
    Child waiter = pool.StartWaiter(Words{"exclusive"} + words);
    Tree tree;
    for (const std::string& name : tree.Children(pool.locks[0])) {
      if (!name.ends_with("-0000000000")) tree.Delete(pool.locks[0] + "/" + name);
    }
    waiter.ReadErrUntil("still waiting for " + still);
    return waiter;
  };
  SECTION("when the wait is over") {
    Child waiter = wait({"--wait", "3s"});
    CHECK(waiter.Wait() == Exited(75));
    CHECK_THAT(waiter.err(), Catch::Contains("zklock: none of " + still + " became free within"));
  }
  SECTION("after a signal") {
    Child waiter = wait({});
    waiter.Signal(SIGTERM);
    CHECK(waiter.Wait() == Exited(128 + SIGTERM));
    CHECK_THAT(waiter.err(), Catch::Contains("SIGTERM while waiting for any of " + still + ":"));
  }
}

TEST_CASE("any: a signal, or the death of zklock, removes the run from every queue") {
  const Pool pool;
  std::vector<Child> holders = pool.HoldAll();
  const int signal = GENERATE(SIGINT, SIGKILL);
  Child waiter = pool.StartWaiter();
  waiter.Signal(signal);
  CHECK(waiter.Wait() == (signal == SIGKILL ? Killed(SIGKILL) : Exited(128 + SIGINT)));
  for (const std::string& lock : pool.locks) Tree().WaitForChildren(lock, 1);
}

TEST_CASE("any: a LOCK that the run lacks permission to use is named, and the run is in no queue") {
  const Pool pool;
  Tree tree;
  for (const std::string& lock : pool.locks) tree.Create(lock, ZnodeKind::kPersistent, "zklock/1");
  const auto [rights, right] =
      GENERATE(std::pair(kRead | kDelete, "CREATE"), std::pair(kRead | kCreate, "DELETE"));
  tree.SetAcl(pool.locks[1], rights);
  const std::string err = pool.Run({"exclusive"}, "true", Exited(77)).err;
  CHECK_THAT(err, Catch::Contains(pool.locks[1]));
  CHECK_THAT(err, Catch::Contains(right));
  CHECK(pool.CountContenders() == 0);
}

TEST_CASE("a child named zklock-clock blocks nobody") {
  const Pool pool;
  auto [tree, semaphore] = MadeLock("clock");
  for (const std::string& queue : {pool.locks[0], semaphore, semaphore + "/locks"}) {
    if (tree.Get(queue) == std::nullopt) tree.Create(queue, ZnodeKind::kPersistent, "zklock/1");
    tree.Create(queue + "/zklock-clock");
  }
  CHECK(pool.Run({"exclusive"}, "true", Exited(0)).err.empty());
  RunZklock({"exclusive", "--permits", "2", semaphore, "--", "true"}, Exited(0));
  const Words reserve = {"exclusive", "--reserve", "x", "--for", "1h", pool.locks[0]};
  RunZklock(reserve, Exited(0));
  RunZklock(reserve, Exited(0));
  RunZklock({"exclusive", "--resume", "x", pool.locks[0], "--", "true"}, Exited(0));
  RunZklock({"release", "--reserve", "x", pool.locks[0]}, Exited(0));
}

TEST_CASE("any: a LOCK of another kind ends the run before it takes another LOCK") {
  const Pool pool;
  const Child holder = StartHolder({"exclusive", "--permits", "2"}, pool.locks[2]);
  const std::string err = pool.Run({"exclusive"}, "true", Exited(78)).err;
  CHECK_THAT(err, Catch::Contains(pool.locks[2]));
  CHECK(Tree().Children(pool.locks[0]).empty());
}

TEST_CASE("any: a LOCK that an outer zklock holds is taken at once") {
  const Pool pool;
  std::vector<Child> holders;
  holders.push_back(StartHolder(pool.locks[0]));
  const Words inner = Words{Binary(), "exclusive", "-v", "--any"} + pool.locks +
                      Words{"--", "sh", "-c", "echo $ZKLOCK_LOCK"};
  const Finished nested = RunZklock(Words{"exclusive", pool.locks[2], "--"} + inner, Exited(0));
  CHECK(nested.out == pool.locks[2] + "\n");
  Words apart = inner;
  apart.insert(apart.begin() + 2, "--no-nest");
  const Finished beside = RunZklock(Words{"exclusive", pool.locks[2], "--"} + apart, Exited(0));
  CHECK(beside.out == pool.locks[1] + "\n");
}

TEST_CASE("any: with as many tries as free LOCKs, each try gets one") {
  const Pool pool;
  std::vector<Child> runs;
  for (std::size_t i = 0; i < pool.locks.size(); ++i) {
    runs.push_back(Child::Start(pool.Options({"try"}, "echo $ZKLOCK_LOCK; read status; true")));
  }
  Words taken;
  for (Child& run : runs) taken.push_back(run.ReadLine());
  for (Child& run : runs) CHECK(Finish(run) == Exited(0));
  std::sort(taken.begin(), taken.end());
  Words all = pool.locks;
  std::sort(all.begin(), all.end());
  CHECK(taken == all);
}

TEST_CASE(
    "any: a try of one LOCK waits until a pool ahead of it has withdrawn or acquired the LOCK") {
  const Pool pool;
  // The contenders' numbers differ from queue to queue.
  RunZklock({"exclusive", pool.locks[2], "--", "true"}, Exited(0));
  std::vector<Child> holders = pool.HoldAll();
  Child waiter = pool.StartWaiter();
  waiter.Signal(SIGSTOP);
  for (const std::size_t free : {1, 2}) CHECK(Finish(holders[free]) == Exited(0));
  std::vector<Child> tries;
  for (const std::size_t free : {1, 2}) {
    tries.push_back(Child::Start(Zklock({"try", pool.locks[free], "--", "true"})));
  }
  std::this_thread::sleep_for(500ms);
  waiter.Signal(SIGCONT);
  CHECK(waiter.ReadLine() == pool.locks[1]);
  CHECK(tries[0].Wait() == Exited(75));
  CHECK(tries[1].Wait() == Exited(0));
  CHECK(Finish(waiter) == Exited(1));
}

TEST_CASE("any: runs of one pool never run two commands under one LOCK") {
  const Pool pool;
  const TemporaryDirectory directory;
  const std::string script = "d=" + directory.path() +
                             "/$(basename $ZKLOCK_LOCK); mkdir $d || exit 9; sleep 0.02; rmdir $d";
  std::vector<Child> runs;
  for (int i = 0; i < 12; ++i) {
    runs.push_back(Child::Start(pool.Options({i % 3 == 0 ? "write" : "exclusive"}, script)));
  }
  for (Child& run : runs) CHECK(Finish(run) == Exited(0));
  CHECK(pool.CountContenders() == 0);
}

TEST_CASE("any: --hold keeps the LOCK that was taken") {
  const Pool pool;
  Child holder = StartHolder(pool.locks[0]);
  std::string arguments;
  for (const std::string& lock : pool.locks) arguments += " " + lock;
  const std::string zklock = Binary();
  ChildOptions options = Zklock({});
  options.argv = {"sh", "-c",
                  zklock + " exclusive --hold --any" + arguments + " && " + zklock +
                      " inspect -q " + pool.locks[1] + "; echo $?; " + zklock + " try " +
                      pool.locks[2] + " -- echo free; " + zklock + " release " + pool.locks[1]};
  CHECK(Run(std::move(options), Exited(0)).out == "75\nfree\n");
  CHECK(pool.CountContenders() == 1);
}

TEST_CASE("any: a Curator mutex may hold one of the LOCKs, and gets its turn") {
  const Pool pool;
  LockPeer peer = LockPeer::Curator();
  REQUIRE(peer.Ask("m", "make mutex " + pool.locks[0]) == "made");
  CHECK(peer.Ask("m", "acquire") == "acquired");
  CHECK(pool.Run({"exclusive"}).out == pool.locks[1] + "\n");
  std::vector<Child> holders;
  holders.push_back(StartHolder(pool.locks[1]));
  holders.push_back(StartHolder(pool.locks[2]));
  Child waiter = pool.StartWaiter();
  CHECK(peer.Ask("m", "release") == "released");
  CHECK(waiter.ReadLine() == pool.locks[0]);
  peer.Tell("m", "acquire");
  Tree().WaitForChildren(pool.locks[0], 2);
  CHECK(Finish(waiter) == Exited(1));
  CHECK(peer.Answer("m") == "acquired");
  CHECK(peer.Ask("m", "release") == "released");
}

TEST_CASE("any: one LOCK is reserved for an ID, and is found and released by that ID") {
  const Pool pool;
  Child holder = StartHolder(pool.locks[0]);
  const std::string names = pool.locks[0] + ", " + pool.locks[1] + ", " + pool.locks[2];
  const Words first = {"exclusive", "--reserve", "ci", "--for", "1h"};
  CHECK(pool.Run(first).out == pool.locks[1] + "\n");
  CHECK(pool.CountContenders() == 2);
  // The first choice is free now, but another LOCK is reserved for the ID.
  CHECK(Finish(holder) == Exited(0));
  CHECK(pool.Run(first).out == pool.locks[1] + "\n");
  CHECK(pool.Run({"exclusive", "--resume", "ci"}).out == pool.locks[1] + "\n");
  CHECK(pool.Run({"try", "--resume", "ci"}).out == pool.locks[1] + "\n");
  CHECK_THAT(pool.Run({"exclusive", "--reserve", "ci", "--dry-run"}).out,
             Catch::Contains("would run at once, under " + pool.locks[1]));
  CHECK(pool.CountContenders() == 1);
  CHECK(pool.Run({"exclusive", "--reserve", "other"}).out == pool.locks[0] + "\n");
  RunZklock(Words{"release", "--any", "--reserve", "ci"} + pool.locks, Exited(0));
  RunZklock(Words{"release", "--any", "--reserve", "other"} + pool.locks, Exited(0));
  CHECK(pool.CountContenders() == 0);
  CHECK(RunZklock(Words{"release", "--any", "--reserve", "ci"} + pool.locks, Exited(75)).err ==
        "zklock: none of " + SortedNames(pool.locks) + " is reserved for ci\n");
  CHECK(pool.Run({"exclusive", "--resume", "ci"}, "true", Exited(75)).err ==
        "zklock: none of " + names +
            " is (or still is) reserved for ci; the command was not run\n");
}

TEST_CASE("any: a run ends if an earlier one with its ID is in a queue that is full") {
  const Pool pool;
  const std::string& full = pool.locks[0];
  const std::string& other = pool.locks[1];
  const auto options = [&](const std::string& lock) {
    return Zklock({"exclusive", lock, "--", "sleep", "1000"});
  };
  Child first = Child::Start(options(full));
  Tree().WaitForChildren(full, 1);
  Child second = Child::Start(options(full));
  Tree().WaitForChildren(full, 2);
  const Child holder = StartHolder(other);
  const Words words = {"exclusive", "--any", "--reserve", "ci", "--max-queue", "1", full, other};
  const Child earlier = Child::Start(Zklock(words));
  Tree().WaitForChildren(other, 2);
  Tree().WaitForChildren(full, 2);
  for (Child* const one : {&second, &first}) {
    one->Signal(SIGTERM);
    one->Wait();
  }
  const Finished later = test::Run(Zklock(words), Exited(75));
  CHECK(later.err == "zklock: " + other + " already has 1 or more waiters (--max-queue)\n");
  CHECK(Tree().Children(full).empty());
}

TEST_CASE("any: runs with one ID that start together make one reservation") {
  const Pool pool;
  const Pool turned{.root = pool.root, .locks = {pool.locks[2], pool.locks[0], pool.locks[1]}};
  std::vector<Child> runs;
  for (int i = 0; i < 6; ++i) {
    const Pool& one = i % 2 == 0 ? pool : turned;
    ChildOptions options = one.Options({"exclusive", "--reserve", "ci"}, "echo $ZKLOCK_LOCK");
    options.keep_stdin = false;
    runs.push_back(Child::Start(std::move(options)));
  }
  std::vector<std::string> used;
  for (Child& run : runs) {
    CHECK(run.Wait() == Exited(0));
    used.push_back(run.out());
  }
  CHECK(std::count(used.begin(), used.end(), used.front()) == 6);
  CHECK(pool.CountContenders() == 1);
}

TEST_CASE("any: a waiting run with --reserve ends with one reservation and no contender") {
  const Pool pool;
  std::vector<Child> holders = pool.HoldAll();
  Child waiter = pool.StartWaiter({"exclusive", "--reserve", "ci"});
  CHECK(Finish(holders[1]) == Exited(0));
  CHECK(waiter.ReadLine() == pool.locks[1]);
  CHECK(pool.CountContenders() == 3);
  waiter.CloseInput();
  CHECK(waiter.Wait() == Exited(1));
  CHECK(pool.CountContenders() == 3);
}

}  // namespace zklock::test
