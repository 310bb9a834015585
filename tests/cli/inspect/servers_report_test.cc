// `inspect --servers-report` against real servers, healthy and faulty.

#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "cli/inspect/inspect_output.h"
#include "cli/names.h"
#include "cli/servers/secure_servers.h"
#include "cli/skewed_clock.h"
#include "cli/zklock.h"
#include "support/hostile_server.h"
#include "support/kept_port.h"
#include "support/own_server.h"
#include "support/peer.h"

namespace zklock::test {
namespace {

using namespace std::chrono_literals;
using Catch::Contains;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

// With these, a busy host is not reported as unreachable, or as too slow for the heartbeats, which
// are due every 5 s.
const Words kPatient = {"--session-timeout", "40s", "--connect-timeout", "60s"};
// Visiting a server may take most of the --connect-timeout, and each comparison with another server
// all of it.
constexpr auto kReportPatience = 3 * kPatience;

ChildOptions Report(const std::string& servers, const Words& more = {}) {
  return Zklock(Joined({"inspect", "--servers-report", "-z", servers}, Joined(kPatient, more)));
}

/// Returns the report as JSON, checked against the manual page.
json ReadReport(const Finished& finished) {
  CAPTURE(finished.err);
  CheckSchema(finished.out, {"--servers-report"});
  return json::parse(finished.out);
}

json JsonReport(const std::string& servers, int status, const Words& more = {}) {
  const Finished finished = Run(Report(servers, Joined({"--json"}, more)), kReportPatience);
  CAPTURE(finished.out, finished.err);
  CHECK(finished.exit == Exited(status));
  return ReadReport(finished);
}

/// Returns the finding of this kind; null if there is none.
json FindingOf(const json& report, const std::string& kind) {
  for (const json& finding : report["findings"]) {
    if (finding["kind"] == kind) return finding;
  }
  return nullptr;
}

/// Returns the addresses of "HOST:PORT,HOST:PORT".
Words Split(const std::string& servers) {
  Words addresses;
  for (std::size_t begin = 0; begin < servers.size();) {
    const std::size_t end = std::min(servers.find(',', begin), servers.size());
    addresses.push_back(servers.substr(begin, end - begin));
    begin = end + 1;
  }
  return addresses;
}

/// Checks that nothing is left: no new znode and no session.
void CheckNothingLeft(const std::string& servers) {
  Tree tree("", servers);
  for (const std::string& child : tree.Children("/")) {
    CAPTURE(child);
    CHECK_FALSE(child.starts_with("zklock-clock-"));
  }
}

const Words kAllWords = {"4lw.commands.whitelist=*"};

}  // namespace

TEST_CASE("the report on a sound ensemble says to fix nothing, and leaves no znode behind") {
  const OwnServer servers(Joined(kAllWords, {"maxClientCnxns=60"}), 3);
  const json report = JsonReport(servers.address(), 0);
  REQUIRE(report["servers"].size() == 3);
  int leaders = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const json& server = report["servers"][i];
    CAPTURE(server.dump());
    CHECK(server["server"] == Split(servers.address())[i]);
    CHECK(server["address"] == server["server"]);
    CHECK(server["version"].get<std::string>().starts_with("3."));
    CHECK(server["id"] == i + 1);
    CHECK(server["sessionTimeout"] == 40);
    CHECK(server["connect"]["count"] == 20);
    CHECK(server["commit"]["count"] == 20);
    CHECK(server["connectionLimit"] == 60);
    CHECK(server["connections"] >= 1);
    CHECK(server["sameEnsemble"] == true);
    // All servers are on one host: the offset is at most the uncertainty.
    CHECK(std::abs(server["clock"]["offset"].get<double>()) <=
          server["clock"]["uncertainty"].get<double>() + 0.05);
    if (server["role"] == "leader") ++leaders;
  }
  CHECK(leaders == 1);
  for (const json& finding : report["findings"]) CHECK(finding["fix"] == false);
  // Usually at most half of the session timeout, never more than all of it: see zklock-protocol(7).
  CHECK(report["withoutServers"]["usualToStop"] < 20);
  CHECK(report["withoutServers"]["leastToStop"] > 5);
  CHECK(report["withoutServers"]["mostToEnd"] < 40);
  CheckNothingLeft(servers.address());

