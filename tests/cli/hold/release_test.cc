// release for operators: requesting, forcing, waiting, and the confirmation on a terminal.

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/zklock.h"
#include "support/contender_names.h"
#include "support/peer.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

std::string OnlyContender(const std::string& lock) { return Tree().Children(lock).at(0); }

TEST_CASE(
    "A holder asked to release the lock ends its command, reports who asked and why, and exits "
    "with 76") {
  const auto mode = GENERATE(as<std::string>{}, "exclusive", "read", "write");
  auto [lock, holder] = HoldNewLock("release", {mode});
  RunZklock({"release", "--contender", OnlyContender(lock), "--yes", "--wait-released", "--reason",
             "a restart\n\x1b[31m", lock},
            Exited(0));
  CHECK(Tree().Children(lock).empty());  // --wait-released has waited
  CHECK(holder.Wait() == Exited(76));
  CHECK_THAT(holder.err(), Catch::Contains("asked to release " + lock));
  CHECK_THAT(holder.err(), Catch::Contains("a restart"));
  CHECK(holder.err().find('\x1b') == std::string::npos);
  CHECK(Lines(holder.err()).size() == 1);
}

TEST_CASE("A waiter asked to release leaves with the conflict code; the holder stays") {
  auto [lock, holder] = HoldNewLock("release");
  const TemporaryDirectory directory;
  Child waiter = StartWaiter({"exclusive", "-E", "5", "--events", directory.Path("events")}, lock);
  const std::string waiting = InQueueOrder(Tree().Children(lock)).at(1);
  const Finished asked = RunZklock(
      {"release", "--contender", waiting, "--yes", "-v", "--wait-released", lock}, Exited(0));
  const std::string whom = "sh \\(pid " + std::to_string(waiter.pid()) + ", [^)]*waiting for .*\\)";
  CHECK_THAT(asked.err,
             Catch::Matches("(.|\n)*zklock: asked " + whom + " to leave the queue of " + lock +
                            "\nzklock: " + whom + " has left the queue of " + lock + "\n"));
  CHECK(waiter.Wait() == Exited(5));
  CHECK_THAT(waiter.err(), Catch::Contains("asked to leave the queue"));
  CHECK_THAT(directory.Read("events"), Catch::Contains("\"reason\":\"requested\""));
  CHECK(Tree().Children(lock).size() == 1);
}

TEST_CASE("release --holders asks all holders, and --all also asks the waiters") {
  const auto all = GENERATE(false, true);
  auto [lock, first] = HoldNewLock("release", {"read"});
  Child second = StartHolder({"read"}, lock);
  Child waiter = StartWaiter(lock);
  RunZklock({"release", all ? "--all" : "--holders", "--yes", lock}, Exited(0));
  CHECK(first.Wait() == Exited(76));
  CHECK(second.Wait() == Exited(76));
  if (all) {
    CHECK(waiter.Wait() == Exited(75));
  } else {
    CHECK(waiter.ReadLine() == "held");
  }
}

TEST_CASE(
    "release asks Curator contenders by Curator's message, and incompatible ones not at all") {
  const std::string lock = NewLock("release");
  Tree tree;
  const std::string curator =
      tree.Create(lock + "/" + kCuratorLock, ZnodeKind::kEphemeralSequential, "127.0.0.1");
  RunZklock({"release", "--holders", "--yes", lock}, Exited(0));
  CHECK(tree.Get(curator)->data == "__REVOKE__");
  tree.Delete(curator);
  const std::string incompatible =
      tree.Create(lock + "/incompatible-", ZnodeKind::kEphemeralSequential, "data");
  CHECK_THAT(RunZklock({"release", "--holders", "--yes", lock}, Exited(75)).err,
             Catch::Contains("--force"));
  CHECK(tree.Get(incompatible)->data == "data");
}

