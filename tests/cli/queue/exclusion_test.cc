#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "cli/zklock.h"
#include "support/peer.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

}  // namespace

TEST_CASE("contenders hold the lock in the order in which they queued") {
  auto [lock, holder] = HoldNewLock("hands");
  Child blocked = StartWaiter(lock);
  Child next = StartWaiter(lock);
  Tree tree;
  CHECK(tree.Children(lock).size() == 3);

  CHECK(Finish(holder) == Exited(0));
  CHECK(blocked.ReadLine() == "held");
  blocked.Write("7\n");
  CHECK(blocked.Wait() == Exited(7));
  CHECK(next.out().empty());
  CHECK(next.ReadLine() == "held");
  CHECK(Finish(next) == Exited(0));
  CHECK(tree.Children(lock).empty());
}

TEST_CASE("the lock is free once zklock has ended, even if the servers are far away") {
  auto [tree, lock] = MadeLock("free");
  Proxy proxy(TestServers());
  {
    Child near = StartHolder({"exclusive", "-z", proxy.address()}, lock);
    proxy.Delay(60ms);  // delays all requests, even zklock's last one
    const auto before = SteadyClock::now();
    CHECK(Finish(near) == Exited(0));
    CHECK(tree.Children(lock).empty());
    CHECK(SteadyClock::now() - before >= 120ms);  // one round trip
  }
  RunZklock({"exclusive", "-z", proxy.address(), lock, "--", "true"}, Exited(0));
  CHECK(tree.Children(lock).empty());

  Child holder = StartHolder(lock);
  RunZklock({"exclusive", "-z", proxy.address(), "-w", "1ms", lock, "--", "true"}, Exited(75));
  CHECK(tree.Children(lock).size() == 1);
  Child waiter = StartWaiter({"exclusive", "-z", proxy.address()}, lock);
  const auto before = SteadyClock::now();
  waiter.Signal(SIGTERM);
  CHECK(waiter.Wait() == Exited(128 + SIGTERM));
  CHECK(tree.Children(lock).size() == 1);
  CHECK(SteadyClock::now() - before >= 120ms);
}

TEST_CASE("every way not to wait exits at once with the conflict code and creates nothing") {
  auto [lock, holder] = HoldNewLock("busy");
  Tree tree;
  const auto before = tree.Children(lock);
  const std::vector<Words> spellings = {{"try"},
                                        {"try", "--read"},
                                        {"try", "--write"},
                                        {"exclusive", "--nonblock"},
                                        {"exclusive", "-n"},
                                        {"exclusive", "--wait", "0"},
                                        {"exclusive", "-w0s"},
                                        {"read", "-n"},
                                        {"write", "-n"}};
  for (Words words : spellings) {
    CAPTURE(words);
    for (const auto& word : Words{lock, "--", "sh", "-c", "echo ran"}) words.push_back(word);
    const Finished finished = RunZklock(words, Exited(75));
    CHECK(finished.out.empty());
    CHECK_THAT(finished.err, Catch::StartsWith("zklock: " + lock + " is held by sh (pid " +
                                               std::to_string(holder.pid()) + " on ") &&
                                 Catch::EndsWith("); the command was not run\n"));
    CHECK(Lines(finished.err).size() == 1);
  }
  // No contender was created and deleted, either: the next sequence number follows the holder's.
  CHECK_THAT(tree.Create(lock + "/x-", ZnodeKind::kEphemeralSequential),
             Catch::EndsWith("-0000000001"));
}

TEST_CASE("--wait 0 takes a free LOCK, as --nonblock does") {
  const Words spellings = GENERATE(Words{"--wait", "0"}, Words{"-w0s"}, Words{"-n"});
  const std::vector<Words> commands = {
      {"exclusive"},
      {"read"},
      {"write"},
      {"exclusive", "--dialect", "kazoo"},
      {"read", "--dialect", "kazoo"},
      {"exclusive", "--dialect", "simple"},
      {"exclusive", "--permits", "2"},
      {"exclusive", "--min-interval", "1ms"},
      {"exclusive", "--once-per", "1ms"},
      {"exclusive", "--max-queue", "0", "--supersede"},
      {"exclusive", NewLock("set"), "--also-read", NewLock("set")}};
  for (Words words : commands) {
    words.insert(words.begin() + 1, spellings.begin(), spellings.end());
    CAPTURE(words);
    for (const auto& word : Words{NewLock("free"), "--", "echo", "ran"}) words.push_back(word);
    CHECK(RunZklock(words, Exited(0)).out == "ran\n");
  }
}

