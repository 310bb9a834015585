// Tests two promises, mutual exclusion and no orphans, against the whole program. The tests do not
// rely on timing to detect leftover processes: every process of a command holds an flock(2) on one
// file, and the next holder's command fails unless it gets that lock at once.

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/zklock.h"
#include "support/peer.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

using namespace std::chrono_literals;

/// A process tree that no stop signal ends: a child, a child in its own session, and an orphan in
/// its own session. Each writes "up" and keeps the file locked while it lives.
const std::string kStubbornTree =
    "trap '' TERM HUP INT CONT; "
    "sh -c 'echo up; exec sleep 1000' & "
    "setsid sh -c 'echo up; exec sleep 1000' & "
    "( setsid sh -c 'echo up; exec sleep 1000' & ); "
    "echo up; exec sleep 1000";
constexpr int kTreeSize = 4;

/// Detects two commands that run at the same time: `flock` fails with 1 if another process still
/// has the file locked.
class Arena {
 public:
  /// Starts `zklock WORDS LOCK -- …` with the stubborn tree.
  Child StartStubborn(Words words) const {
    for (const auto& word : Words{lock, "--", "flock", "-n", file_, "sh", "-c", kStubbornTree}) {
      words.push_back(word);
    }
    Child child = Child::Start(Zklock(words));
    for (int i = 0; i < kTreeSize; ++i) REQUIRE(child.ReadLine() == "up");
    return child;
  }

  /// Starts `zklock exclusive LOCK -- …`, which writes "alone" if it runs alone.
  Child StartNext() const {
    return Child::Start(Zklock({"exclusive", "-v", "--session-timeout", "10s", lock, "--", "flock",
                                "-n", file_, "echo", "alone"}));
  }
  /// Starts the next zklock, and returns once it is queued.
  Child QueueNext() const {
    Child child = StartNext();
    child.ReadErrUntil("waiting for " + lock);
    return child;
  }

  void MustBeFree() const { Run({.argv = {"flock", "-n", file_, "true"}}, Exited(0)); }

  const std::string lock = NewLock("promise");

 private:
  const TemporaryDirectory directory_;
  const std::string file_ = directory_.Write("file", "");
};

void MustRunAlone(Child& next) {
  REQUIRE(next.ReadLine() == "alone");
  REQUIRE(next.Wait() == Exited(0));
}

}  // namespace

TEST_CASE("when the lock is deleted, the whole command is terminated first, then zklock ends") {
  const Arena arena;
  Child holder =
      arena.StartStubborn({"exclusive", "--kill-after", "100ms", "--session-timeout", "40s"});
  Tree tree;
  const auto children = tree.Children(arena.lock);
  REQUIRE(children.size() == 1);
  tree.Delete(arena.lock + "/" + children.front());
  CHECK(holder.Wait(20s) == Exited(76));  // at once: the lease would last longer
  arena.MustBeFree();                     // at the moment zklock ends, not some time later
  holder.ReadToEnd();                     // every process with its standard output is gone
  const Words said = Lines(holder.err());
  REQUIRE(said.size() == 1);
  CHECK(said[0] == "zklock: lost " + arena.lock +
                       ": our contender was deleted; flock was killed, since TERM did not end "
                       "it in time");
}

TEST_CASE("a command that handles the stop signal gets time to clean up") {
  const std::string lock = NewLock("grace");
  Child holder =
      Child::Start(Zklock({"exclusive", "--stop-signal", "USR1", lock, "--", "perl", "-e",
                           "$| = 1; $SIG{USR1} = sub { print \"cleaned up\\n\"; exit 3 };"
                           "print \"ready\\n\"; sleep 1000"}));
  REQUIRE(holder.ReadLine() == "ready");
  Tree tree;
  tree.Delete(lock + "/" + tree.Children(lock).front());
  CHECK(holder.ReadLine() == "cleaned up");
  CHECK(holder.Wait() == Exited(76));
}

