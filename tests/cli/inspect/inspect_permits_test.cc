// inspect and release on semaphores used by zklock and by real Curator programs.

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/inspect/inspect_output.h"
#include "cli/queue/lock_peer.h"

namespace zklock::test {
namespace {

using nlohmann::json;

/// Returns the only LOCK in the output.
json OneAsJson(const std::string& lock) {
  const json locks = InspectJson(lock);
  REQUIRE(locks.size() == 1);
  return locks[0];
}

const Words kTwoPermits{"exclusive", "--progress", "none", "--permits", "2"};

/// Starts a holder, and returns once it has left the turnstile: the children of LOCK no longer
/// change after that.
Child StartPermit(const std::string& lock) {
  Child holder = StartHolder(kTwoPermits, lock);
  Tree().WaitForChildren(lock + "/locks", std::size_t{0});
  return holder;
}

/// Starts a waiter, and returns once it has a znode in `leases`.
Child StartFirstWaiter(const std::string& lock, std::size_t holders = 2) {
  Child waiter = Child::Start(HolderOptions(kTwoPermits, lock));
  Tree().WaitForChildren(lock + "/leases", holders + 1);
  return waiter;
}

Child StartSecondWaiter(const std::string& lock) {
  Child waiter = Child::Start(HolderOptions(kTwoPermits, lock));
  Tree().WaitForChildren(lock + "/locks", 2);
  return waiter;
}

}  // namespace

TEST_CASE("a waiter keeps its waiting time when it becomes the next to get a permit") {
  const std::string lock = NewLock("permits");
  const Words one_permit = {"exclusive", "--progress", "none", "--permits", "1"};
  Child first = StartHolder(one_permit, lock);
  Tree tree;
  tree.WaitForChildren(lock + "/locks", std::size_t{0});
  Child second = Child::Start(HolderOptions(one_permit, lock));
  tree.WaitForChildren(lock + "/leases", std::size_t{2});
  Child third = Child::Start(HolderOptions(one_permit, lock));
  tree.WaitForChildren(lock + "/locks", std::size_t{2});
  const json before = OneAsJson(lock)["contenders"][2];
  REQUIRE(before["pid"] == third.pid());
  // Its command will get the token of the permit, which does not exist yet.
  CHECK(before["token"] == nullptr);
  CHECK(Finish(first) == Exited(0));
  REQUIRE(second.ReadLine() == "held");
  tree.WaitForChildren(lock + "/locks", std::size_t{1});
  tree.WaitForChildren(lock + "/leases", std::size_t{2});
  const json after = OneAsJson(lock)["contenders"][1];
  REQUIRE(after["pid"] == third.pid());
  CHECK(after["state"] == "waiting");
  CHECK(after["since"] == before["since"]);
  CHECK(after["token"].is_string());
  CHECK(Finish(second) == Exited(0));
  REQUIRE(third.ReadLine() == "held");
  CHECK(OneAsJson(lock)["contenders"][0]["token"] == after["token"]);
}

TEST_CASE("a semaphore is shown as one queue, with its used and free permits") {
  const std::string root = NewLock("permits");
  const std::string lock = root + "/s";
  Child first = StartPermit(lock);
  CHECK_THAT(Inspect({lock}),
             Catch::StartsWith(lock + ": 1 of 2 permits used, 1 free, 0 waiting\n"));
  json found = OneAsJson(lock);
  CHECK(found["lock"] == lock);
  CHECK(found["kind"] == "semaphore");
  CHECK(found["permits"] == 2);
  CHECK(found["used"] == 1);
  CHECK(found["free"] == 1);
  CHECK(found["contenders"][0]["pid"] == first.pid());
  CHECK(found["contenders"][0]["sinceExact"] == true);

  Child second = StartPermit(lock);
  Child third = StartFirstWaiter(lock);
  Child fourth = StartSecondWaiter(lock);
  const std::string text = Inspect({lock});
  CHECK_THAT(text, Catch::StartsWith(lock + ": 2 of 2 permits used, 0 free, 2 waiting\n"));
  CHECK_THAT(text, Catch::EndsWith("\n3 waits for any of 1 to 2\n4 waits for 3\n"));
  const std::string permits = Inspect({lock + "/leases"});
  CHECK_THAT(permits,
             Catch::StartsWith(lock + "/leases: permits; see zklock inspect " + lock + "\n"));
  CHECK_THAT(permits, !Catch::Contains("wait") && !Catch::Contains("held"));
  found = OneAsJson(lock);
  const json& contenders = found["contenders"];
  REQUIRE(contenders.size() == 4);
  CHECK(found["used"] == 2);
  CHECK(found["free"] == 0);
  CHECK(contenders[1]["pid"] == second.pid());
  CHECK(contenders[1]["state"] == "held");
  CHECK(contenders[2]["pid"] == third.pid());
  CHECK(contenders[2]["state"] == "waiting");
  CHECK(contenders[2]["waitsFor"] == contenders[0]["name"]);
  CHECK(contenders[3]["pid"] == fourth.pid());
  CHECK(contenders[3]["waitsFor"] == contenders[2]["name"]);
  const Znode lease =
      Tree().Get(lock + "/leases/" + contenders[0]["name"].get<std::string>()).value();
  CHECK(contenders[0]["token"] == std::to_string(lease.created_zxid));
  CHECK(RunZklock({"inspect", "-q", lock}).exit == Exited(75));
  CHECK_THAT(Inspect({"-v", lock}), Catch::Contains(contenders[3]["name"].get<std::string>()));

  const Words tree = Lines(Inspect({root}));
  REQUIRE(tree.size() == 4);
  CHECK_THAT(tree[1],
             Catch::StartsWith(lock + "  2 of 2 permits used: ") && Catch::Contains(" and 1 more"));
  CHECK(tree[3] == "1 lock in use below " + root);
  const std::string graph = Inspect({"--dot", root});
  CHECK_THAT(graph, Catch::Contains(lock + ": 2 of 2 permits used") &&
                        Catch::Contains("n2 -> n0 [label=\"waits for one of\"];") &&
                        Catch::Contains("n2 -> n1 [label=\"waits for one of\"];") &&
                        Catch::Contains("n3 -> n2 [label=\"waits for\"];") &&
                        !Catch::Contains("red"));
}

TEST_CASE("a run with several permits is one holder, and all of its permits are used") {
  const std::string lock = NewLock("permits");
  const auto taking = [](const std::string& take) {
    return Words{"exclusive", "--progress", "none", "--permits", "24", "--take", take};
  };
  Child first = StartHolder(taking("12"), lock);
  Child second = StartHolder(taking("8"), lock);
  Child third = Child::Start(HolderOptions(taking("8"), lock));
  Tree().WaitForChildren(lock + "/leases", 28);
  Child fourth = Child::Start(HolderOptions(taking("2"), lock));
  Tree().WaitForChildren(lock + "/locks", 2);
  const std::string text = Inspect({lock});
  CHECK_THAT(text, Catch::StartsWith(lock + ": 20 of 24 permits used, 4 free, 2 waiting\n"));
  const Words lines = Lines(text);
  REQUIRE(lines.size() >= 7);
  CHECK_THAT(lines[3], Catch::Contains("held") && Catch::Contains("12 permits"));
  CHECK_THAT(lines[4], Catch::Contains("held") && Catch::Contains(" 8 permits"));
  CHECK_THAT(lines[5], Catch::Contains("waiting") && Catch::Contains(" 8 permits"));
  CHECK_THAT(lines[6], Catch::Contains("waiting") && Catch::Contains(" 2 permits"));
  const json found = OneAsJson(lock);
  CHECK(found["used"] == 20);
  CHECK(found["free"] == 4);
  REQUIRE(found["contenders"].size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(found["contenders"][i]["take"] == std::vector{12, 8, 8, 2}[i]);
  }
  const std::string metrics = Inspect({"--prometheus", lock});
  for (const std::string& sample :
       {"zklock_holders{lock=\"" + lock + "\"} 2\n", "zklock_permits{lock=\"" + lock + "\"} 24\n",
        "zklock_permits_used{lock=\"" + lock + "\"} 20\n",
        "zklock_waiting{lock=\"" + lock + "\"} 2\n"}) {
    CHECK_THAT(metrics, Catch::Contains(sample));
  }
  const Finished shown = RunZklock({"release", "--dry-run", "--contender",
                                    InQueueOrder(Tree().Children(lock + "/leases")).at(13), lock},
                                   Exited(0));
  CHECK_THAT(shown.out, Catch::Contains("8 permits"));
}

TEST_CASE("a reservation that has lost a permit is shown as overdue, with the reason") {
  const std::string lock = NewLock("permits");
  CHECK(RunZklock({"exclusive", "--permits", "4", "--take", "3", "--reserve", "freeze", "--for",
                   "1h", lock})
            .exit == Exited(0));
  const std::string until = OneAsJson(lock)["contenders"][0]["reservation"]["until"];
  Tree().Delete(lock + "/leases/" + Tree().Children(lock + "/leases").back());
  CHECK_THAT(Inspect({lock}), Catch::Contains("freeze (has lost a permit)"));
  const json reservation = OneAsJson(lock)["contenders"][0]["reservation"];
  CHECK(reservation["overdue"] == true);
  CHECK(reservation["until"] == until);
  const Finished checked = RunZklock({"inspect", "--check", lock}, Exited(1));
  CHECK_THAT(checked.out, Catch::Contains("the reservation freeze has lost a permit"));
}

TEST_CASE("an unused semaphore is free and shows how many permits it has") {
  const std::string lock = NewLock("permits");
  Tree tree;
  // Not a container znode, which the servers may delete together with the number in it.
  tree.Create(lock + "/leases", ZnodeKind::kPersistent, "3");
  CHECK(RunZklock({"exclusive", "--permits", "3", lock, "--", "true"}).exit == Exited(0));
  tree.WaitForChildren(lock + "/leases", std::size_t{0});
  tree.WaitForChildren(lock + "/locks", std::size_t{0});
  CHECK(Inspect({lock}) == lock + ": free, 3 permits\n");
  CHECK(RunZklock({"inspect", "-q", lock}).exit == Exited(0));
  const json found = OneAsJson(lock);
  CHECK(found["kind"] == "semaphore");
  CHECK(found["held"] == false);
  CHECK(found["free"] == 3);
}

TEST_CASE("a watcher sees each change among a semaphore's permits and in its turnstile") {
  const std::string lock = NewLock("permits");
  Child first = StartPermit(lock);
  Child watcher = Child::Start(Zklock({"inspect", "--watch", lock}));
  const auto until = [&](int used, std::size_t contenders) {
    for (;;) {
      const json line = json::parse(watcher.ReadLine());
      CHECK(line["kind"] == "semaphore");
      if (line["used"] == used && line["contenders"].size() == contenders) return;
    }
  };
  until(1, 1);
  Child second = StartPermit(lock);
  until(2, 2);
  Child third = StartFirstWaiter(lock);
  until(2, 3);
  Child fourth = StartSecondWaiter(lock);
  until(2, 4);
  first.CloseInput();
  until(2, 3);
  fourth.Signal(SIGTERM);
  until(2, 2);
  second.CloseInput();
  until(1, 1);
}

TEST_CASE("a wait cycle through a semaphore is a deadlock only if no holder can proceed") {
  const std::string root = NewLock("permits");
  const std::string semaphore = root + "/s";
  const std::string lock = root + "/l";
  // Holds a permit, and asks for the lock when told to.
  const auto start = [&] {
    ChildOptions options =
        Zklock({"exclusive", "--progress", "none", "--permits", "2", semaphore, "--", "sh", "-c",
                "echo held; read go; exec \"$0\" exclusive -v \"$1\" -- true", Binary(), lock});
    options.keep_stdin = true;
    Child child = Child::Start(options);
    CHECK(child.ReadLine() == "held");
    return child;
  };
  Child first = start();
  Child second = start();
  ChildOptions options =
      Zklock({"exclusive", lock, "--", "sh", "-c",
              "echo held; exec \"$0\" exclusive --progress none --permits 2 \"$1\" -- true",
              Binary(), semaphore});
  Child wants_permit = Child::Start(options);
  CHECK(wants_permit.ReadLine() == "held");
  Tree().WaitForChildren(semaphore + "/leases", 3);
  first.Write("\n");
  first.ReadErrUntil("waiting for");
  CHECK_THAT(Inspect({"--dot", root}), !Catch::Contains("red"));
  second.Write("\n");
  second.ReadErrUntil("waiting for");
  CHECK_THAT(Inspect({"--dot", root}), Catch::Contains("1 deadlock, in red"));
}

TEST_CASE("release --holders asks all permit holders, and --all also asks their waiters") {
  const auto all = GENERATE(false, true);
  const std::string lock = NewLock("permits");
  Child first = StartPermit(lock);
  Child second = StartPermit(lock);
  Child third = StartFirstWaiter(lock);
  Child fourth = StartSecondWaiter(lock);
  const Finished finished =
      RunZklock({"release", all ? "--all" : "--holders", "--yes", "--wait-released", lock});
  CHECK(finished.exit == Exited(0));
  CHECK(Lines(finished.err).size() == (all ? 8 : 4));
  CHECK_THAT(finished.err, Catch::Contains(" holds " + lock + " (a permit): "));
  CHECK(first.Wait() == Exited(76));
  CHECK(second.Wait() == Exited(76));
  if (all) {
    CHECK(third.Wait() == Exited(75));
    CHECK(fourth.Wait() == Exited(75));
    CHECK(Tree().Children(lock + "/leases").empty());
  } else {
    CHECK(third.ReadLine() == "held");
    CHECK(fourth.ReadLine() == "held");
  }
}

TEST_CASE("release --contender accepts a holder, or a waiter by either of its names") {
  const std::string lock = NewLock("permits");
  Child first = StartPermit(lock);
  Child second = StartPermit(lock);
  Child third = StartFirstWaiter(lock);
  Child fourth = StartSecondWaiter(lock);
  const json contenders = OneAsJson(lock)["contenders"];
  const auto release = [&](const std::string& name) {
    return RunZklock({"release", "--contender", name, "--yes", "--wait-released", lock}).exit;
  };
  SECTION("a holder") {
    CHECK(release(contenders[1]["name"]) == Exited(0));
    CHECK(second.Wait() == Exited(76));
    CHECK(third.ReadLine() == "held");
    CHECK_FALSE(first.HasEnded());
    CHECK_FALSE(fourth.HasEnded());
    CHECK(release(contenders[1]["name"]) == Exited(75));
  }
  SECTION("a waiter for a permit, by its znode in leases") {
    CHECK(release(contenders[2]["name"]) == Exited(0));
    CHECK(third.Wait() == Exited(75));
  }
  SECTION("the same waiter, by its name in the turnstile") {
    const Words names = InQueueOrder(Tree().Children(lock + "/locks"));
    CHECK(release(names.at(0)) == Exited(0));
    CHECK(third.Wait() == Exited(75));
  }
  SECTION("a waiter in the turnstile") {
    CHECK(release(contenders[3]["name"]) == Exited(0));
    CHECK(fourth.Wait() == Exited(75));
    CHECK_FALSE(third.HasEnded());
  }
  CHECK_FALSE(first.HasEnded());
}

TEST_CASE("release --force deletes permits and waiters") {
  const std::string lock = NewLock("permits");
  Child first = StartPermit(lock);
  Child second = StartPermit(lock);
  Child third = StartFirstWaiter(lock);
  Child fourth = StartSecondWaiter(lock);
  const Finished finished = RunZklock({"release", "--all", "--force", "--yes", lock});
  CHECK(finished.exit == Exited(0));
  CHECK(first.Wait() == Exited(76));
  CHECK(second.Wait() == Exited(76));
  CHECK(third.Wait() == Exited(75));
  CHECK(fourth.Wait() == Exited(75));
}

TEST_CASE("a shell that holds a permit can release it and see that it holds it") {
  const std::string lock = NewLock("permits");
  ChildOptions options = Zklock({});
  options.argv = {"bash", "-c", R"("$Z" exclusive --hold --permits 2 "$L"; "$Z" inspect --mine "$L"
                                   echo mine $?; read x; "$Z" release "$L"; echo released $?
                                   "$Z" inspect --mine "$L" 2>/dev/null; echo mine $?)"};
  options.also_environment = {"Z=" + Binary(), "L=" + lock};
  options.keep_stdin = true;
  Child other = StartPermit(lock);
  Child script = Child::Start(options);
  CHECK(script.ReadLine() == "mine 0");
  CHECK(OneAsJson(lock)["used"] == 2);
  script.Write("\n");
  CHECK(script.ReadLine() == "released 0");
  CHECK(script.ReadLine() == "mine 76");
  CHECK_FALSE(other.HasEnded());
}

TEST_CASE("a semaphore of Curator programs is shown as one, and can only be released by force") {
  const std::string lock = NewLock("permits");
  // Both locks share one session, as in a program with many threads.
  LockPeer curator = LockPeer::Curator();
  for (const char* const name : {"first", "third"}) {
    REQUIRE(curator.Ask(name, "make semaphore:2 " + lock) == "made");
  }
  REQUIRE(curator.Ask("first", "acquire") == "acquired");
  json found = OneAsJson(lock);
  CHECK(found["kind"] == "semaphore");
  CHECK(found["permits"] == nullptr);
  CHECK(found["used"] == 1);
  CHECK(found["free"] == nullptr);
  CHECK(found["contenders"][0]["program"] == "Curator");
  CHECK(found["contenders"][0]["state"] == "held");

  // One zklock holds a permit (and records the number of permits if none is recorded), and a
  // Curator program waits.
  Child second = StartPermit(lock);
  curator.Tell("third", "acquire");
  Tree().WaitForChildren(lock + "/leases", 3);
  found = OneAsJson(lock);
  CHECK(found["permits"] == 2);
  CHECK(found["used"] == 2);
  REQUIRE(found["contenders"].size() == 3);
  CHECK(found["contenders"][1]["program"] == "zklock");
  CHECK(found["contenders"][1]["state"] == "held");
  CHECK(found["contenders"][2]["program"] == "Curator");
  CHECK(found["contenders"][2]["state"] == "waiting");
  CHECK_THAT(Inspect({lock}),
             Catch::StartsWith(lock + ": 2 of 2 permits used, 0 free, 1 waiting\n") &&
                 Catch::Contains("(Curator)") && Catch::EndsWith("\n3 waits for any of 1 to 2\n"));

  const std::string name = found["contenders"][0]["name"];
  const Finished asked = RunZklock({"release", "--contender", name, "--yes", lock});
  CHECK(asked.exit == Exited(75));
  CHECK_THAT(asked.err, Catch::Contains("--force"));
  CHECK(Tree().Get(lock + "/leases/" + name)->data != "__REVOKE__");
  CHECK(RunZklock({"release", "--contender", name, "--force", "--yes", lock}).exit == Exited(0));
  CHECK(curator.Answer("third") == "acquired");
  Tree().WaitForChildren(lock + "/locks", std::size_t{0});
  CHECK(OneAsJson(lock)["used"] == 2);
  CHECK_FALSE(second.HasEnded());
}

}  // namespace zklock::test
