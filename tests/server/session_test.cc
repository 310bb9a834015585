#include "zookeeper/session.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/unique_fd.h"
#include "commands/session/session_driver.h"
#include "process/transport/transport_helper.h"
#include "server/client.h"
#include "support/frames.h"
#include "support/hostile_server.h"
#include "support/peer.h"
#include "support/server.h"
#include "support/wait.h"
#include "zookeeper/orphaned_session.h"
#include "zookeeper/transport.h"

namespace zklock::test {
namespace {

using namespace std::chrono_literals;
using zookeeper::AttemptEnd;
using zookeeper::CreateReply;
using zookeeper::Error;
using zookeeper::GetReply;
using zookeeper::ListReply;
using zookeeper::NodeKind;
using zookeeper::Reply;
using zookeeper::Watch;
using How = AttemptEnd::How;
using Strings = std::vector<std::string>;

/// Sends one request through a real session, and returns the answer.
template <typename R, typename Ask>
R Answer(Client& client, Ask ask) {
  std::optional<R> answer;
  ask([&](const R& reply) { answer = reply; });
  client.RunUntil([&] { return answer.has_value(); });
  return *answer;
}

CreateReply Create(Client& client, const std::string& path, NodeKind kind = NodeKind::kEphemeral,
                   const std::string& data = "") {
  return Answer<CreateReply>(client,
                             [&](auto done) { client.session().Create(path, data, kind, done); });
}
GetReply Get(Client& client, const std::string& path, Watch watch = Watch::kNo) {
  return Answer<GetReply>(client, [&](auto done) { client.session().Get(path, watch, done); });
}
ListReply List(Client& client, const std::string& path, Watch watch = Watch::kNo) {
  return Answer<ListReply>(client, [&](auto done) { client.session().List(path, watch, done); });
}
Reply Delete(Client& client, const std::string& path) {
  return Answer<Reply>(
      client, [&](auto done) { client.session().Delete(path, zookeeper::kAnyVersion, done); });
}
Reply Set(Client& client, const std::string& path, const std::string& data, int version) {
  return Answer<Reply>(client, [&](auto done) { client.session().Set(path, data, version, done); });
}
Reply MakePersistent(Client& client, const std::vector<zookeeper::Conversion>& conversions,
                     const std::vector<std::string>& checked = {},
                     const std::vector<std::string>& deleted = {}) {
  return Answer<Reply>(client, [&](auto done) {
    client.session().MakePersistent(conversions, checked, deleted, done);
  });
}
Reply Sync(Client& client, const std::string& path) {
  return Answer<Reply>(client, [&](auto done) { client.session().Sync(path, done); });
}
Reply Check(Client& client, const std::vector<std::string>& paths) {
  return Answer<Reply>(client, [&](auto done) { client.session().Check(paths, done); });
}

/// Returns the xid of the first request that a client has sent since its connect request.
std::optional<std::int32_t> XidOfNextRequest(int socket) {
  std::array<char, 8> head{};
  if (recv(socket, head.data(), head.size(), MSG_WAITALL) != static_cast<ssize_t>(head.size())) {
    return std::nullopt;
  }
  return frames::Number({head.data(), head.size()}, 4);
}

/// Returns how the first attempt at `server` ends. The session gives up on a silent server after a
/// third of `timeout`, or 2 s.
AttemptEnd EndOf(const std::string& server, Duration timeout) {
  Client client({server}, timeout);
  client.RunUntil([&] { return client.session().failed_rounds() > 0; });
  const auto failures = client.session().Failures();
  REQUIRE(failures.size() == 1);
  CHECK(failures.front().server == server);
  return failures.front().end;
}

}  // namespace

TEST_CASE("a session begins, with the timeout that was granted") {
  Client client({TestServers()}, 10s);
  CHECK_FALSE(client.session().IsConnected());
  CHECK(client.session().session_id() == 0);
  client.Connect();
  CHECK(client.events == Strings{"connected, fresh"});
  CHECK(client.session().session_id() != 0);
  CHECK(client.session().connected_server() == TestServers());
  CHECK(client.session().lease().timeout() == 10s);

  ConnectedClient greedy({TestServers()}, 10h);
  CHECK(greedy.session().lease().timeout() == 40s);  // the server's maxSessionTimeout
}

TEST_CASE("a shorter timeout counts even if the server closes the connection at once") {
  const HostileServer server([](int socket, int number) {
    if (!HostileServer::Receive(socket)) return;
    HostileServer::Send(socket, HostileServer::Grant(number == 0 ? 30'000 : 4'000));
  });
  Client client({server.address()}, 30s);
  zookeeper::Session& session = client.session();
  const TimePoint deadline = BootClock::now() + 10s;
  while (session.session_id() == 0 || session.lease().timeout() == 30s) {
    REQUIRE(BootClock::now() < deadline);
    const EventSource::Interest interest = session.GetInterest();
    pollfd polled{interest.fd, interest.events, 0};
    poll(&polled, 1, 10);
    // Both the answer and the end of the connection have arrived before the session looks.
    pollfd ended{interest.fd, POLLRDHUP, 0};
    if ((polled.revents & POLLIN) != 0) REQUIRE(poll(&ended, 1, 10'000) == 1);
    session.OnReady(polled.revents);
  }
  CHECK(session.lease().timeout() == 4s);
}

TEST_CASE("a created znode exists, with the requested properties") {
  auto [tree, lock] = MadeLock("create");
  ConnectedClient client({TestServers()}, 10s);

  const TimePoint before = BootClock::now();
  const CreateReply made =
      Create(client, lock + "/x-lock-", NodeKind::kEphemeralSequential, std::string("a\0b", 3));
  REQUIRE(made.error == Error::kNone);
  CHECK(made.path == lock + "/x-lock-0000000000");
  CHECK(made.stat.ephemeral_owner == client.session().session_id());
  CHECK(made.sent >= before);
  const auto seen = tree.Get(made.path);
  REQUIRE(seen);
  CHECK(seen->data == std::string("a\0b", 3));
  CHECK(seen->created_zxid == made.stat.created_zxid);
  CHECK(seen->ephemeral_owner == client.session().session_id());

  CHECK(Create(client, lock, NodeKind::kContainer).error == Error::kNodeExists);
  CHECK(Create(client, lock + "/no/child").error == Error::kNoNode);
  CHECK(Create(client, made.path + "/child").error == Error::kNoChildrenForEphemerals);
}

TEST_CASE("a read returns the znode's data and children") {
  auto [tree, lock] = MadeLock("read");
  tree.Create(lock + "/b", ZnodeKind::kEphemeral, "of b");
  tree.Create(lock + "/a", ZnodeKind::kPersistent);
  ConnectedClient client({TestServers()}, 10s);

  const GetReply got = Get(client, lock + "/b");
  CHECK(got.error == Error::kNone);
  CHECK(got.data == "of b");
  CHECK(got.stat.ephemeral_owner == tree.session());
  CHECK(Get(client, lock + "/a").stat.ephemeral_owner == 0);
  CHECK(Get(client, lock + "/c").error == Error::kNoNode);

  const ListReply list = List(client, lock);
  std::vector<std::string> names(list.children.begin(), list.children.end());
  std::sort(names.begin(), names.end());
  CHECK(list.error == Error::kNone);
  CHECK(names == Strings{"a", "b"});
  CHECK(List(client, lock + "/a").children.empty());
  CHECK(List(client, lock + "/c").error == Error::kNoNode);
  CHECK(Sync(client, lock).error == Error::kNone);
}

TEST_CASE("a deleted znode is gone") {
  auto [tree, lock] = MadeLock("delete");
  tree.Create(lock + "/x");
  ConnectedClient client({TestServers()}, 10s);
  CHECK(Delete(client, lock).error == Error::kNotEmpty);
  CHECK(Delete(client, lock + "/x").error == Error::kNone);
  CHECK_FALSE(tree.Exists(lock + "/x"));
  CHECK(Delete(client, lock + "/x").error == Error::kNoNode);
}

TEST_CASE("data is only written over the version that was read") {
  auto [tree, node] = MadeLock("set");
  ConnectedClient client({TestServers()}, 10s);
  const GetReply read = Get(client, node);
  CHECK(Set(client, node, "first", read.stat.version).error == Error::kNone);
  CHECK(Set(client, node, "second", read.stat.version).error == Error::kBadVersion);
  CHECK(Get(client, node).data == "first");
  CHECK(Get(client, node).stat.version == read.stat.version + 1);
  tree.Delete(node);
  CHECK(Set(client, node, "third", 0).error == Error::kNoNode);
}

TEST_CASE("the answer to a write contains the time that the servers gave it") {
  auto [tree, node] = MadeLock("set");
  ConnectedClient client({TestServers()}, 10s);
  const auto set = Answer<zookeeper::SetReply>(
      client, [&](auto done) { client.session().Set(node, "", zookeeper::kAnyVersion, done); });
  CHECK(set.stat.modified_ms > 0);
  CHECK(set.stat.modified_ms == Get(client, node).stat.modified_ms);
}

TEST_CASE("znodes become persistent all together or not at all, and outlive the session") {
  auto [tree, lock] = MadeLock("convert");
  const std::string x = lock + "/x";
  const std::string y = lock + "/y";
  ConnectedClient client({TestServers()}, 10s);
  const auto created = Create(client, x, NodeKind::kEphemeral, "before").stat.created_zxid;
  Create(client, y);
  SECTION("all of them") {
    CHECK(MakePersistent(client, {{x, 0, "after"}, {y, 0, ""}}, {lock}).error == Error::kNone);
    client.Close();
    CHECK(tree.Children(lock).size() == 2);
    ConnectedClient other({TestServers()}, 10s);
    const GetReply read = Get(other, x);
    CHECK(read.data == "after");
    CHECK(read.stat.ephemeral_owner == 0);
    CHECK(read.stat.created_zxid > created);
    // A write or delete with a version of the old znode does not affect the new one.
    CHECK(read.stat.version == 1);
  }
  SECTION("with a version above all of the old znode's") {
    CHECK(Set(client, x, "once", 0).error == Error::kNone);
    CHECK(Set(client, x, "twice", 1).error == Error::kNone);
    CHECK(MakePersistent(client, {{x, 2, "after"}}).error == Error::kNone);
    const GetReply read = Get(client, x);
    CHECK(read.data == "after");
    CHECK(read.stat.version == 3);
  }
  SECTION("although the old znode was written to many times") {
    for (int version = 0; version < 600; ++version) {
      REQUIRE(Set(client, x, "again", version).error == Error::kNone);
    }
    CHECK(MakePersistent(client, {{x, 600, "after"}}).error == Error::kNone);
    CHECK(Get(client, x).data == "after");
    CHECK(Get(client, x).stat.version == 501);
  }
  SECTION("one of them, while another znode is deleted") {
    CHECK(MakePersistent(client, {{x, 0, "after"}}, {lock}, {y}).error == Error::kNone);
    CHECK(tree.Children(lock) == std::vector<std::string>{"x"});
  }
  SECTION("none of them") {
    CHECK(MakePersistent(client, {{x, 0, ""}}, {}, {lock + "/z"}).error == Error::kNoNode);
    CHECK(MakePersistent(client, {{x, 0, ""}, {y, 7, ""}}).error == Error::kBadVersion);
    CHECK(MakePersistent(client, {{x, 0, ""}, {lock + "/z", 0, ""}}).error == Error::kNoNode);
    CHECK(MakePersistent(client, {{x, 0, ""}}, {lock + "/z"}).error == Error::kNoNode);
    CHECK(Get(client, x).stat.created_zxid == created);
    client.Close();
    CHECK(tree.Children(lock).empty());
  }
}

TEST_CASE("an ACL is read, and CheckCreate tests what it allows without creating a znode") {
  ConnectedClient client({TestServers()}, 10s);
  auto [tree, lock] = MadeLock("check-create");
  const auto before = tree.Get(lock);
  const auto check = [&](const std::string& path, bool and_delete = false) {
    return Answer<Reply>(
               client,
               [&](auto done) { client.session().CheckCreate(path, "data", and_delete, done); })
        .error;
  };
  CHECK(check(lock + "/x") == Error::kNodeExists);
  CHECK(check(lock + "/x") == Error::kNodeExists);
  CHECK(check(lock + "/x", true) == Error::kNodeExists);
  CHECK(check(lock + "/missing/x") == Error::kNoNode);
  CHECK(check(lock + "/missing/x", true) == Error::kNoNode);
  tree.SetAcl(lock, {{"", kRead | kCreate | kAdmin}});
  CHECK(check(lock + "/x") == Error::kNodeExists);
  CHECK(check(lock + "/x", true) == Error::kNoAuth);
  tree.SetAcl(lock, {{"alice:tulip", kWrite | kCreate}, {"", kRead | kAdmin}});
  CHECK(check(lock + "/x") == Error::kNoAuth);
  CHECK(tree.Get(lock)->children_zxid == before->children_zxid);
  const auto acl =
      Answer<zookeeper::AclReply>(client, [&](auto done) { client.session().GetAcl(lock, done); });
  REQUIRE(acl.entries.size() == 2);
  CHECK(acl.entries[0].scheme == "digest");
  CHECK_THAT(acl.entries[0].id, Catch::StartsWith("alice:"));
  CHECK(acl.entries[0].rights == (zookeeper::kMayWrite | zookeeper::kMayCreate));
  CHECK(acl.entries[1].scheme == "world");
  CHECK(acl.entries[1].id == "anyone");
  CHECK(acl.entries[1].rights == (zookeeper::kMayRead | zookeeper::kMayAdmin));
}

TEST_CASE("a check succeeds while all of its znodes exist") {
  auto [tree, lock] = MadeLock("check");
  tree.Create(lock + "/x");
  ConnectedClient client({TestServers()}, 10s);
  CHECK(Check(client, {lock}).error == Error::kNone);
  CHECK(Check(client, {lock, lock + "/x"}).error == Error::kNone);
  CHECK(Check(client, {lock, lock + "/gone"}).error == Error::kNoNode);
  CHECK(Check(client, {lock + "/gone", lock}).error == Error::kNoNode);
}

TEST_CASE("a check, a create and a read prove the session by the rules of the lease") {
  auto [tree, lock] = MadeLock("lease");
  ConnectedClient client({TestServers()}, 6s);
  // The connect request alone is not a commit.
  CHECK_FALSE(client.session().lease().End());
  CHECK(Get(client, lock).error == Error::kNone);
  CHECK_FALSE(client.session().lease().last_commit());
  const Reply checked = Check(client, {lock});
  CHECK(client.session().lease().last_commit() == checked.sent);
  REQUIRE(client.session().lease().End());
  // T minus the margin, counted from the connect request, which preceded the check.
  CHECK(*client.session().lease().End() < checked.sent + 6s - 500ms);

  // A check that is refused does not extend the lease.
  const auto end = client.session().lease().End();
  CHECK(Check(client, {lock + "/gone"}).error == Error::kNoNode);
  CHECK(client.session().lease().last_commit() == checked.sent);
  CHECK(client.session().lease().End() == end);
}

TEST_CASE(
    "a request without a connection is answered with a connection loss after the call has "
    "returned") {
  Client client({TestServers()}, 10s);
  bool answered = false;
  client.session().Sync("/", [&](const Reply& reply) {
    answered = true;
    CHECK(reply.error == Error::kConnectionLoss);
  });
  CHECK_FALSE(answered);
  client.RunUntil([&] { return answered; });
}

TEST_CASE("answers are delivered in the order of the requests") {
  auto [tree, lock] = MadeLock("order");
  ConnectedClient client({TestServers()}, 10s);
  std::vector<int> order;
  client.session().Create(lock + "/x", "", NodeKind::kEphemeral,
                          [&](const CreateReply&) { order.push_back(1); });
  client.session().List(lock, Watch::kNo, [&](const ListReply& reply) {
    order.push_back(2);
    CHECK(reply.children == Strings{"x"});  // requested before the create's answer
  });
  client.session().Get(lock + "/y", Watch::kNo, [&](const GetReply&) { order.push_back(3); });
  client.session().Check({lock}, [&](const Reply&) { order.push_back(4); });
  client.RunUntil([&] { return order.size() == 4; });
  CHECK(order == std::vector<int>{1, 2, 3, 4});
}

TEST_CASE("a watch reports a change once") {
  auto [tree, lock] = MadeLock("watch");
  tree.Create(lock + "/x");
  ConnectedClient client({TestServers()}, 10s);
  Get(client, lock + "/x", Watch::kYes);
  List(client, lock, Watch::kYes);
  Get(client, lock + "/y", Watch::kYes);  // it does not exist: a get leaves no watch
  client.events.clear();

  tree.SetData(lock + "/x", "new");
  client.RunUntil([&] { return !client.events.empty(); });
  CHECK(client.events == Strings{"watch " + lock + "/x"});
  tree.Delete(lock + "/x");
  client.RunUntil([&] { return client.events.size() == 2; });
  CHECK(client.events.back() == "watch " + lock);
  tree.Create(lock + "/y");
  // The servers send events before the answers to later requests.
  Sync(client, lock);
  Get(client, lock);
  CHECK(client.events.size() == 2);
}

TEST_CASE("after a connection loss the session continues over a new connection") {
  auto [tree, lock] = MadeLock("cut");
  Proxy proxy(TestServers());
  ConnectedClient client({proxy.address()}, 10s);
  const std::int64_t session = client.session().session_id();
  Create(client, lock + "/x");
  Get(client, lock, Watch::kYes);
  client.events.clear();

  proxy.Cut();
  client.RunUntil([&] { return client.events.size() == 2; });
  CHECK(client.events == Strings{"disconnected", "connected"});
  CHECK(client.session().session_id() == session);
  CHECK(tree.Exists(lock + "/x"));
  CHECK(Check(client, {lock + "/x"}).error == Error::kNone);
  CHECK(client.session().Failures().empty());
}

TEST_CASE("requests in flight at a connection loss are answered before it is reported") {
  auto [tree, lock] = MadeLock("lost");
  Proxy proxy(TestServers());
  ConnectedClient client({proxy.address()}, 10s);
  client.events.clear();

  proxy.FreezeReplies();
  client.session().Create(lock + "/x", "", NodeKind::kEphemeral, [&](const CreateReply& reply) {
    CHECK(reply.error == Error::kConnectionLoss);
    client.events.push_back("create lost");
  });
  client.session().Check({lock}, [&](const Reply& reply) {
    CHECK(reply.error == Error::kConnectionLoss);
    client.events.push_back("check lost");
  });
  // The create is executed although its reply is lost.
  tree.WaitForChildren(lock, 1);
  proxy.Cut();
  client.RunUntil([&] { return client.events.size() == 3; });
  CHECK(client.events == Strings{"create lost", "check lost", "disconnected"});
  proxy.Thaw();
  client.RunUntil([&] { return client.session().IsConnected(); });
  CHECK(Check(client, {lock + "/x"}).error == Error::kNone);
}

TEST_CASE("the session moves from a server that hangs to another one") {
  auto [tree, lock] = MadeLock("hang");
  Proxy first(TestServers());
  Proxy second(TestServers());
  ConnectedClient client({first.address(), second.address()}, 10s);
  Create(client, lock + "/x");
  const std::int64_t session = client.session().session_id();
  Proxy& used = client.session().connected_server() == first.address() ? first : second;
  const Proxy& other = &used == &first ? second : first;

  used.Freeze();
  std::optional<Reply> answer;
  client.session().Check({lock + "/x"}, [&](const Reply& reply) { answer = reply; });
  client.session().GiveUpServer();
  client.RunUntil([&] { return answer && client.session().IsConnected(); });
  CHECK(answer->error == Error::kConnectionLoss);
  CHECK(client.session().connected_server() == other.address());
  CHECK(client.session().session_id() == session);
  CHECK(Check(client, {lock + "/x"}).error == Error::kNone);
  const auto failures = client.session().Failures();
  REQUIRE(failures.size() == 1);
  CHECK(failures.front().server == used.address());
  CHECK(failures.front().end == AttemptEnd{How::kFellSilent});
}

TEST_CASE("a server that refused a request and then fell silent is reported for the refusal") {
  const std::string znode = MadeLock("refuse").lock;
  ConnectedClient client({TestServers()}, 40s);
  const auto end_after = [&](Error refusal) {
    client.session().GiveUpServer(refusal);
    client.RunUntil([&] { return !client.session().IsConnected(); });
    const AttemptEnd end = client.session().Failures().front().end;
    client.RunUntil([&] { return client.session().IsConnected(); });
    return end;
  };
  CHECK(end_after(Error::kNone) == AttemptEnd{How::kFellSilent});
  CHECK(end_after(Error::kNoAuth) == AttemptEnd{How::kSystem, EACCES});
  CHECK(end_after(Error::kNone) == AttemptEnd{How::kSystem, EACCES});
  CHECK(Check(client, {znode}).error == Error::kNone);
  CHECK(end_after(Error::kNone) == AttemptEnd{How::kFellSilent});
}

TEST_CASE("a server may be given up in the callback for an answer") {
  Proxy proxy(TestServers());
  ConnectedClient client({proxy.address()}, 10s);
  client.events.clear();
  client.session().Sync("/", [&](const Reply&) { client.session().GiveUpServer(); });
  client.RunUntil([&] { return client.events.size() == 2; });
  CHECK(client.events == Strings{"disconnected", "connected"});
}

TEST_CASE("an address that drops packets does not delay the attempt at the next one") {
  const BlackHole hole;
  // The addresses are shuffled: in some of these attempts, the one that drops packets is first.
  for (int i = 0; i < 8; ++i) {
    const TimePoint before = BootClock::now();
    ConnectedClient client({hole.address(), TestServers()}, 4s);
    CHECK(BootClock::now() - before < 10s);
    CHECK(client.session().connected_server() == TestServers());
  }
}

TEST_CASE("servers that hang leave time for one that answers") {
  // The addresses are shuffled: the one that answers is not always tried first.
  for (int i = 0; i < 6; ++i) {
    const Peer one(Peer::Manner::kSaysNothing);
    const Peer other(Peer::Manner::kSaysNothing);
    Client client({one.address(), other.address(), TestServers()}, 30s);
    client.session().SetConnectTimeout(6s);
    const TimePoint before = BootClock::now();
    client.Connect();
    CHECK(BootClock::now() - before < 6s);
  }
}

TEST_CASE("a very long connect timeout does not end attempts early") {
  const ClosedPort closed;
  Client client({closed.address()}, 10s);
  client.session().SetConnectTimeout(36500 * 24h);
  client.RunUntil([&] { return client.session().failed_rounds() > 3; });
  client.session().SetEndpoints(EndpointsOf({TestServers()}));
  client.Connect();
}

TEST_CASE("an address that drops packets does not cost a holder its session") {
  auto [tree, lock] = MadeLock("hole");
  const BlackHole hole;
  Proxy proxy(TestServers());
  ConnectedClient client({proxy.address()}, 6s);
  Create(client, lock + "/x");
  client.session().SetHolding(BootClock::now() + 4s, BootClock::now() + 4s);
  client.session().SetEndpoints(EndpointsOf({hole.address(), TestServers(), hole.address()}));
  proxy.Cut();
  client.RunUntil([&] { return client.session().connected_server() == TestServers(); });
  CHECK(Check(client, {lock + "/x"}).error == Error::kNone);
  CHECK(client.events == Strings{"connected, fresh", "disconnected", "connected"});
}

TEST_CASE("once the lease has ended, servers are not tried as often as for a holder") {
  const ClosedPort closed;
  Client client({closed.address()}, 40s);
  client.session().SetHolding(BootClock::now() + 100ms, BootClock::now() + 100ms);
  client.RunFor(2s);
  CHECK(client.session().failed_rounds() < 30);
}

TEST_CASE("a holder does not return at once to servers that refuse its requests") {
  auto [tree, lock] = MadeLock("refuse");
  const std::string znode = tree.Create(lock + "/x");
  tree.SetAcl(znode, kWrite);
  ConnectedClient client({TestServers()}, 40s);
  client.session().SetHolding(BootClock::now() + 40s, BootClock::now() + 40s);
  std::size_t given_up = 0;
  const BootClock::time_point end = BootClock::now() + 2s;
  while (BootClock::now() < end) {
    CHECK(Check(client, {znode}).error == Error::kNoAuth);
    client.session().GiveUpServer(Error::kNoAuth);
    ++given_up;
    client.RunUntil([&] { return client.events.size() == 2 * given_up; });
    CHECK(client.session().Failures().front().end == AttemptEnd{How::kSystem, EACCES});
    client.RunUntil([&] { return client.events.size() == 1 + 2 * given_up; });
  }
  CHECK(given_up < 30);
}

TEST_CASE("a holder does not return at once to servers that close on every transaction") {
  // They answer a sync, as any server does unless it is cut off from its clients.
  std::atomic<int> connections = 0;
  const HostileServer server([&](int socket, int) {
    ++connections;
    if (!HostileServer::Receive(socket)) return;
    HostileServer::Send(socket, HostileServer::Grant());
    if (const auto xid = XidOfNextRequest(socket)) {
      HostileServer::Send(socket,
                          HostileServer::Frame(HostileServer::Number(*xid) + std::string(12, '\0') +
                                               HostileServer::Number(2) + "/x"));
    }
    // Closes only after the answer has been read.
    std::this_thread::sleep_for(1ms);
  });
  Client client({server.address()}, 40s);
  client.session().SetHolding(BootClock::now() + 40s, BootClock::now() + 40s);
  const TimePoint end = BootClock::now() + 2s;
  int synced = 0;
  while (BootClock::now() < end) {
    client.events.clear();
    client.RunUntil([&] { return !client.events.empty() && client.session().IsConnected(); });
    client.session().Sync("/x", [&](const Reply& reply) {
      if (reply.error == Error::kNone) ++synced;
    });
    client.session().Check({"/x"}, [](const Reply&) {});
    client.RunUntil([&] { return !client.session().IsConnected(); });
  }
  CHECK(synced > 0);
  CHECK(connections < 30);
}

TEST_CASE("all addresses are tried, and the reason for each failure is reported") {
  const ClosedPort closed;
  const Peer at_once(Peer::Manner::kClosesAtOnce);
  const Peer web(Peer::Manner::kSpeaksHttp);
  Client client({closed.address(), at_once.address(), web.address()}, 40s);
  client.RunUntil([&] { return client.session().failed_rounds() > 0; });
  std::map<std::string, AttemptEnd> said;
  for (const auto& failure : client.session().Failures()) said[failure.server] = failure.end;
  CHECK(said == std::map<std::string, AttemptEnd>{{closed.address(), {How::kSystem, ECONNREFUSED}},
                                                  {at_once.address(), {How::kClosedAtOnce}},
                                                  {web.address(), {How::kNoZooKeeper}}});
}

TEST_CASE("new addresses do not discard or mix up the failures of the old ones") {
  const ClosedPort closed;
  const Peer silent(Peer::Manner::kSaysNothing);
  Client client({closed.address()}, 40s);
  client.RunUntil([&] { return client.session().failed_rounds() > 0; });
  client.session().SetEndpoints(EndpointsOf({silent.address()}));
  CHECK(client.session().Failures().empty());
  client.RunUntil([&] {
    const auto failures = client.session().Failures();
    return !failures.empty() && failures.front().end == AttemptEnd{How::kNoSession};
  });
  // The session still tries the silent address, wherever the shuffle puts it.
  for (int i = 0; i < 20; ++i) {
    client.session().SetEndpoints(
        EndpointsOf({"127.0.0.1:1", "127.0.0.1:2", silent.address(), "127.0.0.1:3"}));
    const auto failures = client.session().Failures();
    REQUIRE(failures.size() == 1);
    CHECK(failures.front().server == silent.address());
  }
}

TEST_CASE("an address that stays in the list keeps its failure") {
  const ClosedPort closed;
  Client client({closed.address()}, 4s);
  client.RunUntil([&] { return client.session().failed_rounds() > 0; });
  client.session().SetEndpoints(EndpointsOf({closed.address(), "127.0.0.1:1"}));
  const auto failures = client.session().Failures();
  REQUIRE(failures.size() == 1);
  CHECK(failures.front().server == closed.address());
  CHECK(failures.front().end == AttemptEnd{How::kSystem, ECONNREFUSED});
}

TEST_CASE("a silent peer is reported as one that grants no session") {
  const Peer peer(Peer::Manner::kSaysNothing);
  CHECK(EndOf(peer.address(), 4s) == AttemptEnd{How::kNoSession});
}

TEST_CASE("an address that does not answer the connect is reported as such") {
  const BlackHole hole;
  CHECK(EndOf(hole.address(), 4s) == AttemptEnd{How::kConnectUnanswered});
}

TEST_CASE("an expired session is noticed, and can be renewed") {
  auto [tree, lock] = MadeLock("expiry");
  ConnectedClient client({TestServers()}, 10s);
  Create(client, lock + "/x");
  CHECK(client.session().lease().End());
  const zookeeper::Credentials old = *client.session().credentials();
  // Another client ends it, which is faster than letting it expire.
  REQUIRE(zookeeper::CloseSession(old, client.session().endpoints(), kPatience, {}));
  client.RunUntil([&] { return client.events.back() == "expired"; });
  CHECK(client.events == Strings{"connected, fresh", "disconnected", "expired"});
  CHECK_FALSE(tree.Exists(lock + "/x"));

  client.session().Renew();
  client.RunUntil([&] { return client.session().IsConnected(); });
  CHECK(client.session().session_id() != old.session_id);
  CHECK_FALSE(client.session().lease().End());
  CHECK_FALSE(client.session().lease().last_commit());
  CHECK(client.events.back() == "connected, fresh");
  CHECK(Create(client, lock + "/x").error == Error::kNone);
}

TEST_CASE("a session that has expired is noticed with the next connection") {
  auto [tree, lock] = MadeLock("expiry");
  Proxy proxy(TestServers());
  ConnectedClient client({proxy.address()}, 4s);
  Create(client, lock + "/x");
  proxy.Freeze();
  tree.WaitForChildren(lock, 0);  // the client is not served in the meantime, and sends no pings
  proxy.Cut();
  proxy.Thaw();
  client.RunUntil([&] { return client.events.back() == "expired"; });
  CHECK(client.events.front() == "connected, fresh");
}

TEST_CASE("an idle session stays alive") {
  auto [tree, lock] = MadeLock("idle");
  // With this timeout, the answer to a ping may be 4 s late.
  ConnectedClient client({TestServers()}, 12s);
  Create(client, lock + "/x");
  client.RunFor(13s);  // two ticks longer than it would live without a ping
  CHECK(client.events == Strings{"connected, fresh"});
  CHECK(tree.Exists(lock + "/x"));
}

TEST_CASE("the close is confirmed only after ephemeral znodes are gone") {
  auto [tree, lock] = MadeLock("close");
  Proxy proxy(TestServers());
  proxy.Delay(50ms);
  for (const std::string& server : {TestServers(), proxy.address()}) {
    ConnectedClient client({server}, 10s);
    Create(client, lock + "/x");
    client.session().BeginClose();
    CHECK_FALSE(client.session().IsClosed());
    client.RunUntil([&] { return client.session().IsClosed(); });
    CHECK(tree.Children(lock).empty());
  }
}

TEST_CASE("a close follows all earlier requests, sent or not") {
  auto [tree, lock] = MadeLock("close");
  Proxy proxy(TestServers());
  ConnectedClient client({proxy.address()}, 40s);
  // This is more than the kernel buffers if nobody reads; the close must not be sent in the middle
  // of a request.
  proxy.Freeze();
  const std::string data(1'000'000, 'x');
  for (const char* name : {"/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h"}) {
    client.session().Create(lock + name, data, NodeKind::kEphemeral,
                            [](const CreateReply&) { FAIL("nobody is told any more"); });
  }
  const TimePoint before = BootClock::now();
  client.session().BeginClose();
  proxy.Thaw();
  client.RunUntil([&] { return client.session().IsClosed(); });
  CHECK(BootClock::now() - before < 20s);  // it did not just wait for the session to expire
  CHECK(tree.Children(lock).empty());
}

TEST_CASE("a close uses a new connection when the old one breaks") {
  auto [tree, lock] = MadeLock("close");
  Proxy proxy(TestServers());
  ConnectedClient client({proxy.address()}, 30s);
  Create(client, lock + "/x");

  SECTION("before the close was sent") {
    proxy.Freeze();
    client.session().BeginClose();
    proxy.Cut();
    proxy.Thaw();
  }
  SECTION("before its reply arrived") {
    proxy.FreezeReplies();
    client.session().BeginClose();
    tree.WaitForChildren(lock, 0);
    proxy.Cut();
    proxy.Thaw();
  }
  SECTION("before the close was requested") {
    client.events.clear();
    proxy.Cut();
    client.RunUntil([&] { return !client.events.empty(); });
    client.session().BeginClose();
  }
  client.RunUntil([&] { return client.session().IsClosed(); });
  CHECK(tree.Children(lock).empty());
}

TEST_CASE("a close is answered even if the library has read only a part of the frame before it") {
  const std::string event = HostileServer::Frame(
      HostileServer::Number(-1) + std::string(12, '\0') + HostileServer::Number(3) +
      HostileServer::Number(3) + HostileServer::Number(2) + "/x");
  const auto cut = GENERATE_COPY(range(std::size_t{1}, event.size() + 1));
  CAPTURE(cut);
  std::atomic<bool> is_cut = false;
  std::atomic<int> connections = 0;
  const HostileServer server([&](int socket, int) {
    ++connections;
    if (!HostileServer::Receive(socket)) return;
    HostileServer::Send(socket, HostileServer::Grant());
    HostileServer::Send(socket, event.substr(0, cut));
    is_cut = true;
    const auto close = XidOfNextRequest(socket);
    if (!close) return;
    HostileServer::Send(
        socket, event.substr(cut) +
                    HostileServer::Frame(HostileServer::Number(*close) + std::string(12, '\0')));
  });
  ConnectedClient client({server.address()}, 30s);
  WaitUntil([&] { return is_cut.load(); });
  client.RunUntil([&] {
    int unread = 0;
    return ioctl(client.session().GetInterest().fd, FIONREAD, &unread) == 0 && unread == 0;
  });
  client.Close();
  CHECK(connections == 1);
}

TEST_CASE("a close that its server does not answer is sent to another one") {
  auto [tree, lock] = MadeLock("close");
  Proxy first(TestServers());
  Proxy second(TestServers());
  const Peer silent(Peer::Manner::kSaysNothing);
  const BlackHole hole;
  ConnectedClient client({first.address(), second.address()}, 30s);
  Create(client, lock + "/x");
  Proxy& used = client.session().connected_server() == first.address() ? first : second;
  Proxy& other = &used == &first ? second : first;

  SECTION("when it hangs") { used.Freeze(); }
  SECTION("when its answers are lost") { used.FreezeReplies(); }
  SECTION("when other servers grant no session, or accept no connection") {
    client.session().SetEndpoints(
        EndpointsOf({silent.address(), hole.address(), used.address(), other.address()}));
    used.Freeze();
  }
  // Each of the four addresses is given three times as long as the handshake took.
  const Duration took = client.session().connect_took();
  const TimePoint before = BootClock::now();
  client.Close();
  // A third of the timeout for each address would take longer.
  CHECK(BootClock::now() - before < 8s + 12 * took);
  CHECK(tree.Children(lock).empty());
  CHECK(other.connections() > 0);
}

TEST_CASE("a session that has released everything does not wait for the close") {
  auto [tree, lock] = MadeLock("close");
  Proxy proxy(TestServers());
  // After such a slow handshake, the close would otherwise wait for 3 s.
  proxy.Delay(500ms);
  ConnectedClient client({proxy.address()}, 30s);
  proxy.Delay(0ms);
  Create(client, lock + "/x");
  proxy.LoseCloses(true);
  client.session().Sync(lock, [](const Reply&) {});
  client.session().WriteAndDelete({{lock, "record", 0}}, {lock + "/x"}, zookeeper::kAnyVersion,
                                  [](const Reply&) {});
  client.session().BeginClose(1);
  client.RunUntil([&] { return client.session().IsClosed(); });
  CHECK(tree.Children(lock).empty());
  CHECK(proxy.connections() == 1);
}

TEST_CASE("a session that has not released everything waits for the close") {
  auto [tree, lock] = MadeLock("close");
  Proxy proxy(TestServers());
  ConnectedClient client({proxy.address()}, 30s);
  Create(client, lock + "/x");
  Create(client, lock + "/y");
  proxy.LoseCloses(true);
  const auto release = [&](std::int32_t version, const std::string& gone) {
    client.session().WriteAndDelete({{lock, "record", version}}, {gone}, zookeeper::kAnyVersion,
                                    [](const Reply&) {});
  };
  SECTION("if the record was refused, and the delete with it") {
    release(7, lock + "/x");
    client.session().BeginClose(1);
  }
  SECTION("if one of two was refused") {
    release(7, lock + "/x");
    release(0, lock + "/y");
    client.session().BeginClose(2);
  }
  SECTION("if one of two was not requested") {
    release(0, lock + "/x");
    client.session().BeginClose(2);
  }
  SECTION("if there was nothing to release before it") {
    release(0, lock + "/x");
    client.session().BeginClose();
  }
  // Only a session that still waits tries another connection.
  client.RunUntil([&] { return proxy.connections() > 1 || client.session().IsClosed(); });
  CHECK_FALSE(client.session().IsClosed());
  proxy.LoseCloses(false);
  client.RunUntil([&] { return client.session().IsClosed(); });
  CHECK(tree.Children(lock).empty());
}

/// Blocks the event loop, once, until the session can read an answer and `until` has passed.
class Stall final : public EventSource {
 public:
  Stall(zookeeper::Session& session, TimePoint until) : session_(session), until_(until) {}
  Interest GetInterest() override { return {.wake = has_been_ ? kNever : BootClock::now()}; }
  void OnReady(short /*revents*/) override {
    has_been_ = true;
    pollfd answer{.fd = session_.GetInterest().fd, .events = POLLIN, .revents = 0};
    poll(&answer, 1, int(std::chrono::milliseconds(kPatience).count()));
    std::this_thread::sleep_until(until_);
  }

 private:
  zookeeper::Session& session_;
  const TimePoint until_;
  bool has_been_ = false;
};

TEST_CASE("an answer to the close counts though the process ran too late to read it in time") {
  Proxy proxy(TestServers());
  const SystemClock clock;
  process::EventLoop loop;
  cli::ServerOptions options{.connect_timeout = kPatience, .session_timeout = 30s};
  options.servers = std::get<zookeeper::ServerList>(zookeeper::ParseServerList(proxy.address()));
  commands::SessionDriver driver(loop, options, clock);
  RunUntil(loop, [&] { return driver.session().IsConnected(); });
  proxy.Delay(100ms);  // so that the first round of the loop does not read it
  Stall stall(driver.session(), BootClock::now() + 1s);  // longer than Close() waits
  loop.Add(stall);
  CHECK_FALSE(driver.Close());
  loop.Remove(stall);
}

TEST_CASE("a close waits longer for the answer of a distant server") {
  auto [tree, lock] = MadeLock("close");
  Proxy proxy(TestServers());
  proxy.Delay(1s);
  ConnectedClient client({proxy.address(), proxy.address()}, 30s);
  proxy.Delay(0s);
  Create(client, lock + "/x");
  proxy.Delay(400ms);
  const int connections = proxy.connections();
  client.Close();
  CHECK(proxy.connections() == connections);
  CHECK(tree.Children(lock).empty());
}

TEST_CASE("a server that answers the close by closing the connection is retried with pauses") {
  std::atomic<int> connections = 0;
  const HostileServer server([&](int socket, int) {
    ++connections;
    if (!HostileServer::Receive(socket)) return;
    HostileServer::Send(socket, HostileServer::Grant());
    HostileServer::Receive(socket);
  });
  std::optional<ConnectedClient> client(std::in_place, Strings{server.address()}, 40s);
  SECTION("by the process that opened the session") {
    client->session().SetHolding(BootClock::now() + 40s, BootClock::now() + 40s);
    client->session().BeginClose();
    client->RunFor(2s);
  }
  SECTION("by the guard") {
    const zookeeper::Credentials credentials = *client->session().credentials();
    client.reset();
    CHECK_FALSE(zookeeper::CloseSession(credentials, EndpointsOf({server.address()}), 2s, {}));
  }
  CHECK(connections > 2);
  CHECK(connections < 20);
}

/// A helper that ends and reports that the server has rejected the credentials.
class RefusedHelper final : public zookeeper::Helper {
 public:
  const std::string& ErrorTail() override { return words_; }
  bool IsRefusal() override { return true; }
  void ForgetWords() override {}

 private:
  const std::string words_ = "rejected";
};

/// A transport to servers that refuse the credentials at first.
class RefusingTransport final : public zookeeper::Transport {
 public:
  RefusingTransport(const std::string& server, int refusals)
      : server_(server), refusals_(refusals) {}
  std::unique_ptr<zookeeper::Helper> Start(const zookeeper::Endpoint& /*endpoint*/,
                                           UniqueFd socket) override {
    if (attempts_++ < refusals_) return std::make_unique<RefusedHelper>();
    return real_->Start({server_, server_}, std::move(socket));
  }
  [[nodiscard]] int attempts() const { return attempts_; }

 private:
  const std::string server_;
  const int refusals_;
  int attempts_ = 0;
  const std::unique_ptr<zookeeper::Transport> real_ =
      process::MakeTransport({.proxy_command = "exec socat - TCP:%h:%p"});
};

TEST_CASE("the guard tries the close again after servers have refused its credentials") {
  auto [tree, lock] = MadeLock("orphan");
  std::optional<ConnectedClient> client(std::in_place, Strings{TestServers()}, 40s);
  Create(*client, lock + "/x");
  const zookeeper::Credentials credentials = *client->session().credentials();
  client.reset();  // lets the session expire
  RefusingTransport transport(TestServers(), 5);
  CHECK(zookeeper::CloseSession(credentials, EndpointsOf({TestServers(), TestServers()}), 20s, {},
                                &transport));
  CHECK(transport.attempts() == 6);
  CHECK_FALSE(tree.Exists(lock + "/x"));
}

TEST_CASE("a session that never connected is closed at once") {
  const ClosedPort closed;
  Client client({closed.address()}, 10s);
  client.session().BeginClose();
  CHECK(client.session().IsClosed());
}

TEST_CASE("a dead process's session is closed, or the attempt is given up in time") {
  auto [tree, lock] = MadeLock("orphan");
  Proxy proxy(TestServers());
  std::optional<Client> client;
  client.emplace(Strings{proxy.address()}, 40s);
  client->Connect();
  Create(*client, lock + "/x");
  const zookeeper::Credentials credentials = *client->session().credentials();
  const auto endpoints = client->session().endpoints();
  client.reset();  // lets the session expire
  CHECK(tree.Exists(lock + "/x"));

  SECTION("with servers") {
    CHECK(zookeeper::CloseSession(credentials, endpoints, kPatience, {}));
    CHECK_FALSE(tree.Exists(lock + "/x"));
  }
  SECTION("with many that accept connections but grant no session, in any order") {
    std::vector<std::unique_ptr<Peer>> silent;
    auto all = endpoints;
    for (int i = 0; i < 6; ++i) {
      silent.push_back(std::make_unique<Peer>(Peer::Manner::kSaysNothing));
      all.push_back({silent.back()->address(), silent.back()->address()});
    }
    const TimePoint before = BootClock::now();
    CHECK(zookeeper::CloseSession(credentials, all, kPatience, {}));
    // Waiting a third of the timeout for a single server would take longer.
    CHECK(BootClock::now() - before < 12s);
    CHECK_FALSE(tree.Exists(lock + "/x"));
  }
  SECTION("with one that hangs") {
    proxy.Freeze();
    const TimePoint before = BootClock::now();
    CHECK_FALSE(zookeeper::CloseSession(credentials, endpoints, 300ms, {}));
    CHECK(BootClock::now() - before >= 300ms);
    CHECK(BootClock::now() - before < 20s);
  }
  SECTION("with a wrong password the session is not ended") {
    CHECK(zookeeper::CloseSession({credentials.session_id, std::string(16, 'x')}, endpoints,
                                  kPatience, {}));
    CHECK(tree.Exists(lock + "/x"));
  }
}

TEST_CASE("a session destroyed without a close leaves no descriptor open") {
  const auto count = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  Tree tree;
  const auto before = count();
  {
    ConnectedClient connected({TestServers()}, 10s);
    const Peer peer(Peer::Manner::kSaysNothing);
    Client shaking({peer.address()}, 10s);
    shaking.RunOnce();
    Client untried({TestServers()}, 10s);
  }
  CHECK(count() == before);
}

}  // namespace zklock::test
