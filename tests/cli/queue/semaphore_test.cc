// --permits: up to N holders at the same time, never more, in the order of the queue.

#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/records/history.h"
#include "cli/zklock.h"
#include "support/contender_names.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

Child StartPermit(const std::string& permits, const std::string& lock) {
  return StartHolder({"exclusive", "--permits", permits}, lock);
}

Finished TryPermit(const std::string& permits, const std::string& lock) {
  return RunZklock({"try", "--permits", permits, lock, "--", "true"});
}

}  // namespace

TEST_CASE("there are as many holders as permits, and no more") {
  const std::string lock = NewLock("permits");
  Child first = StartPermit("2", lock);
  CHECK(TryPermit("2", lock).exit == Exited(0));
  Child second = StartPermit("2", lock);
  const Finished third = TryPermit("2", lock);
  CHECK(third.exit == Exited(75));
  CHECK_THAT(third.err, Catch::Contains(lock + " is held"));
  Tree tree;
  CHECK(tree.WaitForChildren(lock + "/leases", 2).size() == 2);
  CHECK(tree.WaitForChildren(lock + "/locks", std::size_t{0}).empty());
  for (const std::string other : {"1", "3"}) {
    CAPTURE(other);
    CHECK(TryPermit(other, lock).exit == Exited(78));
  }
  Child waiter = Child::Start(HolderOptions({"exclusive", "--permits", "2"}, lock));
  CHECK(tree.WaitForChildren(lock + "/leases", 3).size() == 3);
  for (const std::string other : {"1", "3"}) {
    CAPTURE(other);
    CHECK_THAT(RunZklock({"exclusive", "--permits", other, lock, "--", "true"}, Exited(78)).err,
               Catch::Contains("--permits 2"));
    CHECK(TryPermit(other, lock).exit == Exited(78));
  }
  CHECK(Finish(first) == Exited(0));
  CHECK(waiter.ReadLine() == "held");
  CHECK(Finish(second) == Exited(0));
  CHECK(TryPermit("2", lock).exit == Exited(0));
}

TEST_CASE("of several simultaneous tries, as many succeed as there are permits") {
  for (int round = 0; round < 5; ++round) {
    const std::string lock = NewLock("permits");
    std::vector<Child> tries;
    for (int i = 0; i < 4; ++i) {
      tries.push_back(Child::Start(HolderOptions({"try", "-q", "--permits", "2"}, lock)));
    }
    // The two winners stay until the two losers have ended.
    std::size_t in = 0;
    for (Child& one : tries) {
      if (one.TryReadLine() == "held") ++in;
    }
    CHECK(in == 2);
    for (Child& one : tries) one.CloseInput();
    std::size_t left = 0;
    for (Child& one : tries) {
      const Exit exit = one.Wait();
      CHECK((exit == Exited(0) || exit == Exited(75)));
      if (exit == Exited(75)) ++left;
    }
    CHECK(left == 2);
  }
}

TEST_CASE("runs that start together all get a free permit whatever --max-queue says") {
  for (int round = 0; round < 5; ++round) {
    const std::string lock = NewLock("permits");
    std::vector<Child> runs;
    for (int i = 0; i < 4; ++i) {
      runs.push_back(Child::Start(
          HolderOptions({"exclusive", "-q", "--permits", "4", "--max-queue", "0"}, lock)));
    }
    for (Child& run : runs) CHECK(run.ReadLine() == "held");
    CHECK(RunZklock({"exclusive", "--permits", "4", "--max-queue", "0", lock, "--", "true"}).exit ==
          Exited(75));
    for (Child& run : runs) CHECK(Finish(run) == Exited(0));
  }
}

TEST_CASE("a holder still in the turnstile does not make a try for a free permit fail") {
  const std::string lock = NewLock("permits");
  Tree tree;
  tree.Create(lock + "/leases", ZnodeKind::kPersistent, "2");
  const std::string place =
      tree.Create(lock + "/locks/other-lock-", ZnodeKind::kEphemeralSequential);
  tree.Create(lock + "/leases/other-lease-", ZnodeKind::kEphemeralSequential);
  Child self = Child::Start(HolderOptions({"try", "--permits", "2"}, lock));
  tree.WaitForChildren(lock + "/locks", 2);
  tree.Delete(place);
  CHECK(self.ReadLine() == "held");
  CHECK(Finish(self) == Exited(0));
}