TEST_CASE("--wait 0 --hold takes a free LOCK for the shell") {
  ChildOptions script = Zklock({});
  script.argv = {"sh", "-c", "\"$0\" exclusive --wait 0 --hold $1 && \"$0\" release $1; echo $?",
                 Binary(), NewLock("free")};
  const Finished finished = Run(script);
  CHECK(finished.err.empty());
  CHECK(finished.out == "0\n");
}

TEST_CASE("wait = 0 in a configuration file takes a free LOCK") {
  const TemporaryDirectory directory;
  const std::string file = directory.Write("zklock.conf", "wait = 0\n");
  const Finished finished =
      RunZklock({"exclusive", "--config", file, NewLock("free"), "--", "echo", "ran"});
  CHECK(finished.err.empty());
  CHECK(finished.out == "ran\n");
}

TEST_CASE("try takes a free LOCK") {
  const std::string lock = NewLock("free");
  CHECK(RunZklock({"try", lock, "--", "sh", "-c", "echo $ZKLOCK_MODE"}, Exited(0)).out ==
        "exclusive\n");
  CHECK(RunZklock({"try", "--read", lock, "--", "sh", "-c", "echo $ZKLOCK_MODE"}).out == "read\n");
  CHECK(RunZklock({"try", "--write", lock, "--", "sh", "-c", "echo $ZKLOCK_MODE"}).out ==
        "write\n");
  Child reader = StartHolder({"read"}, lock);
  RunZklock({"try", "--read", lock, "--", "true"}, Exited(0));
  RunZklock({"try", "--write", lock, "--", "true"}, Exited(75));
}

TEST_CASE("a reader's try does not overtake a waiting writer") {
  auto [lock, reader] = HoldNewLock("fair", {"read"});
  Child writer = StartWaiter({"write"}, lock);
  RunZklock({"try", "--read", lock, "--", "true"}, Exited(75));
}

TEST_CASE("the conflict code can be chosen from 0 to 255") {
  auto [lock, holder] = HoldNewLock("code");
  for (const int code : {0, 1, 75, 128, 255}) {
    const std::string text = std::to_string(code);
    RunZklock({"try", "-E", text, lock, "--", "true"}, Exited(code));
    RunZklock({"exclusive", "-w", "1ms", "--conflict-exit-code=" + text, lock, "--", "true"},
              Exited(code));
  }
}

TEST_CASE("a wait ends when its time is over, with the conflict code, and leaves the queue") {
  auto [lock, holder] = HoldNewLock("over");
  Tree tree;
  const auto alone = tree.Children(lock);
  const auto before = SteadyClock::now();
  const Finished finished =
      RunZklock({"exclusive", "--wait", "500ms", lock, "--", "sh", "-c", "echo ran"});
  CHECK(SteadyClock::now() - before >= 500ms);
  CHECK(SteadyClock::now() - before < 20s);
  CHECK(finished.exit == Exited(75));
  CHECK(finished.out.empty());
  // zklock might not know the holder's name yet.
  CHECK_THAT(finished.err,
             Catch::StartsWith("zklock: " + lock + " did not become free within 500ms") &&
                 Catch::EndsWith("; the command was not run\n"));
  CHECK(tree.Children(lock) == alone);
}

TEST_CASE("readers hold the lock together") {
  const std::string lock = NewLock("readers");
  std::vector<Child> readers;
  for (int i = 0; i < 5; ++i) readers.push_back(StartHolder({"read"}, lock));
  Child writer = StartWaiter({"write"}, lock);
  for (Child& reader : readers) {
    CHECK(writer.out().empty());
    CHECK(Finish(reader) == Exited(0));
  }
  CHECK(writer.ReadLine() == "held");
}

TEST_CASE("a reader waits for a writer that queued before it") {
  auto [lock, holder] = HoldNewLock("fair", {"read"});
  Child writer = StartWaiter({"write"}, lock);
  Child reader = StartWaiter({"read"}, lock);
  holder.CloseInput();
  CHECK(writer.ReadLine() == "held");
  CHECK(reader.out().empty());
  writer.CloseInput();
  CHECK(reader.ReadLine() == "held");
}

