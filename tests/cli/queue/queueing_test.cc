// --max-queue, --supersede and --dialect simple: which contenders may stay in a queue.

#include <catch2/catch.hpp>
#include <chrono>
#include <string>

#include "cli/servers/regranted.h"
#include "cli/zklock.h"
#include "support/peer.h"

namespace zklock::test {

TEST_CASE("--max-queue gives up at once if that many contenders already wait") {
  auto [lock, holder] = HoldNewLock("queueing");
  // The wait is long where the queue is full, so that even a slow machine finds that out in time,
  // and short where the waiter may join, because it then waits for the whole time.
  const auto told = [&](const std::string& wait, const std::string& most) {
    const Finished finished = RunZklock(
        {"exclusive", "--wait", wait, "--max-queue", most, lock, "--", "true"}, Exited(75));
    return finished.err;
  };
  const auto is_full = Catch::Contains("or more waiters");
  const auto waited = Catch::Contains("did not become free within 1s");
  CHECK(told("60s", "0") == "zklock: " + lock +
                                " is held, and a limit of 0 allows no waiters (--max-queue); the "
                                "command was not run\n");
  CHECK_THAT(told("1s", "1"), waited);
  Child waiter = StartWaiter(lock);
  CHECK_THAT(told("60s", "1"), is_full);
  CHECK_THAT(told("1s", "2"), waited);
  CHECK(Tree().Children(lock).size() == 2);
  waiter.Signal(SIGTERM);
  CHECK(waiter.Wait() == Exited(143));
  CHECK_THAT(told("1s", "1"), waited);
}

TEST_CASE("a free lock is taken whatever --max-queue says") {
  const std::string lock = NewLock("queueing");
  RunZklock({"exclusive", "--max-queue", "0", lock, "--", "true"}, Exited(0));
}

TEST_CASE("the newest superseding waiter wins, and the holder is not disturbed") {
  auto [lock, running] = HoldNewLock("queueing", {"exclusive", "--supersede"});
  Child older = StartWaiter({"exclusive", "--supersede"}, lock);
  Child plain = StartWaiter({"exclusive"}, lock);
  Child newer = StartWaiter({"exclusive", "--supersede"}, lock);
  CHECK(older.Wait() == Exited(75));
  CHECK_THAT(older.err(), Catch::Contains("superseded by a newer contender for " + lock));
  CHECK(Tree().Children(lock).size() == 3);
  CHECK(Finish(running) == Exited(0));
  CHECK(plain.ReadLine() == "held");
  plain.CloseInput();
  CHECK(newer.ReadLine() == "held");
}

TEST_CASE("a run whose session has expired does not supersede a newer one") {
  auto [lock, running] = HoldNewLock("queueing", {"exclusive", "--supersede"});
  Proxy proxy(TestServers());
  Child older = StartWaiter(
      {"exclusive", "--supersede", "-z", proxy.address(), "--session-timeout", "4s"}, lock);
  proxy.Freeze();
  Tree().WaitForChildren(lock, 1);
  Child newer = StartWaiter({"exclusive", "--supersede"}, lock);
  proxy.Thaw();
  CHECK(older.Wait() == Exited(75));
  CHECK_THAT(older.err(), Catch::Contains("superseded by a newer contender for " + lock));
  CHECK(Finish(running) == Exited(0));
  CHECK(newer.ReadLine() == "held");
}

TEST_CASE("a run that queues again in a longer session supersedes nobody") {
  auto [lock, running] = HoldNewLock("queueing");
  Regranted regranted(TestServers(), {4'000, 12'000});
  Child waiter = StartWaiter(
      {"exclusive", "--supersede", "--session-timeout", "4s", "-z", regranted.proxy().address()},
      lock);
  regranted.CutUntilLeaseIsShort();
  running.CloseInput();
  CHECK(waiter.ReadLine() == "held");
  CHECK_THAT(Tree().Children(lock).at(0), !Catch::Contains("-newest"));
}

TEST_CASE("with --max-queue the newest waiter takes the place of the one it supersedes") {
  auto [lock, running] = HoldNewLock("queueing");
  const Words newest = {"exclusive", "--supersede", "--max-queue", "1"};
  Child older = StartWaiter(newest, lock);
  Child newer = StartWaiter(newest, lock);
  CHECK(older.Wait() == Exited(75));
  const Child other = StartWaiter({"exclusive"}, lock);
  RunZklock({"exclusive", "--supersede", "--max-queue", "1", lock, "--", "true"}, Exited(75));
  running.CloseInput();
  CHECK(newer.ReadLine() == "held");
  CHECK(Finish(newer) == Exited(0));
}

TEST_CASE("in the simple dialect the lock is a single znode at LOCK's own path") {
  auto [lock, holder] = HoldNewLock("queueing", {"exclusive", "--dialect", "simple"});
  Tree tree;
  CHECK(tree.Children(lock) == std::vector<std::string>{"lock"});
  RunZklock({"try", "--dialect", "simple", lock, "--", "true"}, Exited(75));
  Child waiter = StartWaiter({"exclusive", "--dialect", "simple"}, lock);
  CHECK(tree.Children(lock).size() == 1);
  holder.CloseInput();
  CHECK(waiter.ReadLine() == "held");
  CHECK(Finish(waiter) == Exited(0));
  CHECK(tree.Children(lock).empty());
}

TEST_CASE("a run waits for a simple lock that another program holds") {
  const std::string lock = NewLock("queueing");
  Tree().Create(lock);
  {
    Tree other;
    other.Create(lock + "/lock", ZnodeKind::kEphemeral);
    Child waiter = StartWaiter({"exclusive", "--dialect", "simple"}, lock);
    other.Delete(lock + "/lock");
    CHECK(waiter.ReadLine() == "held");
  }
}

TEST_CASE("a one-znode lock and a queue refuse each other and name the option to use") {
  const std::string lock = NewLock("queueing");
  {
    Child holder = StartHolder(lock);
    CHECK_THAT(RunZklock({"try", "--dialect", "simple", lock, "--", "true"}, Exited(78)).err,
               Catch::Contains("omit --dialect simple"));
  }
  const std::string other = NewLock("queueing");
  Child holder = StartHolder({"exclusive", "--dialect", "simple"}, other);
  CHECK_THAT(RunZklock({"try", other, "--", "true"}, Exited(78)).err,
             Catch::Contains("--dialect simple"));
}

TEST_CASE("deleting a simple lock ends the command") {
  const std::string lock = NewLock("queueing");
  Child run = Child::Start(Zklock(
      {"exclusive", "--dialect", "simple", lock, "--", "sh", "-c", "echo held; exec sleep 1000"}));
  REQUIRE(run.ReadLine() == "held");
  Tree().Delete(lock + "/lock");
  CHECK(run.Wait() == Exited(76));
}

// In the simple dialect the next holder's znode has the same path. These tests stop a holder,
// delete its znode, let the next contender take the lock, and observe the holder's reaction.

TEST_CASE("a simple lock taken over by the next holder ends the command") {
  auto [lock, first] = HoldNewLock("queueing", {"exclusive", "--dialect", "simple"});
  Child second = StartWaiter({"exclusive", "--dialect", "simple"}, lock);
  first.Signal(SIGSTOP);
  Tree tree;
  tree.Delete(lock + "/lock");
  REQUIRE(second.ReadLine() == "held");
  const auto taken = tree.Get(lock + "/lock");
  first.Signal(SIGCONT);
  CHECK(first.Wait() == Exited(76));
  REQUIRE(tree.Get(lock + "/lock"));
  CHECK(tree.Get(lock + "/lock")->created_zxid == taken->created_zxid);
  CHECK(Finish(second) == Exited(0));
}

TEST_CASE("a release does not delete a simple lock that the next holder has taken over") {
  auto [lock, first] = HoldNewLock("queueing", {"exclusive", "--dialect", "simple"});
  first.Signal(SIGSTOP);
  Tree tree;
  tree.Delete(lock + "/lock");
  Tree next;
  next.Create(lock + "/lock", ZnodeKind::kEphemeral);
  first.CloseInput();  // the command ends before its zklock can notice
  first.Signal(SIGCONT);
  (void)first.Wait();
  CHECK(tree.Exists(lock + "/lock"));
}

TEST_CASE(
    "a nested run does not continue under a simple lock that the next holder has taken over") {
  const std::string lock = NewLock("queueing");
  const Words inner = Zklock({"try", "--dialect", "simple", lock, "--", "true"}).argv;
  std::string script = "echo held; read line; \"$@\"; echo $?; read line";
  Words words =
      Words{"exclusive", "--dialect", "simple", lock, "--", "sh", "-c", script, "sh"} + inner;
  ChildOptions options = Zklock(words);
  options.keep_stdin = true;
  Child outer = Child::Start(std::move(options));
  REQUIRE(outer.ReadLine() == "held");
  outer.Signal(SIGSTOP);
  Tree tree;
  tree.Delete(lock + "/lock");
  tree.Create(lock + "/lock", ZnodeKind::kEphemeral);
  outer.Write("\n");
  CHECK(outer.ReadLine() == "75");
  outer.Signal(SIGCONT);
  CHECK(outer.Wait() == Exited(76));
}

TEST_CASE(
    "a run exits with 69, not 75, if a lock is free but the servers are too slow for the session") {
  Proxy proxy(TestServers());
  proxy.Delay(std::chrono::milliseconds(600));
  for (const Words& wait : {Words{}, Words{"--wait", "1s"}}) {
    // Each run needs its own LOCK: zklock does not wait for the slow answer to its close.
    const std::string lock = NewLock("slow");
    Words words = Words{"exclusive", "--session-timeout", "4s", "-z", proxy.address()} + wait +
                  Words{lock, "--", "echo", "ran"};
    const Finished finished = RunZklock(words, Exited(69));
    CHECK(finished.out.empty());
    CHECK_THAT(finished.err,
               Catch::Contains(lock + " is free") && Catch::Contains("longer --session-timeout"));
    Tree().WaitForChildren(lock, 0);
  }
}

}  // namespace zklock::test