  const Finished text = Run(Report(servers.address()));
  CHECK(text.exit == Exited(0));
  CHECK(text.err.empty());
  CHECK_THAT(text.out, Contains("leader") && Contains("nothing to fix") &&
                           Contains("without a server, a command gets its stop signal after "));
  const Finished quiet = Run(Report(servers.address(), {"--quiet"}));
  CHECK(quiet.exit == Exited(0));
  CHECK(quiet.out.empty());
  CHECK(quiet.err.empty());
}

TEST_CASE("different granted timeouts, a stopped server and disabled words are reported") {
  const OwnServer servers(
      {"2:maxSessionTimeout=12000", "1:4lw.commands.whitelist=*", "2:4lw.commands.whitelist=srvr"},
      2);
  const KeptPort stopped;
  const std::string list = servers.address() + "," + stopped.address();
  const json report = JsonReport(list, 1);
  const std::string second = Split(servers.address())[1];
  const json grants = FindingOf(report, "differentGrants");
  REQUIRE_FALSE(grants.is_null());
  CHECK(grants["servers"] == json::array({second}));
  CHECK(report["servers"][1]["sessionTimeout"] == 12);
  const json closed = FindingOf(report, "wordsClosed");
  REQUIRE_FALSE(closed.is_null());
  CHECK(closed["servers"] == json::array({second}));
  CHECK(report["servers"][1]["role"].is_string());
  CHECK(report["servers"][1]["connectionLimit"].is_null());
  CHECK(report["servers"][2]["reason"] == "Connection refused");
  CHECK(FindingOf(report, "unreached")["servers"] == json::array({stopped.address()}));
  CHECK(FindingOf(report, "evenMembers")["fix"] == true);
  const Finished text = Run(Report(list));
  CHECK(text.exit == Exited(1));
  CHECK_THAT(
      text.out,
      Contains("fix: " + stopped.address() + " cannot be reached: Connection refused") &&
          Contains("note: cannot determine the connections and connection limit of " + second));
}

TEST_CASE(
    "the report ends in time, and calls a server behind a slow line too slow for heartbeats") {
  // A heartbeat is due every 500 ms at the shortest timeout that zklock accepts. Over the slower
  // line, the time runs out before many requests are answered.
  for (const std::chrono::milliseconds way : {300ms, 600ms}) {
    Proxy proxy(TestServers());
    proxy.Delay(way);
    const Finished finished =
        Run(Zklock({"inspect", "--servers-report", "--json", "-z", proxy.address(),
                    "--session-timeout", "4s", "--connect-timeout", "8s"}));
    CAPTURE(way.count(), finished.out, finished.err);
    CHECK(finished.exit == Exited(1));
    const json report = ReadReport(finished);
    const json& commit = report["servers"][0]["commit"];
    CHECK(commit["median"] >= 2 * std::chrono::duration<double>(way).count());
    CHECK(commit["count"] < 20);  // the time ran out
    CHECK(FindingOf(report, "tooSlow")["fix"] == true);
    // The uncertainty grows with the round trip, so no clock is proven to be off.
    const json& clock = report["servers"][0]["clock"];
    CHECK(((way == 600ms && clock.is_null()) || clock["uncertainty"] >= 0.3));
    CHECK(FindingOf(report, "clockOff").is_null());
  }
}

TEST_CASE("a clock that is hours ahead or behind is detected") {
  for (const int skew : {7200, -7200}) {
    const Finished finished =
        Run(WithSkewedClock(Report(TestServers(), {"--json"}), std::to_string(skew)));
    CAPTURE(finished.out, finished.err);
    CHECK(finished.exit == Exited(1));
    const json report = ReadReport(finished);
    CHECK(report["servers"][0]["clock"]["offset"].get<double>() == Approx(-skew).margin(60));
    CHECK_THAT(FindingOf(report, "clockOff")["text"].get<std::string>(),
               Contains(skew > 0 ? "2h behind" : "2h ahead"));
  }
}

TEST_CASE("the report recognises servers of two ensembles, and one server with two names") {
  const OwnServer one({});
  const OwnServer other({});
  const std::string port = one.address().substr(one.address().find(':'));
  const json report = JsonReport(one.address() + "," + other.address(), 1);
  CHECK(FindingOf(report, "otherEnsemble")["servers"] == json::array({other.address()}));
  CHECK(FindingOf(report, "sameServer").is_null());
  const json twice = JsonReport(one.address() + ",localhost" + port, 1);
  CHECK(FindingOf(twice, "otherEnsemble").is_null());
  REQUIRE_FALSE(FindingOf(twice, "sameServer").is_null());
  CHECK(FindingOf(twice, "sameServer")["servers"].size() >= 2);
}

