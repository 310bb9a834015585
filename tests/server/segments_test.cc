// Tests of the number of TCP segments sent to the servers: each one costs a wake-up on both hosts.

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <optional>
#include <string>

#include "server/client.h"
#include "support/server.h"
#include "zookeeper/session.h"

namespace zklock::test {
namespace {

using namespace std::chrono_literals;
using zookeeper::CreateReply;
using zookeeper::Error;
using zookeeper::GetReply;
using zookeeper::ListReply;
using zookeeper::NodeKind;
using zookeeper::Reply;
using zookeeper::Watch;

// The longest timeout that the servers grant: no ping is sent for a third of it.
constexpr Duration kTimeout = 40s;

/// Returns the number of data segments sent over the session's connection.
unsigned SegmentsOf(zookeeper::Session& session) {
  tcp_info info{};
  socklen_t size = sizeof info;
  REQUIRE(getsockopt(session.GetInterest().fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0);
  return info.tcpi_data_segs_out;
}

}  // namespace

TEST_CASE("a handshake and each request are sent in one segment") {
  auto [tree, lock] = MadeLock("segments");
  ConnectedClient client({TestServers()}, kTimeout);
  CHECK(SegmentsOf(client.session()) == 1);

  std::optional<GetReply> got;
  client.session().Get(lock, Watch::kNo, [&](const GetReply& reply) { got = reply; });
  CHECK(SegmentsOf(client.session()) == 2);
  client.RunUntil([&] { return got.has_value(); });
  CHECK(got->error == Error::kNone);
}

TEST_CASE("requests made in one wake-up are sent in one segment") {
  auto [tree, lock] = MadeLock("segments");
  ConnectedClient client({TestServers()}, kTimeout);

  unsigned before = 0;
  std::optional<ListReply> listed;
  client.session().Sync(lock, [&](const Reply&) {
    before = SegmentsOf(client.session());
    client.session().Create(lock + "/x-lock-", "data", NodeKind::kEphemeralSequential,
                            [](const CreateReply&) {});
    client.session().Get(lock, Watch::kNo, [](const GetReply&) {});
    client.session().List(lock, Watch::kNo, [&](const ListReply& reply) { listed = reply; });
  });
  client.RunUntil([&] { return listed.has_value(); });
  REQUIRE(listed->error == Error::kNone);
  CHECK(listed->children.size() == 1);
  CHECK(SegmentsOf(client.session()) == before + 1);
}

TEST_CASE("a release is sent at once, in one segment with the close") {
  auto [tree, lock] = MadeLock("segments");
  ConnectedClient client({TestServers()}, kTimeout);
  std::string contender;
  client.session().Create(lock + "/x-lock-", "data", NodeKind::kEphemeralSequential,
                          [&](const CreateReply& reply) { contender = reply.path; });
  client.RunUntil([&] { return !contender.empty(); });

  const unsigned before = SegmentsOf(client.session());
  client.session().WriteAndDelete({{lock, "released", 0}}, {contender}, zookeeper::kAnyVersion,
                                  [](const Reply&) {});
  client.session().BeginClose(1);
  CHECK(SegmentsOf(client.session()) == before + 1);  // corked data would wait for 200 ms
  client.RunUntil([&] { return client.session().IsClosed(); });
  CHECK(tree.Children(lock).empty());
  CHECK(tree.Get(lock)->data == "released");
}

TEST_CASE("a release that no close follows is not held back") {
  auto [tree, lock] = MadeLock("segments");
  const std::string contender = tree.Create(lock + "/x-lock-0");
  ConnectedClient client({TestServers()}, kTimeout);
  const unsigned before = SegmentsOf(client.session());
  client.session().WriteAndDelete({{lock, "released", 0}}, {contender}, zookeeper::kAnyVersion,
                                  [](const Reply&) {});
  CHECK(SegmentsOf(client.session()) == before + 1);
}

}  // namespace zklock::test
