// Failures of servers, connections and zklock itself while a command runs.

#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
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

/// Returns the proxy that a client is connected to. Neither may have been cut before.
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
    reason = ": our contender was deleted";
    holder = hold("40s");  // so that no slow answer ends the lease first
    Tree tree;
    tree.Delete(lock + "/" + tree.Children(lock).front());
  }
  SECTION("because no server can be reached") {
    reason = ": no server confirmed it for ";
    holder = hold("4s");
    proxy.Freeze();
  }
  SECTION("because the session has expired") {
    reason = ": ";
    holder = hold("4s");
    holder->Signal(SIGSTOP);
    holder->WaitUntilStopped();
    Tree().WaitForChildren(lock, 0);
    holder->Signal(SIGCONT);
  }
  holder->ReadErrUntil("zklock: lost " + lock + reason);
  holder->ReadErrUntil("; sh continues, and others may run too (--on-lost warn)\n");
  Child next = StartHolder(lock);  // the lock is now held by another contender
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

TEST_CASE("servers that hang leave time for one that answers, in every subcommand") {
  const Peer one(Peer::Manner::kSaysNothing);
  const Peer other(Peer::Manner::kSaysNothing);
  const std::string servers = Joined({one.address(), other.address(), TestServers()});
  const std::string lock = NewLock("hang");
  const Words proxied = {"--proxy-command", "exec socat - TCP:%h:%p"};
  std::vector<std::pair<Child, int>> children;
  // Twice, because zklock tries the servers in random order.
  for (int i = 0; i < 2; ++i) {
    const std::string own = lock + "/" + std::to_string(i);
    for (auto [words, status] :
         std::vector<std::pair<Words, int>>{{{"try", own, "--", "true"}, 0},
                                            {{"inspect", "--check", own}, 0},
                                            {{"inspect", "--check", own}, 0},
                                            {{"release", "--all", "--yes", own}, 75}}) {
      words.insert(words.begin() + 1,
                   {"--connect-timeout", "12s", "--session-timeout", "120s", "-z", servers});
      children.emplace_back(Child::Start(Zklock(words)), status);
      if (words.front() == "release") continue;
      words.insert(words.begin() + 1, proxied.begin(), proxied.end());
      if (words.front() == "inspect") children.emplace_back(Child::Start(Zklock(words)), status);
    }
  }
  for (auto& [child, status] : children) {
    const Exit exit = child.Wait();
    CAPTURE(child.err());
    CHECK(exit == Exited(status));
  }
}

TEST_CASE("a message names only the servers that were tried") {
  const auto grants_only = [](const std::string& request, std::string reply) {
    return request == "connect" ? std::optional(std::move(reply)) : std::nullopt;
  };
  Proxy first(TestServers());
  Proxy second(TestServers());
  first.EditReplies(grants_only);
  second.EditReplies(grants_only);
  for (Words words : std::vector<Words>{{"inspect", "/t/x"}, {"exclusive", "/t/x", "--", "true"}}) {
    const int before = first.connections();
    // --connect-timeout is shorter than the time that zklock gives a server to answer.
    words.insert(words.begin() + 1, {"--connect-timeout", "5s", "--session-timeout", "40s", "-z",
                                     Joined({first.address(), second.address()})});
    const Finished finished = RunZklock(words, Exited(69));
    const bool names_first = finished.err.find(first.address()) != std::string::npos;
    const bool names_second = finished.err.find(second.address()) != std::string::npos;
    CHECK(names_first != names_second);
    if (first.connections() == before) CHECK(names_second);
  }
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
  CHECK(next.ReadLine(12s) == "held");  // less than a third of the timeout
}

}  // namespace zklock::test