TEST_CASE("without a server the command is terminated before the servers give the lock away") {
  const Arena arena;
  Proxy proxy(TestServers());
  Child holder =
      arena.StartStubborn({"exclusive", "-z", proxy.address(), "--session-timeout", "4s"});
  // The lease may end before the next contender is queued.
  SECTION("nothing passes in either direction") {
    proxy.Freeze();
    Child next = arena.StartNext();
    MustRunAlone(next);
    CHECK(holder.Wait() == Exited(76));
  }
  SECTION("requests arrive, but no answer returns") {
    proxy.FreezeReplies();
    Child next = arena.StartNext();
    CHECK(holder.Wait() == Exited(76));
    MustRunAlone(next);
  }
  CHECK_THAT(holder.err(),
             Catch::Contains("\nzklock: lost " + arena.lock + ": no server confirmed it for "));
}

TEST_CASE("a server outage shorter than the lease does not affect a run") {
  const std::string lock = NewLock("short");
  Proxy proxy(TestServers());
  Child holder = Child::Start(
      HolderOptions({"exclusive", "-v", "-z", proxy.address(), "--session-timeout", "20s"}, lock));
  REQUIRE(holder.ReadLine() == "held");

  SECTION("the connections break") {
    for (int i = 0; i < 5; ++i) {
      proxy.Cut();
      holder.ReadErrUntil(lock + ": confirmed, still held");
    }
  }
  SECTION("the server hangs") {
    proxy.Freeze();
    holder.ReadErrUntil("the server does not answer");
    proxy.Thaw();
    holder.ReadErrUntil(lock + ": confirmed, still held");
  }
  CHECK(Tree().Children(lock).size() == 1);
  holder.Write("5\n");
  CHECK(holder.Wait() == Exited(5));
}

TEST_CASE("a waiter keeps its place while a server is away") {
  auto [lock, holder] = HoldNewLock("place");
  Proxy proxy(TestServers());
  Child waiter =
      StartWaiter({"exclusive", "-z", proxy.address(), "--session-timeout", "40s"}, lock);
  Tree tree;
  const auto queue = tree.Children(lock);
  const int connections = proxy.connections();

  SECTION("the lock became free before the server returned") {
    proxy.Freeze();
    CHECK(Finish(holder) == Exited(0));
    proxy.Cut();
    proxy.Thaw();
  }
  SECTION("the lock becomes free afterwards") {
    proxy.Cut();
    waiter.ReadErrUntil("waiting for");
    CHECK(proxy.connections() > connections);
    CHECK(tree.Children(lock) == queue);
    holder.CloseInput();
  }
  CHECK(waiter.ReadLine() == "held");
  CHECK(InQueueOrder(queue).back() == tree.Children(lock).front());
}

TEST_CASE("a waiter whose session expired queues again") {
  auto [lock, holder] = HoldNewLock("anew");
  Proxy proxy(TestServers());
  Child waiter = StartWaiter({"exclusive", "-z", proxy.address(), "--session-timeout", "4s"}, lock);
  Tree tree;
  const auto queue = InQueueOrder(tree.Children(lock));
  proxy.Freeze();
  tree.WaitForChildren(lock, 1);
  proxy.Thaw();
  waiter.ReadErrUntil("the session expired while waiting for " + lock +
                      ": queued again, at the tail");
  const auto now = InQueueOrder(tree.WaitForChildren(lock, 2));
  CHECK(now.front() == queue.front());
  CHECK(now.back() != queue.back());
  holder.CloseInput();
  CHECK(waiter.ReadLine() == "held");
}

TEST_CASE("when zklock is killed, its command is killed and the next contender runs at once") {
  const Arena arena;
  // The session would expire only after the timeout of the ReadLine() below.
  Child holder = arena.StartStubborn({"exclusive", "--session-timeout", "40s"});
  Child next = arena.QueueNext();
  holder.Signal(SIGKILL);
  CHECK(next.ReadLine(20s) == "alone");
  CHECK(next.Wait() == Exited(0));
  holder.ReadToEnd();
  CHECK(holder.Wait() == Killed(SIGKILL));
}