TEST_CASE("A zklock obeys Curator's message and ignores all other data, even almost a megabyte") {
  auto [lock, holder] = HoldNewLock("release");
  Tree tree;
  const std::string contender = lock + "/" + OnlyContender(lock);
  const std::string reason(900'000, 'x');
  for (const std::string& data :
       {std::string("{\"revoke\":17}"), std::string("__REVOKE"),
        "{\"revoke\":{\"by\":\"me\",\"reason\":\"" + reason + "\"}}", std::string()}) {
    tree.SetData(contender, data);
  }
  holder.Write("0\n");
  CHECK(holder.Wait() == Exited(0));
  CHECK(holder.err().empty());

  Child next = StartHolder(lock);
  tree.SetData(lock + "/" + OnlyContender(lock), "__REVOKE__");
  CHECK(next.Wait() == Exited(76));
}

TEST_CASE("release --force deletes at once and states the consequences") {
  auto [lock, holder] = HoldNewLock("release", {"exclusive", "--on-lost", "warn"});
  CHECK_THAT(RunZklock({"release", "--holders", "--force", "--yes", lock}, Exited(0)).err,
             Catch::Contains("two may run together"));
  CHECK(Tree().Children(lock).empty());
  CHECK_FALSE(holder.HasEnded());
  CHECK(Finish(holder) == Exited(76));
}

TEST_CASE(
    "release affects no newer holder: the name must match exactly, and a free LOCK has no match") {
  const std::string lock = NewLock("release");
  std::string old;
  {
    Child holder = StartHolder(lock);
    old = OnlyContender(lock);
    holder.CloseInput();
    holder.Wait();
  }
  RunZklock({"release", "--holders", "--yes", lock}, Exited(75));
  Child holder = StartHolder(lock);
  RunZklock({"release", "--contender", old, "--yes", lock}, Exited(75));
  CHECK_FALSE(holder.HasEnded());
}

TEST_CASE("release requires --yes without a terminal; on one it states its action, and asks") {
  auto [lock, holder] = HoldNewLock("release", {"exclusive", "--label", "nightly"});
  RunZklock({"release", "--holders", lock}, Exited(64));
  {
    Child asked = Child::StartOnTerminal(Zklock({"release", "--holders", lock}));
    const std::string question = asked.ReadUntil("[y/N] ");
    CHECK_THAT(question, Catch::StartsWith("zklock: end sh (pid ") && Catch::Contains(", for ") &&
                             Catch::Contains(", 'nightly') and release " + lock + "? [y/N] "));
    CHECK(question.find('\n') == std::string::npos);
    asked.Write("n\n");
    CHECK(asked.Wait() == Exited(75));
  }
  CHECK_FALSE(holder.HasEnded());
  {
    const Child waiter = StartWaiter(lock);
    Child asked = Child::StartOnTerminal(Zklock({"release", "--all", lock}));
    CHECK_THAT(asked.ReadUntil("end these 2 and release " + lock + "? [y/N] "),
               Catch::StartsWith("zklock: 1. held: sh (pid ") &&
                   Catch::Contains("zklock: 2. waiting: sh (pid ") &&
                   Catch::Contains(", waiting for "));
    asked.Write("n\n");
    CHECK(asked.Wait() == Exited(75));
  }
  Child asked = Child::StartOnTerminal(Zklock({"release", "--holders", lock}));
  asked.ReadUntil(" and release " + lock + "? [y/N] ");
  asked.Write("y\n");
  CHECK(asked.Wait() == Exited(0));
  CHECK(holder.Wait() == Exited(76));
}

TEST_CASE("release does not wait for a waiter that acquires the lock before reading the request") {
  auto [lock, holder] = HoldNewLock("release");
  Tree tree;
  const std::string waiter = tree.Create(lock + "/" + kZklockLock, ZnodeKind::kEphemeralSequential);
  Child asked =
      Child::StartOnTerminal(Zklock({"release", "--session-timeout", "4s", "--wait-released",
                                     "--contender", BaseName(waiter), lock}));
  asked.ReadUntil("[y/N] ");
  asked.Write("y\n");
  asked.ReadUntil("to leave the queue of " + lock);
  CHECK(Finish(holder) == Exited(0));
  asked.ReadUntil("has acquired " + lock + " in the meantime: left alone");
  CHECK(asked.Wait() == Exited(75));
  CHECK_THAT(tree.Get(waiter)->data, Catch::Contains("onlyWaiting"));
}

TEST_CASE("release --force tells a contender who removed it and why, if the ACL allows that") {
  const std::string lock = NewLock("release");
  Proxy holders(TestServers());
  Proxy releasers(TestServers());
  const auto read = std::make_shared<std::promise<void>>();
  const auto has_read = std::make_shared<std::atomic<bool>>(false);
  const std::shared_future<void> was_read = read->get_future().share();
  holders.EditReplies([=](const std::string& request, std::string reply) {
    const bool tells = request.starts_with("get ") && reply.find("forced") != std::string::npos;
    if (tells && !has_read->exchange(true)) read->set_value();
    return std::optional(std::move(reply));
  });
  releasers.EditReplies([=](const std::string& request, std::string reply) {
    // Delay the deletion until then: the 100 ms that release waits may be too short on a busy
    // machine.
    if (request.starts_with("set " + lock)) was_read.wait_for(std::chrono::seconds(20));
    return std::optional(std::move(reply));
  });
  const Words words = {"release", "-z",       releasers.address(), "--force", "--holders",
                       "--yes",   "--reason", "disk full",         lock};
  Child holder = StartHolder({"exclusive", "--label", "nightly", "-z", holders.address()}, lock);
  SECTION("one that reads it") {
    RunZklock(words, Exited(0));
    CHECK(holder.Wait() == Exited(76));
    CHECK_THAT(holder.err(),
               Catch::StartsWith("zklock: lost " + lock + ": taken away by ") &&
                   Catch::EndsWith(" ('disk full'); sh ('nightly') was terminated with TERM\n"));
  }
  SECTION("one that release cannot write to") {
    Tree().SetAcl(lock + "/" + OnlyContender(lock), kRead);
    read->set_value();
    RunZklock(words, Exited(0));
    CHECK(holder.Wait() == Exited(76));
    CHECK(holder.err() ==
          "zklock: lost " + lock +
              ": our contender was deleted; sh ('nightly') was terminated with TERM\n");
  }
  SECTION("one that cannot read it") {
    holders.Freeze();
    read->set_value();
    RunZklock(words, Exited(0));
    CHECK(Tree().Children(lock).empty());
  }
}

TEST_CASE("--position selects one contender, on a terminal only; --host selects all of a host") {
  auto [lock, holder] = HoldNewLock("release");
  Child waiter = StartWaiter(lock);
  RunZklock({"release", "--position", "2", "--yes", lock}, Exited(64));
  {
    Child asked = Child::StartOnTerminal(Zklock({"release", "--position", "2", lock}));
    CHECK_THAT(asked.ReadUntil(" to leave the queue of " + lock + "? [y/N] "),
               Catch::StartsWith("zklock: ask sh (pid "));
    asked.Write("y\n");
    CHECK(asked.Wait() == Exited(0));
  }
  CHECK(waiter.Wait() == Exited(75));
  CHECK_FALSE(holder.HasEnded());
  RunZklock({"release", "--host", "nowhere", "--yes", lock}, Exited(75));
  Child other = StartWaiter(lock);
  const std::string host = RunZklock({"exclusive", NewLock("release"), "--", "hostname"}).out;
  RunZklock({"release", "--host", host.substr(0, host.find('\n')), "--yes", lock}, Exited(0));
  CHECK(other.Wait() == Exited(75));
  CHECK(holder.Wait() == Exited(76));
}

TEST_CASE("Confirming the release of a waiter does not end a command that it has since begun") {
  auto [lock, holder] = HoldNewLock("release");
  Child waiter = StartWaiter(lock);
  SECTION("before the answer") {
    const Words force = GENERATE(Words{}, Words{"--force"});
    CAPTURE(force);
    const auto kind = GENERATE(as<std::string>{}, "--position", "--all");
    const Words target = kind == "--all" ? Words{kind} : Words{kind, "2"};
    Child asked = Child::StartOnTerminal(Zklock(Words{"release", lock} + target + force));
    asked.ReadUntil("[y/N] ");
    CHECK(Finish(holder) == Exited(0));
    REQUIRE(waiter.ReadLine() == "held");
    asked.Write("y\n");
    asked.ReadToEnd();
    CHECK_THAT(asked.out(), Catch::Contains("has acquired " + lock + " in the meantime"));
    CHECK(asked.Wait() == Exited(75));
  }
  SECTION("between the last look at the queue and the request") {
    Proxy proxy(TestServers());
    const auto is_answered = std::make_shared<std::atomic<bool>>(false);
    const auto looks = std::make_shared<std::promise<void>>();
    const auto holds = std::make_shared<std::promise<void>>();
    const auto are_held = std::make_shared<std::shared_future<void>>(holds->get_future().share());
    proxy.EditReplies([=](const std::string& request, std::string reply) {
      const bool looks_now = request.starts_with("get " + lock + "/") && is_answered->load();
      if (looks_now && is_answered->exchange(false)) {
        looks->set_value();
        are_held->wait_for(std::chrono::seconds(20));
      }
      return std::optional(std::move(reply));
    });
    Child asked =
        Child::StartOnTerminal(Zklock({"release", "-z", proxy.address(), "--position", "2", lock}));
    asked.ReadUntil("[y/N] ");
    is_answered->store(true);
    asked.Write("y\n");
    REQUIRE(looks->get_future().wait_for(std::chrono::seconds(20)) == std::future_status::ready);
    CHECK(Finish(holder) == Exited(0));
    REQUIRE(waiter.ReadLine() == "held");
    holds->set_value();
    CHECK(asked.Wait() == Exited(0));
  }
  CHECK(Finish(waiter) == Exited(0));
}

TEST_CASE("A waiter deleted by --force has no command that could run beside another's") {
  auto [lock, holder] = HoldNewLock("release");
  const Child waiter = StartWaiter(lock);
  const std::string waiting = InQueueOrder(Tree().Children(lock)).at(1);
  CHECK_THAT(
      RunZklock({"release", "--force", "--contender", waiting, "--yes", lock}, Exited(0)).err,
      Catch::EndsWith("zklock: deleted " + waiting + " from the queue of " + lock + "\n"));
}

TEST_CASE("release does not call an ephemeral child without a queue number persistent") {
  const std::string lock = NewLock("release");
  const std::string permit = "0123456789abcdef0123456789abcdef";  // of kazoo's Semaphore
  Tree tree;
  tree.Create(lock + "/" + permit, ZnodeKind::kEphemeral);
  CHECK(RunZklock({"release", "--yes", "--contender", permit, lock}, Exited(64)).err ==
        "zklock: " + permit + " in " + lock +
            " is not a contender (its name has no queue number): nothing was released\n");
}

TEST_CASE("A request to a --hold is passed to its owner, which has time to end") {
  const std::string lock = NewLock("release");
  ChildOptions options = Zklock({});
  options.argv = {"bash", "-c", R"(trap 'echo told; exit 4' TERM
                                   "$Z" exclusive --hold "$L"; echo held; read x)"};
  options.also_environment = {"Z=" + Binary(), "L=" + lock};
  options.keep_stdin = true;
  Child script = Child::Start(options);
  REQUIRE(script.ReadLine() == "held");
  RunZklock({"release", "--holders", "--yes", "--wait-released", lock}, Exited(0));
  CHECK(script.Wait() == Exited(4));
  CHECK(script.out() == "held\ntold\n");
}

}  // namespace
TEST_CASE("a holder in the simple dialect can be asked to release the lock") {
  auto [lock, holder] = HoldNewLock("release", {"exclusive", "--dialect", "simple"});
  RunZklock({"release", "--holders", "--yes", lock}, Exited(0));
  CHECK(holder.Wait() == Exited(76));
  CHECK_THAT(holder.err(), Catch::Contains("asked to release " + lock));
}

TEST_CASE("a contender of go-zookeeper cannot be asked to release the lock") {
  auto [tree, lock] = MadeLock("release-go");
  const std::string contender = tree.Create(lock + "/_c_0123456789abcdef0123456789abcdef-lock-",
                                            ZnodeKind::kEphemeralSequential, "its own data");
  for (const Words& words : {Words{"--yes"}, Words{"--dry-run"}}) {
    const Finished finished = RunZklock(Words{"release", "--holders", lock} + words);
    CHECK(finished.exit == Exited(75));
    CHECK_THAT(finished.err, Catch::Contains("cannot be asked to release"));
    CHECK(tree.Get(contender)->data == "its own data");
  }
}

}  // namespace zklock::test
