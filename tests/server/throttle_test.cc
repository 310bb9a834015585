// Servers that throttle: they answer "not executed, please retry", although requests sent after the
// throttled one may have been executed.

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/client.h"
#include "support/frames.h"
#include "support/own_server.h"
#include "support/peer.h"
#include "support/server.h"

namespace zklock::test {
namespace {

using namespace std::chrono_literals;
using zookeeper::Error;
using zookeeper::NodeKind;
using zookeeper::Watch;

constexpr std::int32_t kThrottled = -127;

std::int32_t ErrorOf(const std::string& reply) { return frames::Number(reply, 16); }

/// Returns the head of `reply` with this error and no body.
std::string WithError(const std::string& reply, std::int32_t error) {
  std::string answer = std::string("\0\0\0\x10", 4) + reply.substr(4, 12);
  for (int shift = 24; shift >= 0; shift -= 8) {
    answer += static_cast<char>(static_cast<std::uint32_t>(error) >> shift & 0xffU);
  }
  return answer;
}

/// Requests and replies recorded by the proxy's thread.
struct Seen {
  std::mutex mutex;
  std::vector<std::string> requests;
  int throttled = 0;
};

}  // namespace

TEST_CASE("throttled requests are eventually executed, in order") {
  const OwnServer server({"request_throttle_max_requests=1", "throttled_op_wait_time=1",
                          "request_throttle_stall_time=20"});
  const auto seen = std::make_shared<Seen>();
  Proxy proxy(server.address());
  proxy.EditReplies([seen](const std::string& /*request*/, std::string reply) {
    const std::lock_guard lock(seen->mutex);
    if (ErrorOf(reply) == kThrottled) ++seen->throttled;
    return std::optional(std::move(reply));
  });
  ConnectedClient client({proxy.address()}, 40s);
  zookeeper::Session& session = client.session();

  std::vector<std::string> answers;
  std::string own;
  const auto note = [&](const std::string& what) {
    return [&answers, what](const zookeeper::Reply& reply) {
      answers.push_back(what + (reply.error == Error::kNone ? "" : " failed"));
    };
  };
  session.Create("/l", "", NodeKind::kContainer, note("make"));
  session.Create("/l/x-lock-", "", NodeKind::kEphemeralSequential,
                 [&](const zookeeper::CreateReply& reply) {
                   own = reply.path;
                   note("create")(reply);
                 });
  session.Sync("/l", note("sync"));
  session.Get("/l", Watch::kYes, note("get"));
  session.List("/l", Watch::kNo, [&](const zookeeper::ListReply& reply) {
    CHECK(reply.children.size() == 1);
    CHECK(reply.children.Has("x-lock-0000000000"));
    note("list")(reply);
  });
  std::vector<std::string> expected = {"make", "create", "sync", "get", "list"};
  // The server only throttles a request that has waited for another: with many commits, one has.
  for (int i = 0; i < 100; ++i) {
    session.Check({"/l/x-lock-0000000000"}, note("check"));
    expected.emplace_back("check");
  }
  client.RunUntil([&] { return answers.size() == expected.size(); });
  CHECK(answers == expected);
  CHECK(own == "/l/x-lock-0000000000");
  CHECK(client.events == std::vector<std::string>{"connected, fresh"});
  const std::lock_guard lock(seen->mutex);
  CHECK(seen->throttled > 0);
}

TEST_CASE("after a throttled request reads are repeated, but a completed write is not") {
  auto [tree, place] = MadeLock("throttled");
  const auto seen = std::make_shared<Seen>();
  Proxy proxy(TestServers());
  proxy.EditReplies([seen](const std::string& request, std::string reply) {
    const std::lock_guard lock(seen->mutex);
    seen->requests.push_back(request.substr(0, request.find(' ')));
    // Throttle only the first two gets.
    if (request.starts_with("get") && seen->throttled++ < 2) return WithError(reply, kThrottled);
    return reply;
  });
  ConnectedClient client({proxy.address()}, 40s);
  zookeeper::Session& session = client.session();

  std::vector<std::string> answers;
  TimePoint get_sent{};
  TimePoint create_sent{};
  session.Get(place, Watch::kNo, [&](const zookeeper::GetReply& reply) {
    get_sent = reply.sent;
    answers.emplace_back("get");
  });
  session.Create(place + "/x-", "", NodeKind::kEphemeralSequential,
                 [&](const zookeeper::CreateReply& reply) {
                   CHECK(reply.path == place + "/x-0000000000");
                   create_sent = reply.sent;
                   answers.emplace_back("create");
                 });
  session.Delete(place + "/none", zookeeper::kAnyVersion, [&](const zookeeper::Reply& reply) {
    CHECK(reply.error == Error::kNoNode);
    answers.emplace_back("delete");
  });
  session.List(place, Watch::kNo, [&](const zookeeper::ListReply& reply) {
    CHECK(reply.children.size() == 1);
    answers.emplace_back("list");
  });
  client.RunUntil([&] { return answers.size() == 4; });
  CHECK(answers == std::vector<std::string>{"get", "create", "delete", "list"});
  CHECK(get_sent > create_sent);
  {
    const std::lock_guard lock(seen->mutex);
    CHECK(seen->requests == std::vector<std::string>{"connect", "get", "create", "type", "list",
                                                     "get", "get", "type", "list"});
  }
  // From now on requests are sent at once again.
  bool answered = false;
  session.Sync(place, [&](const zookeeper::Reply& /*reply*/) { answered = true; });
  client.RunUntil([&] { return answered; });
}

TEST_CASE("a lost connection fails throttled requests, but not a write done after one") {
  auto [tree, place] = MadeLock("throttled");
  Proxy proxy(TestServers());
  proxy.EditReplies([](const std::string& request, std::string reply) {
    return std::optional(request.starts_with("get") ? WithError(reply, kThrottled)
                                                    : std::move(reply));
  });
  ConnectedClient client({proxy.address()}, 40s);
  std::vector<Error> errors;
  const auto note = [&](const zookeeper::Reply& reply) { errors.push_back(reply.error); };
  client.session().Get(place, Watch::kNo, note);
  client.session().Create(place + "/x", "", NodeKind::kEphemeral, note);
  tree.WaitForChildren(place, 1);
  // The answer to the create arrives before the next request is answered.
  client.session().List(place, Watch::kNo, note);
  client.RunUntil([&] { return client.session().lease().last_commit().has_value(); });
  client.RunFor(300ms);
  CHECK(errors.empty());
  const auto failures = client.session().Failures();
  REQUIRE(failures.size() == 1);
  CHECK(failures.front().end.how == zookeeper::AttemptEnd::How::kThrottles);
  proxy.Cut();
  client.RunUntil([&] { return client.events.size() >= 2; });
  CHECK(errors == std::vector<Error>{Error::kConnectionLoss, Error::kNone, Error::kConnectionLoss});
  CHECK(client.events[1] == "disconnected");
}

}  // namespace zklock::test
