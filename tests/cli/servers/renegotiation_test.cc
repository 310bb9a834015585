// A server that grants a different session timeout than the previous one.

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "cli/hold/hold_script.h"
#include "cli/servers/regranted.h"
#include "support/own_server.h"
#include "support/peer.h"

namespace zklock::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// A proxy that grants the requested timeout to the first connect, and 6 s to later ones.
class Shortener {
 public:
  Shortener() {
    struct State {
      int connects = 0;
      bool told = false;
      std::promise<void> is_shortened;
    };
    const auto state = std::make_shared<State>();
    is_shortened_ = state->is_shortened.get_future();
    proxy_.EditReplies([state](const std::string& request, std::string reply) {
      if (request == "connect" && ++state->connects > 1) {
        const std::uint32_t granted = 6'000;  // after the length and the protocol version
        for (std::size_t i = 0; i < 4; ++i) {
          reply[8 + i] = static_cast<char>(granted >> (24 - 8 * i));
        }
      } else if (state->connects > 1 && !std::exchange(state->told, true)) {
        state->is_shortened.set_value();  // the client has seen it and sent a request
      }
      return std::optional(std::move(reply));
    });
  }
  /// Returns when the shorter timeout has been granted.
  void Shorten() {
    proxy_.Cut();
    if (is_shortened_.wait_for(kPatience) != std::future_status::ready) {
      throw std::runtime_error("no new connection");
    }
  }
  [[nodiscard]] Proxy& proxy() { return proxy_; }

 private:
  Proxy proxy_{TestServers()};
  std::future<void> is_shortened_;
};

}  // namespace

// Both servers run from the start: the shorter timeout begins at the last contact with the first
// server, and would be over before a server could be restarted.
TEST_CASE("the command is dead before a timeout shortened by another server is over") {
  const OwnServer servers({"maxSessionTimeout=40000", "2:maxSessionTimeout=12000"}, 2);
  const std::string both = servers.address();
  const std::size_t comma = both.find(',');
  Proxy proxy(both.substr(0, comma));
  auto [lock, holder] = HoldNewLock(
      "shortened", {"exclusive", "-v", "--session-timeout", "30s", "-z", proxy.address()});
  proxy.Redirect(both.substr(comma + 1));
  proxy.Cut();
  holder.ReadErrUntil("session timeout 12s: this server shortened it from 30s\n");
  holder.ReadErrUntil("confirmed, still held");
  proxy.Freeze();
  const auto last_heard = Clock::now();  // at the latest
  CHECK(holder.Wait() == Exited(76));
  CHECK(Clock::now() - last_heard < 12s);
}

TEST_CASE("an unconfirmed release names the timeout that the servers used last") {
  Regranted regranted(TestServers(), {8'000, 12'000});
  auto [lock, holder] = HoldNewLock(
      "longer", {"exclusive", "-v", "--session-timeout", "8s", "-z", regranted.proxy().address()});
  regranted.proxy().Cut();
  holder.ReadErrUntil("confirmed, still held");
  regranted.proxy().Freeze();
  holder.Write("0\n");
  CHECK(holder.Wait() == Exited(0));
  CHECK_THAT(holder.err(),
             Catch::Contains("it may stay held until the session ends, for about 12s\n"));
}

// The waiter's heartbeats prove nothing on the second server: the timeouts that it grants imply
// that the servers ping each other only every 3 s.
TEST_CASE("a waiter whose session is too short for another server queues again with a longer one") {
  const OwnServer servers(
      {"maxSessionTimeout=4000", "2:minSessionTimeout=12000", "2:maxSessionTimeout=40000"}, 2);
  const std::string both = servers.address();
  const std::size_t comma = both.find(',');
  const std::string second = both.substr(comma + 1);
  const std::string root = NewLock("lengthened");
  Child holder = StartHolder({"exclusive", "-z", second}, root + "/b");
  Regranted regranted(both.substr(0, comma));
  Child waiter = StartWaiter(
      {"exclusive", "--session-timeout", "4s", "-z", regranted.proxy().address(), root + "/a"},
      root + "/b");
  regranted.proxy().Redirect(second);
  regranted.CutUntilLeaseIsShort();
  const bool loses_closes = GENERATE(false, true);
  CAPTURE(loses_closes);
  regranted.proxy().LoseCloses(loses_closes);
  holder.CloseInput();
  waiter.ReadErrUntil("with a session of 12s\n");
  // The close of the first session is repeated, so that the second one need not wait for its end.
  regranted.proxy().LoseCloses(false);
  const auto can_close = Clock::now();
  CHECK(waiter.ReadLine() == "held");
  CHECK(Clock::now() - can_close < 7s);
  waiter.Write("5\n");
  CHECK(waiter.Wait() == Exited(5));
  Tree tree("", second);
  CHECK(tree.Children(root + "/a").empty());
  CHECK(tree.Children(root + "/b").empty());
}

// The waiter replaces its first session when the lock becomes free; by then, another contender is
// ahead of it.
TEST_CASE("--wait spans a session that is too short and the longer one that replaces it") {
  constexpr auto kWait = 15s;
  auto [lock, holder] = HoldNewLock("lengthened");
  Regranted regranted(TestServers(), {4'000, 12'000});
  Child waiter = StartWaiter(
      {"exclusive", "--wait", "15s", "--session-timeout", "4s", "-z", regranted.proxy().address()},
      lock);
  Child next = StartWaiter(lock);
  regranted.CutUntilLeaseIsShort();  // takes at least a quarter of 12 s
  const auto still_in_the_first = Clock::now();
  holder.CloseInput();
  waiter.ReadErrUntil("with a session of 12s\n");
  CHECK(next.ReadLine() == "held");
  CHECK(waiter.Wait() == Exited(75));
  CHECK(Clock::now() - still_in_the_first < kWait);
}

TEST_CASE("a lock is held under a shortened timeout, and released") {
  const std::string lock = NewLock("shortened");
  Shortener shortener;
  Child holder = StartHolder(
      {"exclusive", "-v", "--session-timeout", "30s", "-z", shortener.proxy().address()}, lock);
  shortener.Shorten();
  holder.ReadErrUntil("confirmed, still held");
  holder.Write("5\n");
  CHECK(holder.Wait() == Exited(5));
  CHECK(Tree().Children(lock).empty());
}

TEST_CASE("the owner of a lock is signalled before a shortened timeout is over") {
  Shortener shortener;
  ChildOptions options =
      With(Script(NewLock("shortened"),
                  "$Z exclusive --hold --session-timeout 30s $L || exit; echo held; read x"),
           {"ZKLOCK_SERVERS=" + shortener.proxy().address()});
  Child script = Child::Start(std::move(options));
  REQUIRE(script.ReadLine() == "held");
  shortener.Shorten();
  shortener.proxy().Freeze();
  const auto last_heard = Clock::now();
  CHECK(script.Wait() == Killed(SIGTERM));
  CHECK(Clock::now() - last_heard < 6s);
}

}  // namespace zklock::test