TEST_CASE("waiters get the next permits in queue order") {
  const std::string lock = NewLock("permits");
  Child one = StartPermit("2", lock);
  Child two = StartPermit("2", lock);
  Tree tree;
  Child waiter = Child::Start(HolderOptions({"exclusive", "--permits", "2"}, lock));
  tree.WaitForChildren(lock + "/leases", 3);
  Child later = Child::Start(HolderOptions({"exclusive", "--permits", "2"}, lock));
  tree.WaitForChildren(lock + "/locks", 2);
  two.CloseInput();
  CHECK(waiter.ReadLine() == "held");
  CHECK(two.Wait() == Exited(0));
  tree.WaitForChildren(lock + "/leases", 3);  // the later one is in the turnstile now
  one.CloseInput();
  CHECK(later.ReadLine() == "held");
}

TEST_CASE("a waiter for a permit that is ended by a signal names LOCK only once") {
  const std::string lock = NewLock("permits");
  Child holder = StartPermit("1", lock);
  Child waiter = StartWaiter({"exclusive", "--permits", "1"}, lock);
  waiter.Signal(SIGTERM);
  CHECK(waiter.Wait() == Exited(128 + SIGTERM));
  const std::string said = Lines(waiter.err()).back();
  const std::size_t at = said.find(lock);
  REQUIRE(at != std::string::npos);
  CHECK(said.find(lock, at + 1) == std::string::npos);
}

TEST_CASE("a killed holder gives its permit back") {
  const std::string lock = NewLock("permits");
  Child holder = StartPermit("1", lock);
  holder.Signal(SIGKILL);
  RunZklock({"exclusive", "--permits", "1", "--wait", "20s", lock, "--", "true"}, Exited(0));
}

TEST_CASE("a different number of permits is refused while any is held, and accepted when none is") {
  const std::string lock = NewLock("permits");
  // Not a container, which the servers may delete together with the number in it.
  Tree().Create(lock + "/leases", ZnodeKind::kPersistent, "2");
  {
    Child holder = StartPermit("2", lock);
    const Finished refused = TryPermit("3", lock);
    CHECK(refused.exit == Exited(78));
    CHECK_THAT(refused.err, Catch::Contains("in use with --permits 2"));
    CHECK(Finish(holder) == Exited(0));
  }
  CHECK(TryPermit("3", lock).exit == Exited(0));
  CHECK(Tree().Get(lock + "/leases")->data == "3");
}

TEST_CASE("two numbers of permits never run together if another program made the semaphore") {
  const std::string lock = NewLock("permits");
  Tree tree;
  tree.Create(lock + "/leases", ZnodeKind::kPersistent, "10.0.0.1");
  const bool beside_curator = GENERATE(false, true);
  if (beside_curator) {
    tree.Create(lock + "/leases/" + kCuratorPermit, ZnodeKind::kEphemeralSequential);
  }
  Child three = StartPermit("3", lock);
  CHECK(tree.Get(lock + "/leases")->data == "3");
  for (const char* other : {"1", "4"}) {
    CHECK_THAT(RunZklock({"exclusive", "--permits", other, lock, "--", "true"}, Exited(78)).err,
               Catch::Contains("in use with --permits 3"));
  }
  CHECK(Finish(three) == Exited(0));
}

TEST_CASE("a permit is not taken without permission to write the number") {
  const std::string lock = NewLock("permits");
  Tree tree;
  tree.Create(lock + "/leases");
  tree.SetAcl(lock + "/leases", kRead | kCreate | kDelete);
  const Finished refused = TryPermit("2", lock);
  CHECK(refused.exit == Exited(77));
  CHECK_THAT(refused.err, Catch::Contains("WRITE on " + lock + "/leases"));
}