TEST_CASE("exclusive, write and read compete for one LOCK") {
  const std::vector<std::string> modes = {"exclusive", "write", "read"};
  for (const std::string& first : modes) {
    for (const std::string& second : modes) {
      CAPTURE(first, second);
      auto [lock, holder] = HoldNewLock("meet", {first});
      const bool together = first == "read" && second == "read";
      RunZklock({second, "-n", lock, "--", "true"}, Exited(together ? 0 : 75));
    }
  }
}

TEST_CASE("different LOCKs do not exclude each other, not even a parent and its child") {
  auto [lock, holder] = HoldNewLock("apart");
  RunZklock({"try", lock + "-2", "--", "true"}, Exited(0));
  RunZklock({"try", lock + "/below", "--", "true"}, Exited(0));
}

TEST_CASE("a waiter whose contender is deleted exits at once with the conflict code") {
  auto [lock, holder] = HoldNewLock("removed");
  Child waiter = StartWaiter({"exclusive", "--session-timeout", "40s"}, lock);
  Tree tree;
  tree.Delete(lock + "/" + InQueueOrder(tree.Children(lock)).back());
  CHECK(waiter.Wait(5s) == Exited(75));  // i.e. before its next read was due
  CHECK_THAT(waiter.err(), Catch::Contains("\nzklock: removed from the queue of " + lock));
  CHECK(waiter.out().empty());
}

TEST_CASE("200 contenders each increment a counter in a file, and no increment is lost") {
  constexpr int kContenders = 200;
  constexpr auto kPatienceForAll = 5 * kPatience;
  const TemporaryDirectory directory;
  const std::string file = directory.Write("counter", "0\n");
  const std::string lock = NewLock("counter");
  Child holder = StartHolder(lock);  // keeps all contenders in the queue
  std::vector<Child> contenders;
  for (int i = 0; i < kContenders; ++i) {
    // Read, then write: two commands that run at the same time lose an increment.
    contenders.push_back(Child::Start(Zklock(
        {"exclusive", "--progress", "none", lock, "--", "sh", "-c",
         "read n <\"$0\"; echo $((n + 1)) >\"$0.new\"; cat \"$0.new\" >\"$0\"; echo $n", file})));
  }
  // Use a new Tree: nothing keeps a Tree's session alive while the test waits for 200 commands.
  Tree().WaitForChildren(lock, kContenders + 1, kPatienceForAll);
  CHECK(directory.Read("counter") == "0\n");
  holder.CloseInput();
  std::vector<int> seen;
  for (Child& contender : contenders) {
    REQUIRE(contender.Wait(kPatienceForAll) == Exited(0));
    CHECK(contender.err().empty());
    seen.push_back(std::stoi(contender.out()));
  }
  std::sort(seen.begin(), seen.end());
  for (int i = 0; i < kContenders; ++i) CHECK(seen[static_cast<std::size_t>(i)] == i);
  CHECK(directory.Read("counter") == std::to_string(kContenders) + "\n");
  Tree().WaitForChildren(lock, 0);
}

TEST_CASE("contenders that join and leave at random lose no increment and leave no znodes") {
  constexpr int kContenders = 60;
  const TemporaryDirectory directory;
  const std::string file = directory.Write("counter", "0\n");
  const std::string lock = NewLock("hurry");
  std::vector<Child> contenders;
  for (int i = 0; i < kContenders; ++i) {
    Words words = {"exclusive", "-q"};
    if (i % 3 == 1) words = {"exclusive", "-q", "--wait", std::to_string(i * 10) + "ms"};
    if (i % 3 == 2) words = {"try", "-q"};
    for (const std::string& word :
         Words{lock, "--", "sh", "-c", "read n <\"$0\"; echo $((n + 1)) >\"$0\"", file}) {
      words.push_back(word);
    }
    contenders.push_back(Child::Start(Zklock(words)));
  }
  int ran = 0;
  for (Child& contender : contenders) {
    const Exit exit = contender.Wait();
    CHECK((exit == Exited(0) || exit == Exited(75)));
    CHECK(contender.err().empty());
    if (exit == Exited(0)) ++ran;
  }
  CHECK(ran >= kContenders / 3);
  CHECK(directory.Read("counter") == std::to_string(ran) + "\n");
  Tree().WaitForChildren(lock, 0);
}

}  // namespace zklock::test
