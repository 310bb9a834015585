// Servers that answer what no server should, or at a pace that none should.

#include "support/hostile_server.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "cli/zklock.h"

namespace zklock::test {
namespace {

using namespace std::chrono_literals;

ChildOptions Through(const HostileServer& server, const Words& words,
                     const std::string& patience = "1s") {
  ChildOptions options = Zklock(words);
  options.also_environment = {"ZKLOCK_SERVERS=" + server.address(),
                              "ZKLOCK_CONNECT_TIMEOUT=" + patience};
  return options;
}

/// A watch event for `/a` (xid -1, zxid, error; type, state, path).
std::string WatchEvent() {
  using Server = HostileServer;
  return Server::Frame(Server::Number(-1) + Server::Number(-1) + Server::Number(-1) +
                       Server::Number(0) + Server::Number(3) + Server::Number(3) +
                       Server::Number(2) + "/a");
}

std::vector<Words> Subcommands() {
  return {{"exclusive", "/l", "--", "true"},   {"read", "/l", "--", "true"},
          {"write", "/l", "--", "true"},       {"try", "/l", "--", "true"},
          {"release", "--all", "--yes", "/l"}, {"inspect", "/l"}};
}

}  // namespace

TEST_CASE("a session is granted wherever the answer is cut in two, and byte by byte") {
  const std::string grant = HostileServer::Grant();
  const int cuts = static_cast<int>(grant.size());
  // The last one sends each byte by itself.
  const auto serve = [&](std::size_t cut) {
    return [&grant, cut](int socket, int) {
      if (!HostileServer::Receive(socket)) return;
      const std::size_t piece = cut < grant.size() ? cut : 1;
      for (std::size_t at = 0; at < grant.size();) {
        const std::size_t size = at == 0 || cut == grant.size() ? piece : grant.size() - at;
        if (!HostileServer::Send(socket, grant.substr(at, size))) return;
        at += size;
        std::this_thread::sleep_for(5ms);  // two segments, read one by one
      }
      while (HostileServer::Receive(socket)) {
      }
    };
  };
  std::vector<std::unique_ptr<HostileServer>> servers;
  std::vector<Child> all;
  for (int cut = 1; cut <= cuts; ++cut) {
    servers.push_back(std::make_unique<HostileServer>(serve(static_cast<std::size_t>(cut))));
    all.push_back(Child::Start(Through(*servers.back(), {"inspect", "/l"})));
  }
  for (int cut = 1; cut <= cuts; ++cut) {
    Child& one = all[static_cast<std::size_t>(cut - 1)];
    CAPTURE(cut);
    CHECK(one.Wait() == Exited(69));
    CAPTURE(one.err());
    CHECK_THAT(one.err(), Catch::Contains("grants a session, but does not answer"));
  }
}

TEST_CASE("a frame of an impossible length ends the connection, not zklock") {
  const int length = GENERATE(-5, INT32_MIN);
  const Words words = GENERATE(from_range(Subcommands()));
  CAPTURE(length, words);
  const HostileServer server([length](int socket, int) {
    if (!HostileServer::Receive(socket) || !HostileServer::Send(socket, HostileServer::Grant())) {
      return;
    }
    while (HostileServer::Receive(socket) &&
           HostileServer::Send(socket, HostileServer::Number(length) + std::string(50, 'x'))) {
    }
  });
  const Finished finished = Run(Through(server, words, "500ms"));
  CAPTURE(finished.err);
  CHECK(finished.exit == Exited(69));
}

TEST_CASE("a server that sends without end before it has answered to SASL is left") {
  const HostileServer server([](int socket, int) {
    std::string events;
    for (int i = 0; i < 1000; ++i) events += WatchEvent();
    if (!HostileServer::Receive(socket) || !HostileServer::Send(socket, HostileServer::Grant())) {
      return;
    }
    while (HostileServer::Send(socket, events)) {
    }
  });
  ChildOptions options = Through(server, {"try", "--sasl", "digest-md5", "/l", "--", "true"}, "2s");
  options.also_environment.emplace_back("ZKLOCK_AUTH=sasl:alice:tulip");
  const Finished finished = Run(options);
  CHECK(finished.exit == Exited(69));
  CHECK_THAT(finished.err, Catch::Contains("sends much, but no answer to SASL"));
}

TEST_CASE("a server that sends watch events without pause keeps no signal from ending zklock") {
  const Words words = GENERATE(from_range(Subcommands()));
  CAPTURE(words);
  const HostileServer server([](int socket, int) {
    std::string events;
    for (int i = 0; i < 1000; ++i) events += WatchEvent();
    if (!HostileServer::Receive(socket) || !HostileServer::Send(socket, HostileServer::Grant())) {
      return;
    }
    while (HostileServer::Send(socket, events)) {
    }
  });
  SECTION("TERM") {
    Child child = Child::Start(Through(server, words, "1h"));
    std::this_thread::sleep_for(300ms);  // it is in the flood
    child.Signal(SIGTERM);
    const Exit exit = child.Wait(10s);
    CHECK((exit == Exited(128 + SIGTERM) || exit == Killed(SIGTERM)));
  }
  SECTION("its own limit") {
    const Finished finished = Run(Through(server, words, "500ms"));
    CAPTURE(finished.err);
    CHECK(finished.exit == Exited(69));
  }
}

}  // namespace zklock::test