TEST_CASE("a run with --permits names the queue on which READ is missing") {
  const std::string queue = GENERATE(as<std::string>{}, "/locks", "/leases");
  const bool has_waiter = GENERATE(false, true);  // if so, --max-queue also counts the permits
  CAPTURE(queue, has_waiter);
  const std::string lock = NewLock("permits-acl");
  const Child holder = StartPermit("1", lock);
  const Words permit = {"--permits", "1", lock, "--", "true"};
  Tree tree;
  std::optional<Child> waiter;
  if (has_waiter) {
    waiter.emplace(Child::Start(Zklock(Words{"exclusive"} + permit)));
    tree.WaitForChildren(lock + "/leases", 2);
  }
  tree.SetAcl(lock + queue, kWrite | kCreate | kDelete | kAdmin);
  for (const Words& words :
       {Words{"exclusive"}, Words{"try"}, Words{"exclusive", "--max-queue=0"}}) {
    if (words.front() == "try" && queue == "/locks") continue;  // sees first that no permit is free
    CAPTURE(words);
    CHECK_THAT(RunZklock(words + permit, Exited(77)).err,
               Catch::Contains("not authorised: READ on " + lock + queue + " is missing"));
  }
}

TEST_CASE("a run that could not leave the turnstile does not queue for a permit") {
  auto [tree, lock] = MadeLock("permits-acl");
  tree.Create(lock + "/leases");
  const std::string turnstile = tree.Create(lock + "/locks");
  tree.SetAcl(turnstile, kRead | kCreate | kAdmin);
  const Words words = {"--permits", "2", lock, "--", "true"};
  const std::string missing = "not authorised: DELETE on " + turnstile + " is missing";
  for (const char* subcommand : {"exclusive", "try"}) {
    CHECK_THAT(RunZklock(Words{subcommand} + words, Exited(77)).err, Catch::Contains(missing));
    CHECK_THAT(RunZklock(Words{subcommand, "--dry-run"} + words, Exited(77)).out,
               Catch::Contains(missing));
  }
  CHECK(tree.Children(turnstile).empty());
  tree.SetAcl(turnstile, kRead | kCreate | kDelete);
  CHECK_THAT(RunZklock(Words{"exclusive", "--dry-run"} + words, Exited(0)).out,
             Catch::Contains("would run at once"));
  RunZklock(Words{"exclusive"} + words, Exited(0));
}

TEST_CASE("a semaphore in use cannot be used as a plain lock, nor vice versa") {
  const std::string lock = NewLock("permits");
  {
    Child holder = StartPermit("2", lock);
    CHECK_THAT(RunZklock({"try", lock, "--", "true"}, Exited(78)).err,
               Catch::Contains("--permits"));
    CHECK(Finish(holder) == Exited(0));
  }
  RunZklock({"try", lock, "--", "true"}, Exited(0));
  Child holder = StartHolder(lock);
  const Finished permit = TryPermit("2", lock);
  CHECK(permit.exit == Exited(78));
  CHECK_THAT(permit.err, Catch::Contains("without permits"));
}

TEST_CASE("the command is given its LOCK, and its permit's path and token") {
  const std::string lock = NewLock("permits");
  const Finished finished = RunZklock({"exclusive", "--permits", "3", lock, "--", "sh", "-c",
                                       "echo $ZKLOCK_LOCK; echo $ZKLOCK_NODE; echo $ZKLOCK_TOKEN"});
  const Words lines = Lines(finished.out);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == lock);
  CHECK_THAT(lines[1], Catch::StartsWith(lock + "/leases/") && Catch::Contains("-lease-"));
  CHECK(std::stoll(lines[2]) > 0);
}