TEST_CASE("the report finds a server that the newest configuration no longer contains") {
  const OwnServer servers({}, 3);
  const Words addresses = Split(servers.address());
  Proxy proxy(addresses[1]);
  // As if the third server had been replaced: it serves clients, but has an older configuration.
  proxy.EditReplies([](const std::string& request, std::string reply) {
    if (request == "get /zookeeper/config") {
      const std::size_t member = reply.find("server.3=");
      const std::size_t version = reply.find("version=0");
      if (member != std::string::npos) reply[member + 7] = '4';
      if (version != std::string::npos) reply[version + 8] = '1';
    }
    return std::optional(std::move(reply));
  });
  const json report = JsonReport(addresses[2] + "," + proxy.address() + "," + addresses[0], 1);
  CAPTURE(report.dump());
  const json stranger = FindingOf(report, "notMember");
  REQUIRE_FALSE(stranger.is_null());
  CHECK(stranger["fix"] == true);
  CHECK(stranger["servers"] == json::array({addresses[2]}));
}

TEST_CASE("the report says to fix a ZooKeeper that is too old for zklock") {
  HostileServer server([](int socket, int) {
    std::array<char, 4> word{};
    if (recv(socket, word.data(), word.size(), MSG_WAITALL) != 4) return;
    if (std::string_view(word.data(), 4) != "srvr") return;
    HostileServer::Send(socket, "Zookeeper version: 3.4.14-1\nMode: standalone\n");
  });
  const json report = JsonReport(server.address(), 69);
  CAPTURE(report.dump());
  CHECK(FindingOf(report, "oldVersion")["fix"] == true);
}

TEST_CASE("the report lists servers in any order, and does not take an observer for a voter") {
  const OwnServer servers(kAllWords, 4, {"--observers", "1"});
  const Words addresses = Split(servers.address());
  // The servers are listed in reverse order.
  const json report =
      JsonReport(addresses[3] + "," + addresses[2] + "," + addresses[1] + "," + addresses[0], 0);
  CHECK(report["servers"][0]["role"] == "observer");
  CHECK(report["servers"][3]["id"] == 1);
  CHECK(FindingOf(report, "evenMembers").is_null());
  CHECK(FindingOf(report, "otherEnsemble").is_null());
}

TEST_CASE("a server that has lost its quorum is reported as such, not as unreachable") {
  const OwnServer servers({}, 3);
  const std::string first = Split(servers.address())[0];
  servers.Stop(2);
  servers.Stop(3);
  json report;
  // The server notices after a few ticks.
  const auto deadline = Clock::now() + kPatience;
  do {
    const Finished finished = Run(Report(first, {"--json", "--connect-timeout", "1s"}));
    report = ReadReport(finished);
  } while (report["servers"][0]["role"] != "no quorum" && Clock::now() < deadline);
  CAPTURE(report.dump());
  CHECK(report["servers"][0]["reached"] == false);
  CHECK_FALSE(FindingOf(report, "noQuorum").is_null());
  CHECK(FindingOf(report, "unreached").is_null());
}

TEST_CASE(
    "without permission to create znodes the report measures the rest and says what is missing") {
  const OwnServer server({});
  Tree tree("admin:x", server.address());
  tree.SetAcl("/", {{"", kRead}, {"admin:x", 31}});
  const json report = JsonReport(server.address(), 0);
  CHECK(report["servers"][0]["clock"].is_null());
  CHECK(report["servers"][0]["commit"]["count"] == 20);
  CHECK_FALSE(FindingOf(report, "clockUnknown").is_null());
  // A local session, which no transaction has made global, proves nothing to another server.
  const std::string port = server.address().substr(server.address().find(':'));
  const json twice = JsonReport(server.address() + ",localhost" + port, 0);
  CHECK(twice["servers"][1]["sameEnsemble"].is_null());
  CHECK_FALSE(FindingOf(twice, "notCompared").is_null());
  // With the right credentials, no permission is missing. Permission to create znodes below --root
  // is also enough.
  ChildOptions as_admin = Report(server.address(), {"--json"});
  as_admin.also_environment.push_back("ZKLOCK_AUTH=digest:admin:x");
  const Finished admin = Run(as_admin);
  CHECK(ReadReport(admin)["servers"][0]["clock"].is_object());
  tree.Create("/zklock");
  const json below = JsonReport(server.address(), 0);
  CHECK(below["servers"][0]["clock"].is_object());
  CHECK(tree.Children("/zklock").empty());
  // Without even READ permission, the check is refused, but committed all the same.
  tree.SetAcl("/", {{"admin:x", 31}});
  CHECK(JsonReport(server.address(), 0)["servers"][0]["commit"]["count"] == 20);
}

