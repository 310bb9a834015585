// A run, a hand-over and a loss with servers configured differently from the tests' shared ones.

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/messages/provocation.h"
#include "cli/zklock.h"
#include "support/own_server.h"
#include "support/peer.h"

namespace zklock::test {
namespace {

/// Settings of servers that scripts/zookeeper starts.
struct Configuration {
  std::string name;
  Words settings;
  int size = 1;
  Words options = {};  ///< for scripts/zookeeper
};

const std::vector<Configuration>& Configurations() {
  static const std::vector<Configuration> all = {
      {"throttled",
       {"request_throttle_max_requests=1", "throttled_op_wait_time=1",
        "request_throttle_stall_time=50"}},
      {"quotas enforced", {"enforceQuota=true"}},
      {"small jute.maxbuffer", {}, 1, {"--java", "-Djute.maxbuffer=1500"}},
      {"Netty", {"serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory"}},
      {"maxSessionTimeout below what is asked for", {"maxSessionTimeout=6000"}},
      {"observers", {}, 4, {"--observers", "1"}},
      {"local sessions", {"localSessionsEnabled=true", "localSessionsUpgradingEnabled=true"}, 3},
      {"read-only mode", {}, 3, {"--java", "-Dreadonlymode.enabled=true"}},
  };
  return all;
}

void RunAndHandOver(const std::string& servers) {
  const std::string lock = "/t/new/lock";
  CHECK(Run(ZklockAt(servers, {"exclusive", lock, "--", "echo", "ran"}), Exited(0)).out == "ran\n");

  Child holder = StartHolder({"exclusive", "-z", servers}, lock);
  Run(ZklockAt(servers, {"try", lock, "--", "true"}), Exited(75));
  Child waiter = StartWaiter({"exclusive", "-z", servers}, lock);
  CHECK(Finish(holder) == Exited(0));
  CHECK(waiter.ReadLine() == "held");
  CHECK(Finish(waiter) == Exited(0));
}

void LoseLock(const std::string& servers) {
  const std::string lock = "/t/lost";
  Child holder = StartHolder({"exclusive", "-z", servers}, lock);
  Run(ZklockAt(servers, {"release", "--all", "--force", "--yes", lock}), Exited(0));
  CHECK(holder.Wait() == Exited(76));
}

/// Runs every way of limiting a wait, in parallel, against a server that never creates the
/// contender. It is then unknown whether the LOCK is held, and `-E` must not hide that.
std::vector<Finished> NeverQueued(const std::string& servers, const Words& more) {
  std::vector<Child> children;
  for (Words words : std::vector<Words>{{"exclusive", "--wait", "1s"},
                                        {"exclusive", "--wait", "1s", "--also-write", "/t/other"},
                                        {"exclusive", "--wait", "1s", "--permits", "2"},
                                        {"exclusive", "--wait", "1s", "--hold"},
                                        {"exclusive", "--wait", "1s", "--dialect", "simple"},
                                        {"exclusive", "--nonblock"},
                                        {"try"}}) {
    const bool holds = words.back() == "--hold";
    words.insert(words.end(), {"-q", "-E", "7", "--connect-timeout", "8s", "/t/lock"});
    words.insert(words.end() - 1, more.begin(), more.end());
    if (!holds) words.insert(words.end(), {"--", "echo", "ran"});
    children.push_back(Child::Start(ZklockAt(servers, words)));
  }
  std::vector<Finished> all;
  for (Child& child : children) {
    const Exit exit = child.Wait();
    CHECK(exit == Exited(69));
    CHECK(child.out().empty());
    all.push_back({.exit = exit, .out = child.out(), .err = child.err()});
  }
  return all;
}

/// Returns the server's answer to a four-letter command.
std::string Ask(const std::string& server, const std::string& word) {
  const std::size_t colon = server.rfind(':');
  const std::string socket = "/dev/tcp/" + server.substr(0, colon) + "/" + server.substr(colon + 1);
  return Run({.argv = {"bash", "-c", "exec 3<>" + socket + "; printf " + word + " >&3; cat <&3"}})
      .out;
}

}  // namespace

TEST_CASE("commands run, hand over and end on servers of every configuration", "[slow]") {
  for (const Configuration& configuration : Configurations()) {
    CAPTURE(configuration.name);
    const OwnServer servers(configuration.settings, configuration.size, configuration.options);
    RunAndHandOver(servers.address());
    LoseLock(servers.address());
  }
}

TEST_CASE("the last run of a job is found on servers that throttle requests") {
  const OwnServer server(Configurations().front().settings);
  const Words job = {"exclusive", "--min-interval", "1h", "/t/job", "--", "echo", "ran"};
  CHECK(Run(ZklockAt(server.address(), job)).out == "ran\n");
  CHECK(Run(ZklockAt(server.address(), job), Exited(75)).out.empty());
}

TEST_CASE("a server that closes the connection on a large request is an error, not a conflict") {
  const OwnServer server({}, 1, {"--java", "-Djute.maxbuffer=1500"});
  const Proxy proxy(server.address());
  for (const Finished& finished : NeverQueued(proxy.address(), {"-l", std::string(2000, 'x')})) {
    CHECK_THAT(finished.err, Catch::Contains("jute.maxbuffer"));
  }
  // Each of the seven waits longer and longer, up to a second, before it connects again.
  CHECK(proxy.connections() < 200);
}

TEST_CASE("a server that grants a session and then hangs is an error, not a conflict") {
  Proxy proxy(TestServers());
  proxy.EditReplies([](const std::string& request, std::string reply) {
    return request == "connect" ? std::optional(std::move(reply)) : std::nullopt;
  });
  for (const Finished& finished : NeverQueued(proxy.address(), {})) {
    CHECK_THAT(finished.err, Catch::Contains("is it hung?"));
  }
}

TEST_CASE("servers that enforce authentication keep no session of a client without credentials") {
  const OwnServer server({"enforce.auth.enabled=true", "enforce.auth.schemes=digest"});
  for (const std::string credentials : {"", "nosuchscheme:x"}) {
    ChildOptions options = ZklockAt(server.address(), {"exclusive", "/t/lock", "--", "true"});
    if (!credentials.empty()) options.also_environment.push_back("ZKLOCK_AUTH=" + credentials);
    CAPTURE(credentials);
    const Finished finished = Run(options, Exited(77));
    CHECK_THAT(finished.err, Catch::Contains("--auth-file"));
    CHECK_THAT(Ask(server.address(), "dump"),
               Catch::Contains("Session Sets") && !Catch::Contains("\t0x"));
  }
}

}  // namespace zklock::test
