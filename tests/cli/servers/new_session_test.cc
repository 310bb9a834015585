// Servers that grant a new session to a client that reconnects, instead of an error, as ClickHouse
// Keeper does.

#include <catch2/catch.hpp>
#include <csignal>
#include <string>
#include <thread>

#include "cli/messages/provocation.h"
#include "cli/zklock.h"
#include "support/peer.h"
#include "support/process.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

using namespace std::chrono_literals;

/// `zklock exclusive MORE LOCK -- sh -c SCRIPT`, connected to a server that recognises no session
/// on a reconnect.
struct Forgetful {
  Forgetful() { proxy.ForgetSessions(); }

  [[nodiscard]] Child Start(const Words& more, const std::string& script) const {
    const Words words = Words{"exclusive", "--session-timeout", "6s"} + more;
    ChildOptions options = ZklockAt(proxy.address(), words + Words{lock, "--", "sh", "-c", script});
    options.keep_stdin = true;
    return Child::Start(std::move(options));
  }

  std::string lock = NewLock("forgetful");
  Proxy proxy{TestServers()};
};

}  // namespace

TEST_CASE("a new session instead of the old one is a lost lock, and the command ends") {
  Forgetful server;
  Child holder = server.Start({}, "echo begun; read line");
  REQUIRE(holder.ReadLine() == "begun");
  server.proxy.Cut();
  CHECK(holder.Wait() == Exited(76));
  CHECK_THAT(holder.err(), Catch::Contains("the servers ended the session"));
  Tree().WaitForChildren(server.lock, 0);
}

TEST_CASE("a waiter that gets a new session queues again, and runs when its turn comes") {
  Forgetful server;
  Child holder = StartHolder(server.lock);
  Child waiter = server.Start({"--verbose"}, "echo ran");
  waiter.ReadErrUntil("waiting for");
  server.proxy.Cut();
  waiter.ReadErrUntil("waiting for");
  CHECK(Finish(holder) == Exited(0));
  CHECK(waiter.Wait() == Exited(0));
  CHECK(waiter.out() == "ran\n");
  Tree().WaitForChildren(server.lock, 0);
}

TEST_CASE("on servers that forget sessions a lock whose zklock was killed expires") {
  Forgetful server;
  Child holder = server.Start({}, "echo $$; read line");
  const pid_t command = std::stoi(holder.ReadLine());
  holder.Signal(SIGKILL);
  CHECK(holder.Wait() == Killed(SIGKILL));
  server.proxy.WaitForConnections(2);
  CHECK_FALSE(IsAlive(command));
  // Within this time, the guard closes the new session, which does not own the contender.
  std::this_thread::sleep_for(1s);
  CHECK(Tree().Children(server.lock).size() == 1);
  Tree().WaitForChildren(server.lock, 0);
}

}  // namespace zklock::test