TEST_CASE("the report leaves no znode, whenever it is killed") {
  const OwnServer server({});
  Tree tree("", server.address());
  for (const auto& [signal, pause] : {std::pair{SIGKILL, 30ms}, std::pair{SIGKILL, 120ms},
                                      std::pair{SIGINT, 60ms}, std::pair{SIGTERM, 200ms}}) {
    Child child = Child::Start(Report(server.address()));
    std::this_thread::sleep_for(pause);
    child.Signal(signal);
    const Exit exit = child.Wait();
    CHECK((exit == Killed(signal) || exit == Exited(128 + signal) || exit == Exited(0)));
    CheckNothingLeft(server.address());
  }
  CHECK(tree.Children("/") == Words{"zookeeper"});
}

TEST_CASE("the report says to fix a chroot that does not exist, and creates no znode for it") {
  const OwnServer server({});
  const std::string address = server.address() + "/no/where";
  const json report = JsonReport(address, 1);
  CHECK(report["servers"][0]["commit"]["count"] == 20);
  CHECK(report["findings"][0]["kind"] == "noChroot");
  // The clock was read all the same, and the report does not mention permissions.
  CHECK(report["servers"][0]["clock"].is_object());
  CHECK_THAT(report["findings"].dump(), !Catch::Contains("clockUnknown"));
  CHECK_THAT(Run(Report(address)).out,
             Catch::Contains("fix: the chroot /no/where does not exist: correct --servers, or "));
  Tree tree("", server.address());
  CHECK_FALSE(tree.Exists("/no"));
  (void)tree.Create("/no");
  (void)tree.Create("/no/where");
  CHECK_THAT(JsonReport(address, 0)["findings"].dump(), !Catch::Contains("noChroot"));
}

TEST_CASE("a late answer to a four-letter word is used if --connect-timeout leaves time for it") {
  ChildOptions options;
  options.argv = {"/usr/bin/python3", "-c", R"(
import socket, threading, time
listener = socket.create_server(("127.0.0.1", 0))
print("127.0.0.1:%d" % listener.getsockname()[1], flush=True)
def answer(connection):
    with connection:
        if connection.recv(4) == b"srvr":
            time.sleep(4)
            connection.sendall(b"Zookeeper version: 3.8.0-1\nMode: standalone\n")
while True:
    threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()
)"};
  Child slow = Child::Start(std::move(options));
  const json report = JsonReport(slow.ReadLine(), 69);
  CHECK(report["servers"][0]["role"] == "standalone");
}

TEST_CASE("the report ends in time, with status 69, although a server sends garbage without end") {
  ChildOptions options;
  options.argv = {"/usr/bin/python3", "-c", R"(
import socket, threading
listener = socket.create_server(("127.0.0.1", 0))
print("127.0.0.1:%d" % listener.getsockname()[1], flush=True)
def flood(connection):
    try:
        while True:
            connection.sendall(b"\x1b[31m\x07\n" * 512)
    except OSError:
        pass
while True:
    threading.Thread(target=flood, args=(listener.accept()[0],), daemon=True).start()
)"};
  Child flood = Child::Start(std::move(options));
  const std::string address = flood.ReadLine();
  const auto began = Clock::now();
  const Finished finished = Run(Report(address, {"--json", "--connect-timeout", "4s"}));
  CHECK(finished.exit == Exited(69));
  CHECK(Clock::now() - began < kPatience);
  const json report = ReadReport(finished);
  CHECK(report["servers"][0]["reached"] == false);
  CHECK(report["servers"][0]["role"].is_null());
  CHECK_THAT(finished.err, Contains("no server was reached"));
}