TEST_CASE("of many contenders for three permits, no more than three ever run at once") {
  const std::string lock = NewLock("permits");
  const TemporaryDirectory directory;
  // Each command makes a mark, counts the marks and removes its own: the highest count is the
  // number of commands that ran at the same time. The first ones stay until there are three.
  const std::string job =
      "touch $0/run.$$; ls $0 | grep -c run >>$0/seen; "
      "until grep -q '[3-9]' $0/seen; do sleep 0.01; done; sleep 0.05; rm $0/run.$$";
  std::vector<Child> runs;
  for (int i = 0; i < 24; ++i) {
    runs.push_back(Child::Start(Zklock({"exclusive", "--permits", "3", "--progress", "none", lock,
                                        "--", "sh", "-c", job, directory.path()})));
  }
  for (Child& run : runs) CHECK(run.Wait() == Exited(0));
  int most = 0;
  for (const std::string& seen : Lines(directory.Read("seen")))
    most = std::max(most, std::stoi(seen));
  CHECK(most == 3);
}

namespace {

Words Taking(const std::string& take, const std::string& subcommand = "exclusive") {
  return {subcommand, "--permits", "6", "--take", take};
}

/// Returns the permits in order.
Words PermitsOf(const std::string& lock) { return InQueueOrder(Tree().Children(lock + "/leases")); }

}  // namespace

TEST_CASE("a run takes its permits together, and its node is the first of them") {
  const std::string lock = NewLock("permits");
  const std::string look =
      "echo $ZKLOCK_NODE; echo $ZKLOCK_TOKEN; " + Binary() + " inspect --mine && exec cat";
  ChildOptions options = Zklock(Taking("4") + Words{lock, "--", "sh", "-c", look});
  options.keep_stdin = true;
  Child holder = Child::Start(std::move(options));
  const std::string node = holder.ReadLine();
  const std::string token = holder.ReadLine();
  const Words permits = PermitsOf(lock);
  REQUIRE(permits.size() == 4);
  CHECK(node == lock + "/leases/" + permits.front());
  for (const std::string& permit : permits) {
    const Znode znode = Tree().Get(lock + "/leases/" + permit).value();
    CHECK(std::to_string(znode.created_zxid) == token);
    CHECK(permit.substr(0, permit.size() - 10) == node.substr(lock.size() + 8, permit.size() - 10));
  }
  CHECK(RunZklock(Taking("3", "try") + Words{lock, "--", "true"}).exit == Exited(75));
  RunZklock(Taking("2", "try") + Words{lock, "--", "true"}, Exited(0));
  CHECK(PermitsOf(lock).size() == 4);
  CHECK(Finish(holder) == Exited(0));
  CHECK(PermitsOf(lock).empty());
}

TEST_CASE("a big request at the head is not overtaken by a small one") {
  const std::string lock = NewLock("permits");
  Child four = StartHolder(Taking("4"), lock);
  Child five = Child::Start(HolderOptions(Taking("5"), lock));
  Tree tree;
  tree.WaitForChildren(lock + "/leases", 9);
  Child one = Child::Start(HolderOptions(Taking("1"), lock));
  tree.WaitForChildren(lock + "/locks", 2);
  // Two permits are free, but the contender at the head needs five.
  CHECK(RunZklock(Taking("1", "try") + Words{lock, "--", "true"}).exit == Exited(75));
  CHECK_FALSE(one.HasEnded());
  CHECK(Finish(four) == Exited(0));
  CHECK(five.ReadLine() == "held");
  CHECK(one.ReadLine() == "held");
  CHECK(PermitsOf(lock).size() == 6);
}

TEST_CASE("taking one permit from a run takes all of them, by force or not") {
  const std::string lock = NewLock("permits");
  Child other = StartHolder(Taking("1"), lock);
  Child holder = StartHolder(Taking("4"), lock);
  Child waiter = Child::Start(HolderOptions(Taking("5"), lock));
  Tree tree;
  tree.WaitForChildren(lock + "/leases", 10);
  const std::string permit = PermitsOf(lock).at(GENERATE(1U, 4U));
  SECTION("by force") {
    RunZklock({"release", "--force", "--contender", permit, "--yes", lock}, Exited(0));
    CHECK(PermitsOf(lock).size() == 6);
    CHECK(holder.Wait() == Exited(76));
  }
  SECTION("on request") {
    RunZklock({"release", "--contender", permit, "--yes", lock}, Exited(0));
    CHECK(holder.Wait() == Exited(76));
  }
  SECTION("by a client that deletes one") {
    tree.Delete(lock + "/leases/" + permit);
    CHECK(holder.Wait() == Exited(76));
  }
  CHECK(waiter.ReadLine() == "held");
  CHECK(PermitsOf(lock).size() == 6);
  CHECK_FALSE(other.HasEnded());
}

