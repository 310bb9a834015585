// Failures of servers, of connections and of zklock itself while a command runs.

#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/zklock.h"
#include "support/peer.h"

namespace zklock::test {
namespace {

using namespace std::chrono_literals;

std::string Joined(const std::vector<std::string>& servers) {
  std::string text;
  for (const std::string& server : servers) text += (text.empty() ? "" : ",") + server;
  return text;
}

/// The one of two uncut proxies that a client is connected to.
Proxy& Used(Proxy& first, Proxy& second) { return first.connections() > 0 ? first : second; }

std::size_t Count(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("with --on-lost warn a lost lock is reported once, and the command runs to its end") {
  const std::string lock = NewLock("warn");
  Proxy proxy(TestServers());
  const auto hold = [&](const std::string& timeout) {
    return StartHolder(
        {"exclusive", "--on-lost", "warn", "--session-timeout", timeout, "-z", proxy.address()},
        lock);
  };
  std::optional<Child> holder;
  std::string reason;
  SECTION("by deleting the contender") {
    reason = "is lost (our contender was deleted)";
    holder = hold("40s");  // so that no slow answer ends the lease first
    Tree tree;
    tree.Delete(lock + "/" + tree.Children(lock).front());
  }
  SECTION("because no server can be reached") {
    reason = "is lost (no server confirmed it in time)";
    holder = hold("4s");
    proxy.Freeze();
  }
  SECTION("because the session has expired") {
    reason = "is lost (";
    holder = hold("4s");
    holder->Signal(SIGSTOP);
    holder->WaitUntilStopped();
    Tree().WaitForChildren(lock, 0);
    holder->Signal(SIGCONT);
  }
  holder->ReadErrUntil("zklock: " + lock + " " + reason);
  holder->ReadErrUntil(": the command continues, and others may run too (--on-lost warn)\n");
  Child next = StartHolder(lock);  // the servers have given the lock away
  CHECK_FALSE(holder->HasEnded());
  holder->Write("3\n");
  CHECK(holder->Wait() == Exited(76));
  CHECK(Count(holder->err(), "--on-lost warn") == 1);
  CHECK_FALSE(next.HasEnded());
}

TEST_CASE("a half-open connection costs nothing while another server answers") {
  const std::string lock = NewLock("half");
  const BlackHole hole;
  Proxy first(TestServers());
  Proxy second(TestServers());
  Child holder = StartHolder({"exclusive", "-v", "-k", "1s", "--session-timeout", "20s", "-z",
                              Joined({first.address(), hole.address(), second.address()})},
                             lock);
  Used(first, second).Freeze();
  holder.ReadErrUntil("the server does not answer");
  holder.ReadErrUntil(lock + ": confirmed, still held");
  holder.Write("5\n");
  CHECK(holder.Wait() == Exited(5));
  CHECK(Tree().Children(lock).empty());
}

TEST_CASE("when zklock is killed, a silent server does not delay the next holder") {
  const std::string lock = NewLock("killed");
  Proxy first(TestServers());
  Proxy second(TestServers());
  const Peer silent(Peer::Manner::kSaysNothing);
  Child holder = StartHolder({"exclusive", "--session-timeout", "40s", "--connect-timeout", "60s",
                              "-z", Joined({first.address(), second.address(), silent.address()})},
                             lock);
  Child next = StartWaiter(lock);
  Used(first, second).Freeze();
  holder.Signal(SIGKILL);
  CHECK(next.ReadLine(12s) == "held");  // less than a third of the time-out
}

}  // namespace zklock::test