TEST_CASE("when zklock's process group is killed, everything the command started is killed too") {
  const Arena arena;
  Child holder = arena.StartStubborn({"exclusive", "--session-timeout", "40s"});
  Child next = arena.QueueNext();
  holder.SignalGroup(SIGKILL);
  CHECK(next.ReadLine(20s) == "alone");
  CHECK(next.Wait() == Exited(0));
  holder.ReadToEnd();
}

TEST_CASE("when zklock is stopped, its command does not outlive the lease") {
  const Arena arena;
  Child holder = arena.StartStubborn({"exclusive", "--session-timeout", "4s"});
  holder.Signal(SIGSTOP);
  holder.WaitUntilStopped();
  Child next = arena.StartNext();
  MustRunAlone(next);
  holder.Signal(SIGCONT);
  CHECK(holder.Wait() == Exited(76));
}

TEST_CASE("a waiter stopped for longer than its session does not start its command by mistake") {
  const Arena arena;
  Child holder = arena.StartStubborn({"exclusive"});
  Child waiter = Child::Start(Zklock(
      {"exclusive", "-v", "--session-timeout", "4s", arena.lock, "--", "sh", "-c", "echo ran"}));
  waiter.ReadErrUntil("waiting for");
  waiter.Signal(SIGSTOP);
  waiter.WaitUntilStopped();
  Tree().WaitForChildren(arena.lock, 1);  // the stopped waiter's session is over
  waiter.Signal(SIGCONT);
  waiter.ReadErrUntil("queued again");
  waiter.ReadErrUntil("waiting for");
  CHECK(waiter.out().empty());
}

TEST_CASE("servers that do not answer do not delay the end of the command") {
  const std::string lock = NewLock("hang");
  Proxy proxy(TestServers());
  Child holder = Child::Start(HolderOptions({"exclusive", "-v", "-z", proxy.address()}, lock));
  REQUIRE(holder.ReadLine() == "held");
  proxy.Freeze();
  holder.Write("9\n");
  CHECK(holder.Wait(20s) == Exited(9));
  CHECK_THAT(holder.err(), Catch::Contains("no server confirmed the release of " + lock));
}

TEST_CASE("processes that outlive a command that ended by itself are left running and reported") {
  const std::string lock = NewLock("left");
  // The child has printed its pid before the command ends.
  Child child =
      Child::Start(Zklock({"exclusive", lock, "--", "perl", "-e",
                           "$| = 1; pipe(my $read, my $write);"
                           "if (!fork) { print \"$$\\n\"; syswrite($write, 'x'); sleep 1000 }"
                           "sysread($read, my $text, 1); exit 4"}));
  const std::string pid = child.ReadLine();
  CHECK(child.Wait() == Exited(4));
  CHECK(child.err() ==
        "zklock: process " + pid +
            " (perl) outlived the command; the lock is released anyway; see --descendants\n");
  CHECK(Tree().Children(lock).empty());
  CHECK(kill(std::stoi(pid), SIGKILL) == 0);
}

TEST_CASE("a contender whose create succeeded but was never answered is not left behind") {
  auto [tree, lock] = MadeLock("ghost");
  Proxy proxy(TestServers());
  const auto is_silent = std::make_shared<std::atomic<bool>>(false);
  proxy.EditReplies([=](const std::string& request, std::string real) {
    if (request.starts_with("create " + lock + "/")) *is_silent = true;
    return *is_silent ? std::nullopt : std::optional(std::move(real));
  });
  // The signal arrives while zklock cannot know that it is in the queue.
  Child child = Child::Start(
      Zklock({"exclusive", "-z", proxy.address(), "--session-timeout", "40s", lock, "--", "true"}));
  tree.WaitForChildren(lock, 1);
  child.Signal(SIGTERM);
  CHECK(child.Wait() == Exited(128 + SIGTERM));
  tree.WaitForChildren(lock, 0, 20s);  // well before the session would expire
}

}  // namespace zklock::test
