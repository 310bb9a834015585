// One LOCK shared with real programs that use other libraries (tests/peers): both sides hand it
// over, contend for it and queue together. zklock refuses if they would not see its contenders.

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "cli/queue/lock_peer.h"
#include "cli/queue/sharing.h"
#include "cli/zklock.h"

namespace zklock::test {
namespace {

constexpr const char* kUseExclusive = "use `zklock exclusive`";
constexpr const char* kUseReadOrWrite = "use `zklock read` or `zklock write`";
constexpr const char* kUsePermits = "use --permits";
constexpr const char* kNoPermits = "omit --permits";
constexpr const char* kUseKazoo = "use --dialect kazoo";
constexpr const char* kNoKazoo = "omit --dialect kazoo";
constexpr const char* kUseSimple = "use --dialect simple";
constexpr const char* kNoSimple = "omit --dialect simple";
constexpr const char* kUseAnother = "use another LOCK";

const Words kKazooDialect = {"exclusive", "--dialect", "kazoo"};
const Words kSimpleDialect = {"exclusive", "--dialect", "simple"};
const Words kTwoPermits = {"exclusive", "--permits", "2"};

}  // namespace

// ---- Curator, and ZooKeeper's own recipe -----------------------------------------------------

TEST_CASE("locks can be shared with Curator's recipes and ZooKeeper's own") {
  LockPeer peer = LockPeer::Curator();
  CheckPairings(
      peer, {{.recipe = "mutex", .zklock = {"exclusive"}},
             {.recipe = "multi", .zklock = {"exclusive"}, .is_set = true},
             {.recipe = "write", .zklock = {"write"}},
             {.recipe = "semaphore-mutex", .zklock = {"exclusive", "--permits", "1"}, .permits = 1},
             {.recipe = "semaphore:2", .zklock = kTwoPermits, .permits = 2},
             // WriteLock waits forever if its predecessor is deleted after WriteLock has listed the
             // queue but before it has set its watch.
             {.recipe = "recipes", .zklock = {"exclusive"}, .contends = false}});
}

TEST_CASE("permits taken several at a time are shared with Curator's acquire(3)") {
  LockPeer peer = LockPeer::Curator();
  const std::string lock = NewLock("weights");
  const auto run = [&](const std::string& word, const std::string& take) {
    return Words{word, "--permits", "4", "--take", take, lock};
  };
  // Each program sees the other's permits.
  REQUIRE(peer.Ask("three", "make semaphore:4:3 " + lock) == "made");
  CHECK(peer.Ask("three", "acquire") == "acquired");
  RunZklock(run("try", "2") + Words{"--", "true"}, Exited(75));
  RunZklock(run("try", "1") + Words{"--", "true"}, Exited(0));
  CHECK(peer.Ask("three", "release") == "released");
  Child holder = StartHolder({"exclusive", "--permits", "4", "--take", "2"}, lock);
  CHECK(peer.Ask("three", "acquire 300") == "busy");
  CHECK(Finish(holder) == Exited(0));
  CHECK(peer.Ask("three", "acquire") == "acquired");
  CHECK(peer.Ask("three", "release") == "released");
  // Curator's semaphore acquires its permits one by one, so two contenders can each hold some and
  // wait for the other's: only the time limit ends that.
  const Meeting meeting;
  const std::string rounds = "rounds 12 " + meeting.path() + " 4 ";
  REQUIRE(peer.Ask("one", "make semaphore:4 " + lock) == "made");
  REQUIRE(peer.Ask("two", "make semaphore:4:2 " + lock) == "made");
  peer.Tell("one", rounds + "1 -1");
  peer.Tell("three", rounds + "3 300");
  peer.Tell("two", rounds + "2 300");
  std::vector<Child> ours;
  for (const char* take : {"1", "2", "3"}) {
    Words command = meeting.Visit(std::string("ours-") + take, "4");
    command.emplace_back(take);
    ours.push_back(StartRounds(12, run("exclusive", take), command));
  }
  for (Child& child : ours) CHECK(child.Wait(kPeerPatience) == Exited(0));
  for (const char* theirs : {"one", "two", "three"}) CHECK(peer.Answer(theirs) == "done");
  meeting.CheckApart(0);
  CHECK(meeting.Order().size() >= 48);  // all but the attempts of "two" and "three" that gave up
  CHECK(Tree().Children(lock + "/leases").empty());
}

TEST_CASE("readers and writers take turns with Curator's") {
  LockPeer peer = LockPeer::Curator();
  CheckHandOver(peer, "a", {.recipe = "read", .zklock = {"write"}});
  CheckHandOver(peer, "b", {.recipe = "write", .zklock = {"read"}});
  const SharedLocks shared({});
  CheckContention(peer, "c",
                  {{"read", {}, "readers"},
                   {"write", {}, "1"},
                   {"", {"read"}, "readers"},
                   {"", {"write"}, "1"}},
                  shared);
  // Two readers hold the lock at the same time.
  const std::string& lock = shared.locks.front();
  REQUIRE(peer.Ask("d", "make read " + lock) == "made");
  Child ours = StartHolder({"read"}, lock);
  CHECK(peer.Ask("d", "acquire") == "acquired");
  RunZklock({"try", "--read", lock, "--", "true"}, Exited(0));
}

TEST_CASE("modes and dialects that Curator's and ZooKeeper's recipes would not see are refused") {
  LockPeer peer = LockPeer::Curator();
  std::vector<Refusal> refusals;
  for (const char* recipe : {"mutex", "recipes"}) {
    refusals.insert(refusals.end(), {{recipe, {"read"}, kUseExclusive},
                                     {recipe, {"write"}, kUseExclusive},
                                     {recipe, kKazooDialect, kNoKazoo},
                                     {recipe, kSimpleDialect, kNoSimple},
                                     {recipe, kTwoPermits, kNoPermits}});
  }
  for (const char* recipe : {"read", "write"}) {
    refusals.insert(refusals.end(), {{recipe, {"exclusive"}, kUseReadOrWrite},
                                     {recipe, {"read", "--dialect", "kazoo"}, kNoKazoo},
                                     {recipe, kSimpleDialect, kNoSimple},
                                     {recipe, kTwoPermits, kNoPermits}});
  }
  for (const char* recipe : {"semaphore-mutex", "semaphore:2"}) {
    refusals.insert(refusals.end(), {{recipe, {"exclusive"}, kUsePermits},
                                     {recipe, {"read"}, kUsePermits},
                                     {recipe, {"write"}, kUsePermits},
                                     {recipe, kKazooDialect, kUsePermits},
                                     {recipe, kSimpleDialect, kUsePermits}});
  }
  CheckRefusals(peer, refusals);
}

TEST_CASE("ten contenders of zklock and two libraries get one lock in queue order") {
  LockPeer curator = LockPeer::Curator();
  LockPeer go = LockPeer::Go();
  const std::map<std::string, Recipe> recipes = {
      {"curator", {&curator, "mutex"}}, {"recipes", {&curator, "recipes"}}, {"go", {&go, "lock"}}};
  // Curator's mutex does not see the other recipe's contenders, with or without zklock.
  CheckQueue({"exclusive"}, recipes,
             {"curator-1", "go-1", "zklock-1", "curator-2", "zklock-2", "zklock-3", "go-2", "go-3",
              "zklock-4", "curator-3"});
  CheckQueue({"exclusive"}, recipes,
             {"recipes-4", "zklock-5", "go-4", "recipes-5", "go-5", "zklock-6", "zklock-7",
              "recipes-6", "zklock-8", "go-6"});
}

TEST_CASE("the C recipe's contenders and zklock's wait for each other in one order") {
  // The names are those of the recipe's library. The holder is the contender whose suffix after the
  // last dash sorts first.
  Tree tree;
  const std::string lock = NewLock("recipe");
  const std::string theirs =
      tree.Create(lock + "/x-0100000000abcdef-", ZnodeKind::kEphemeralSequential);
  RunZklock({"try", lock, "--", "true"}, Exited(75));
  Child ours = StartWaiter(lock);
  CHECK(ours.out().empty());
  tree.Delete(theirs);
  CHECK(ours.ReadLine() == "held");
  const std::string next =
      BaseName(tree.Create(lock + "/x-0100000000abcdef-", ZnodeKind::kEphemeralSequential));
  Words children = tree.Children(lock);
  std::sort(children.begin(), children.end(), [](const std::string& a, const std::string& b) {
    return a.substr(a.rfind('-')) < b.substr(b.rfind('-'));
  });
  REQUIRE(children.size() == 2);
  CHECK(children.back() == next);
  CHECK(Finish(ours) == Exited(0));
  CHECK(tree.Children(lock) == Words{next});
}

// ---- go-zookeeper -------------------------------------------------------------------------------

TEST_CASE("locks can be shared with go-zookeeper") {
  LockPeer peer = LockPeer::Go();
  CheckPairings(peer, {{.recipe = "lock", .zklock = {"exclusive"}, .has_limit = false}});
}

TEST_CASE("modes and dialects that go-zookeeper would not see are refused") {
  LockPeer peer = LockPeer::Go();
  CheckRefusals(peer, {{"lock", {"read"}, kUseExclusive},
                       {"lock", {"write"}, kUseExclusive},
                       {"lock", kKazooDialect, kNoKazoo},
                       {"lock", kSimpleDialect, kNoSimple},
                       {"lock", kTwoPermits, kNoPermits}});
}

// ---- kazoo --------------------------------------------------------------------------------------

TEST_CASE("locks can be shared with kazoo in its dialect") {
  LockPeer peer = LockPeer::Kazoo();
  CheckPairings(peer, {{.recipe = "lock", .zklock = kKazooDialect},
                       {.recipe = "write", .zklock = kKazooDialect},
                       {.recipe = "write", .zklock = {"write", "--dialect", "kazoo"}}});
}

TEST_CASE("readers and writers take turns with kazoo's") {
  LockPeer peer = LockPeer::Kazoo();
  const Words read = {"read", "--dialect", "kazoo"};
  const Words write = {"write", "--dialect", "kazoo"};
  CheckHandOver(peer, "a", {.recipe = "read", .zklock = write});
  CheckHandOver(peer, "b", {.recipe = "write", .zklock = read});
  const SharedLocks shared({});
  // Without kazoo's readers: in kazoo 2.8, a reader also waits for writers after it, and so may
  // wait forever.
  CheckContention(peer, "c", {{"write", {}, "1"}, {"", read, "readers"}, {"", write, "1"}}, shared);
  const std::string& lock = shared.locks.front();
  REQUIRE(peer.Ask("d", "make read " + lock) == "made");
  Child ours = StartHolder(read, lock);
  CHECK(peer.Ask("d", "acquire") == "acquired");
  RunZklock(read + Words{"--nonblock", lock, "--", "true"}, Exited(0));
}

TEST_CASE("modes and dialects that kazoo would not see are refused, and its Semaphore always") {
  LockPeer peer = LockPeer::Kazoo();
  std::vector<Refusal> refusals;
  for (const char* recipe : {"lock", "read", "write"}) {
    refusals.insert(refusals.end(), {{recipe, {"exclusive"}, kUseKazoo},
                                     {recipe, {"read"}, kUseKazoo},
                                     {recipe, {"write"}, kUseKazoo},
                                     {recipe, kSimpleDialect, kNoSimple},
                                     {recipe, kTwoPermits, kNoPermits}});
  }
  for (const char* recipe : {"semaphore:1", "semaphore:2"}) {
    for (const Words& words : {Words{"exclusive"}, Words{"read"}, Words{"write"}, kKazooDialect,
                               kSimpleDialect, kTwoPermits}) {
      refusals.push_back({recipe, words, kUseAnother});
    }
  }
  CheckRefusals(peer, refusals);
}

TEST_CASE("ten contenders of zklock and kazoo get one lock in queue order") {
  LockPeer peer = LockPeer::Kazoo();
  CheckQueue(kKazooDialect, {{"lock", {&peer, "lock"}}, {"write", {&peer, "write"}}},
             {"lock-1", "zklock-1", "write-1", "lock-2", "zklock-2", "zklock-3", "write-2",
              "lock-3", "zklock-4", "write-3"});
}

// ---- the lock of one znode ----------------------------------------------------------------------

TEST_CASE("a one-znode lock can be shared in the simple dialect") {
  LockPeer peer = LockPeer::Kazoo();
  CheckPairings(peer, {{.recipe = "znode", .zklock = kSimpleDialect, .has_queue = false}});
}

TEST_CASE("modes and dialects that a one-znode lock would not see are refused") {
  LockPeer peer = LockPeer::Kazoo();
  CheckRefusals(peer, {{"znode", {"exclusive"}, kUseSimple},
                       {"znode", {"read"}, kUseSimple},
                       {"znode", {"write"}, kUseSimple},
                       {"znode", kKazooDialect, kUseSimple},
                       {"znode", kTwoPermits, kUseSimple}});
}

}  // namespace zklock::test