TEST_CASE("permits are reserved, resumed and released together") {
  const std::string lock = NewLock("permits");
  const Words reserve = Taking("4") + Words{"--reserve", "ci", lock};
  RunZklock(reserve, Exited(0));
  CHECK(PermitsOf(lock).size() == 4);
  RunZklock(reserve, Exited(0));
  CHECK(PermitsOf(lock).size() == 4);
  RunZklock(Taking("4") + Words{"--resume", "ci", lock, "--", "true"}, Exited(0));
  CHECK(RunZklock(Taking("3") + Words{"--resume", "ci", lock, "--", "true"}).exit == Exited(78));
  CHECK(RunZklock(Taking("3", "try") + Words{lock, "--", "true"}).exit == Exited(75));
  SECTION("released") { RunZklock({"release", "--reserve", "ci", lock}, Exited(0)); }
  SECTION("by force") {
    const std::string permit = PermitsOf(lock).back();
    RunZklock({"release", "--force", "--contender", permit, "--yes", lock}, Exited(0));
  }
  SECTION("incomplete: the next run deletes the rest") {
    Tree().Delete(lock + "/leases/" + PermitsOf(lock).front());
    CHECK(RunZklock(Taking("4") + Words{"--resume", "ci", lock, "--", "true"}).exit == Exited(75));
    RunZklock(Taking("4", "try") + Words{lock, "--", "true"}, Exited(0));
  }
  CHECK(PermitsOf(lock).empty());
}

TEST_CASE("the history records a run with several permits once, and its release deletes them") {
  const std::string lock = NewLock("permits");
  RunZklock(Taking("4") + Words{"--history", "3", lock, "--", "true"}, Exited(0));
  CHECK(PermitsOf(lock).empty());
  const Finished history = RunZklock({"inspect", "--history", lock}, Exited(0));
  CHECK_THAT(history.out, !Catch::Contains("lost"));
  CHECK(StatesOf(lock) == States{"ended"});
}

TEST_CASE("a killed run gives all its permits back") {
  const std::string lock = NewLock("permits");
  Child holder = StartHolder(Taking("6"), lock);
  holder.Signal(SIGKILL);
  RunZklock(Taking("6") + Words{"--wait", "20s", lock, "--", "true"}, Exited(0));
}

TEST_CASE(
    "a nested run takes permits in addition to those of the runs above it, if enough are left") {
  const std::string lock = NewLock("permits");
  const auto nested = [&](const std::string& take) {
    return Taking("4") + Words{lock, "--", Binary()} + Taking(take) + Words{lock, "--", "true"};
  };
  RunZklock(nested("2"), Exited(0));
  CHECK_THAT(RunZklock(nested("3"), Exited(64)).err, Catch::Contains("hold 4 of --permits 6"));
}

TEST_CASE("a nested run counts the permits held and those reserved above it together") {
  const std::string lock = NewLock("permits");
  const auto below = [&](const Words& first, const Words& second, const Words& nested) {
    Words words;
    for (const Words& one : {first, second, nested}) {
      if (!words.empty()) words.push_back(Binary());
      words = words + one + Words{lock, "--"};
    }
    return words + Words{"true"};
  };
  const Words held = Taking("2");
  const Words reserved = Taking("2") + Words{"--reserve", "ci"};
  for (const auto& [first, second] : {std::pair(held, reserved), std::pair(reserved, held)}) {
    RunZklock(below(first, second, Taking("2")), Exited(0));
    RunZklock(below(first, second, reserved), Exited(0));
    CHECK_THAT(RunZklock(below(first, second, Taking("3")), Exited(64)).err,
               Catch::Contains(lock + " is reserved for ci by an outer zklock"));
    RunZklock(below(first, second, Taking("3") + Words{"--wait", "100ms"}), Exited(75));
  }
}

}  // namespace zklock::test
