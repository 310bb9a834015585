// The record that a release leaves in LOCK's data, and the cost of a hand-over. Both are determined
// from the bytes between zklock and the server.

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "cli/servers/one_connection.h"
#include "cli/zklock.h"
#include "protocol/release_record.h"
#include "support/contender_names.h"
#include "support/frames.h"
#include "support/peer.h"
#include "support/wait.h"

namespace zklock::test {
namespace {

using protocol::ReleaseRecord;

ChildOptions Through(const Proxy& proxy, ChildOptions options) {
  options.also_environment.push_back("ZKLOCK_SERVERS=" + proxy.address());
  return options;
}

std::optional<ReleaseRecord> RecordIn(Tree& tree, const std::string& lock) {
  const auto znode = tree.Get(lock);
  REQUIRE(znode);
  const auto data = protocol::ParseLockData(znode->data);
  REQUIRE(data);
  return data->last_release;
}

/// Returns the total size of the replies to these requests and of all events.
std::size_t AnsweredBytes(const Proxy& proxy, const std::vector<Frame>& requests) {
  std::size_t bytes = 0;
  for (const Frame& reply : FramesOf(proxy.Replies(), false)) {
    const bool answers = std::any_of(requests.begin(), requests.end(), [&](const Frame& request) {
      return request.xid == reply.xid;
    });
    if (answers || reply.xid == -1) bytes += reply.size;
  }
  return bytes;
}

std::ptrdiff_t CountRequests(const Proxy& proxy, const std::string& what) {
  const Words all = WordsOf(RequestsOf(proxy));
  return std::count(all.begin(), all.end(), what);
}

/// Returns how many heartbeats have been sent through `proxy`.
std::ptrdiff_t CountHeartbeats(const Proxy& proxy) {
  const Words all = WordsOf(RequestsOf(proxy));
  return std::count_if(all.begin(), all.end(),
                       [](const std::string& what) { return what.starts_with("check "); });
}

void AwaitRequests(const Proxy& proxy, const std::string& what, std::ptrdiff_t count) {
  WaitUntil([&] { return CountRequests(proxy, what) >= count; });
}

void AwaitHeartbeats(const Proxy& proxy, std::ptrdiff_t count) {
  WaitUntil([&] { return CountHeartbeats(proxy) >= count; });
}

}  // namespace

TEST_CASE("a release records contender, mode, duration, result and host") {
  Tree tree;
  const std::string lock = NewPersistentLock("record");
  std::int64_t token = 0;
  for (const std::string mode : {"exclusive", "write", "read"}) {
    CAPTURE(mode);
    const Finished run =
        RunZklock({mode, lock, "--", "sh", "-c", "echo $ZKLOCK_NODE $ZKLOCK_TOKEN; exit 3"});
    REQUIRE(run.exit == Exited(3));
    const auto record = RecordIn(tree, lock);
    REQUIRE(record);
    CHECK(run.out == lock + "/" + record->contender + " " + std::to_string(record->token) + "\n");
    CHECK(protocol::ModeName(record->mode) == mode);
    CHECK(record->status == 3);
    CHECK(record->token > token);
    token = record->token;
    std::string host(256, '\0');
    gethostname(host.data(), host.size());
    CHECK(record->host == host.c_str());
    CHECK(tree.Get(lock.substr(0, lock.rfind('/')))->data.empty());
  }
  RunZklock({"exclusive", lock, "--", "sh", "-c", "kill -KILL $$"}, Exited(128 + SIGKILL));
  CHECK(RecordIn(tree, lock)->status == 128 + SIGKILL);
}

TEST_CASE("the record states how long the command ran") {
  auto [lock, holder] = HoldNewLock("seconds");
  const auto began = std::chrono::steady_clock::now();
  Child waiter = StartWaiter(lock);  // this takes a moment
  const auto at_least = std::chrono::steady_clock::now() - began;
  REQUIRE(Finish(holder) == Exited(0));
  REQUIRE(waiter.ReadLine() == "held");
  Tree tree;
  const auto record = RecordIn(tree, lock);
  REQUIRE(record);
  CHECK(record->duration >= std::chrono::floor<std::chrono::milliseconds>(at_least));
  CHECK(record->duration < kPatience);
}

TEST_CASE("a LOCK below a chroot has its record there") {
  const std::string chroot = NewLock("chroot");
  const Words words = {"exclusive", "-z", TestServers() + chroot};
  Child holder = StartHolder(words, "/jobs/a");
  Child next = StartWaiter(words, "/jobs/a");
  holder.CloseInput();
  REQUIRE(next.ReadLine() == "held");
  Tree tree;
  CHECK(RecordIn(tree, chroot + "/jobs/a"));
}

TEST_CASE("record and delete are one transaction, sent in one piece with the close") {
  Tree tree;
  const std::string lock = NewPersistentLock("piece");
  Proxy proxy(TestServers());
  KeepToOneConnection(proxy);
  const Finished run = Run(Through(proxy, Zklock({"exclusive", lock, "--", "true"})));
  REQUIRE(run.exit == Exited(0));

  const auto znode = tree.Get(lock);
  REQUIRE(znode);
  CHECK(protocol::ParseLockData(znode->data)->last_release);
  CHECK(znode->data_zxid == znode->children_zxid);

  // Excludes heartbeats and reads, whose times vary.
  const auto writes_in = [](Words words) {
    std::erase_if(words, [](const std::string& what) {
      return what == "ping" || what.starts_with("check ") || what.starts_with("get ");
    });
    return words;
  };
  const Words writes = writes_in(WordsOf(RequestsOf(proxy)));
  REQUIRE(writes.size() == 4);
  CHECK(writes[0].starts_with("create " + lock + "/"));
  CHECK(writes[1] == "list " + lock);
  CHECK(writes[2] == "multi " + lock);
  CHECK(writes[3] == "close");

  // The prefix stands for the start of a connection, so that the piece parses as frames.
  const auto pieces = proxy.Requests();
  const Words last = writes_in(WordsOf(FramesOf(std::string(4, '\0') + pieces.back(), true)));
  CHECK(last == Words{"multi " + lock, "close"});
}

TEST_CASE("a hand-over costs the next holder the same, however long the queue is") {
  const int length = GENERATE(10, 1000);
  CAPTURE(length);
  auto [lock, holder] = HoldNewLock("long");
  Proxy proxy(TestServers());
  KeepToOneConnection(proxy);
  Child next = Child::Start(
      Through(proxy, HolderOptions({"exclusive", "--verbose", "--progress", "none"}, lock)));
  next.ReadErrUntil("waiting for " + lock);
  Tree driver;
  for (int i = 2; i < length; ++i) {
    driver.Create(lock + "/" + kZklockLock, ZnodeKind::kEphemeralSequential);
  }
  REQUIRE(driver.Children(lock).size() == static_cast<std::size_t>(length));

  // The next heartbeat is due a quarter of the session timeout later, long after the hand-over.
  AwaitHeartbeats(proxy, CountHeartbeats(proxy) + 1);
  const auto while_waiting = static_cast<std::ptrdiff_t>(RequestsOf(proxy).size());
  REQUIRE(Finish(holder) == Exited(0));
  REQUIRE(next.ReadLine() == "held");
  const std::string own = lock + "/" + InQueueOrder(driver.Children(lock)).front();
  // zklock sets its watch while the command is running.
  CHECK(Finish(next) == Exited(0));

  const auto requests = RequestsOf(proxy);
  const Words all = WordsOf(requests);
  // zklock listed the queue once, when it joined. From that list it also knows which contenders to
  // ask whether they hold for its shell.
  CHECK(std::count(all.begin(), all.end(), "list " + lock) == 1);
  CHECK(proxy.connections() == 1);
  // Its lease is already proven, so zklock sends these reads only when the command is running.
  const Words reads{"get " + own, "get " + lock};
  const auto holding = std::find_end(all.begin(), all.end(), reads.begin(), reads.end());
  REQUIRE(holding != all.end());
  CHECK(std::find(all.begin() + while_waiting, holding, "check " + own) == holding);
  const auto first = holding - all.begin();
  CHECK(AnsweredBytes(proxy, {requests.begin() + first, requests.begin() + first + 2}) <= 1024);
}

TEST_CASE("a waiter that has waited for longer than T gets the lock without a commit", "[slow]") {
  const std::string lock = NewLock("old");
  // A progress line would cause requests too.
  const Words words = {"exclusive", "--verbose", "--progress", "none", "--session-timeout", "8s"};
  Child holder = StartHolder(lock);
  Proxy proxy(TestServers());
  KeepToOneConnection(proxy);
  Child next = Child::Start(Through(proxy, HolderOptions(words, lock)));
  next.ReadErrUntil("waiting for " + lock);
  // Only the next in line sends heartbeats. Waiters after it read LOCK.
  const Proxy other_proxy(TestServers());
  Child behind = Child::Start(Through(other_proxy, HolderOptions(words, lock)));
  behind.ReadErrUntil("waiting for " + lock);
  AwaitHeartbeats(proxy, 5);
  CHECK(CountHeartbeats(other_proxy) == 0);
  Tree tree;
  const std::string own = lock + "/" + InQueueOrder(tree.Children(lock)).at(1);

  SECTION("when the holder releases it") {
    REQUIRE(Finish(holder) == Exited(0));
    REQUIRE(next.ReadLine() == "held");
  }
  SECTION("but not when the holder is only asked to release it") {
    const std::string first = lock + "/" + InQueueOrder(tree.Children(lock)).front();
    const auto data = tree.Get(first);
    REQUIRE(data);
    tree.SetData(first, data->data);
    AwaitRequests(proxy, "get " + first, 2);
    CHECK(next.out().empty());
    holder.CloseInput();
    REQUIRE(next.ReadLine() == "held");
  }
  SECTION("but not when its own contender is deleted just before") {
    const std::string first = lock + "/" + InQueueOrder(tree.Children(lock)).front();
    tree.Delete(own);
    tree.Delete(first);
    CHECK(next.Wait() == Exited(75));
    CHECK(next.out().empty());
    CHECK(behind.ReadLine() == "held");
    return;
  }
  REQUIRE(Finish(next) == Exited(0));
  // The waiter read nothing when its turn came. Only the holder reads the version of LOCK's data.
  const Words all = WordsOf(RequestsOf(proxy));
  const Words reads{"get " + own, "get " + lock};
  const auto holding = std::find_end(all.begin(), all.end(), reads.begin(), reads.end());
  REQUIRE(holding != all.end());
  CHECK(std::count(all.begin(), all.end(), "list " + lock) == 1);
}

TEST_CASE("a record from an earlier life of LOCK lets nobody pass the holder") {
  // As if LOCK had been deleted and created again with its old data.
  const std::string number = GENERATE("0000005000", "0000000001");
  Tree tree;
  const std::string lock =
      tree.Create(NewLock("life"), ZnodeKind::kPersistent,
                  "zklock/1 " + kZklockLock + number + " exclusive 7 1.000 0 host");
  REQUIRE(RecordIn(tree, lock));
  Child holder = StartHolder(lock);
  Child waiter = StartWaiter(lock);
  const Proxy proxy(TestServers());
  const Words words = {"exclusive", "--verbose", "--progress", "none", "--session-timeout", "4s"};
  Child behind = Child::Start(Through(proxy, HolderOptions(words, lock)));
  behind.ReadErrUntil("waiting for " + lock);
  // The second read is sent after the answer to the first.
  AwaitRequests(proxy, "get " + lock, CountRequests(proxy, "get " + lock) + 2);
  const std::string first = lock + "/" + InQueueOrder(tree.Children(lock)).front();
  const auto reads = CountRequests(proxy, "get " + first);
  waiter.Signal(SIGTERM);
  REQUIRE(waiter.Wait() == Exited(128 + SIGTERM));
  // The last contender now waits for the holder.
  AwaitRequests(proxy, "get " + first, reads + 1);
  CHECK(behind.out().empty());
  REQUIRE(Finish(holder) == Exited(0));
  CHECK(behind.ReadLine() == "held");
}

TEST_CASE("a LOCK whose data cannot be written is still released") {
  const std::string lock = NewLock("refused");
  Tree tree;
  tree.Create(lock, ZnodeKind::kPersistent, "zklock/1");
  tree.SetAcl(lock, kRead | kCreate | kDelete);
  Child holder = StartHolder(lock);
  Child next = StartWaiter(lock);
  holder.Write("5\n");
  REQUIRE(holder.Wait() == Exited(5));
  REQUIRE(next.ReadLine() == "held");
  REQUIRE(Finish(next) == Exited(0));
  CHECK_FALSE(RecordIn(tree, lock));
  CHECK(tree.Children(lock).empty());
}

}  // namespace zklock::test