TEST_CASE(
    "without a server the report exits with 69 within --connect-timeout, and prints the reasons") {
  const KeptPort closed;
  const Finished finished =
      Run(Report(closed.address() + ",nowhere.invalid:2181,[::1]:" + closed.number(),
                 {"--connect-timeout", "5s"}));
  CHECK(finished.exit == Exited(69));
  CHECK(finished.err == "zklock: no server was reached\n");
  CHECK_THAT(finished.out,
             Contains("fix: " + closed.address() + " cannot be reached: Connection refused") &&
                 Contains("fix: nowhere.invalid:2181 cannot be reached: ") &&
                 Contains("[::1]:" + closed.number()) && !Contains("without a server"));
}

TEST_CASE("a name that is never resolved leaves time for the other servers") {
  const Names names;
  names.SetSlow("slow");
  names.Set("quick", "127.0.0.1");
  const std::string address = TestServers();
  const std::string quick = "quick" + address.substr(address.find(':'));
  const Finished finished =
      Run(names.Use(Report("slow:2181," + quick, {"--json", "--connect-timeout", "8s"})));
  CAPTURE(finished.out, finished.err);
  CHECK(finished.exit == Exited(1));
  const json report = ReadReport(finished);
  CHECK(report["servers"][0]["server"] == "slow:2181");
  CHECK_THAT(report["servers"][0]["reason"].get<std::string>(), Contains("still being looked up"));
  CHECK(report["servers"][1]["server"] == quick);
  CHECK(report["servers"][1]["address"] == address);
  CHECK(report["servers"][1]["reached"] == true);
}

TEST_CASE("the report uses TLS and a proxy command, even for four-letter words") {
  const Certificates certificates;
  const TlsServer server(certificates, "none", kAllWords);
  const json secure = JsonReport(server.address(), 0, certificates.Ca());
  CHECK(secure["servers"][0]["role"] == "standalone");
  CHECK(secure["servers"][0]["connect"]["count"] == 20);
  CHECK(secure["servers"][0]["connectionLimit"].is_number());
  CHECK(secure["servers"][0]["connections"].is_null());
  // Without the CA certificate, zklock does not trust the server's certificate.
  const json refused = JsonReport(server.address(), 69, {"--tls"});
  CHECK_THAT(refused["servers"][0]["reason"].get<std::string>(), Contains("certificate"));
  const json proxied = JsonReport(server.plain(), 0, {"--proxy-command", "exec socat - TCP:%h:%p"});
  CHECK(proxied["servers"][0]["role"] == "standalone");
  CHECK(proxied["servers"][0]["connect"]["count"] == 1);
  CHECK(proxied["servers"][0]["commit"]["count"] == 20);
}

TEST_CASE("refused credentials are reported as the reason, with status 77") {
  const SaslUsers users;
  const OwnServer server(kSaslRequired, 1, users.Options());
  const Finished alice = Run(AsAlice(Report(server.address(), {"--json"})), kReportPatience);
  CAPTURE(alice.err);
  CHECK(alice.exit == Exited(0));
  // Four-letter words need no authentication.
  CHECK(ReadReport(alice)["servers"][0]["role"] == "standalone");
  const Finished wrong =
      Run(AsAlice(Report(server.address(), {"--json"}), "rose"), kReportPatience);
  CHECK(wrong.exit == Exited(77));
  CHECK(ReadReport(wrong)["servers"][0]["reached"] == false);
}

TEST_CASE("the report fits the terminal, with colours and without") {
  const KeptPort closed;
  for (const int columns : {40, 80}) {
    ChildOptions options = Report(TestServers() + "," + closed.address());
    options.also_environment.push_back("TERM=xterm");
    options.also_environment.push_back("COLUMNS=" + std::to_string(columns));
    const Finished piped = Run(options);
    CHECK(piped.out.find('\x1b') == std::string::npos);
    for (const std::string& line : Lines(piped.out)) {
      CAPTURE(line);
      // ± and … take more than one byte.
      CHECK(line.size() <= static_cast<std::size_t>(columns) + 8);
    }
    Child child = Child::StartOnTerminal(options);
    CHECK(child.Wait() == Exited(1));
    child.ReadToEnd();
    CHECK_THAT(child.out(), Contains("\x1b[31munreached\x1b[0m") && Contains("\x1b[31mfix\x1b[0m"));
  }
}

}  // namespace zklock::test
