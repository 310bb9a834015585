#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/servers/servers_view.h"
#include "unit/cli/fake_servers.h"

namespace zklock::cli {
namespace {

using namespace std::chrono_literals;
using Catch::Contains;
using nlohmann::json;

/// Returns a report on one server, which has no fault except those that a test adds.
ServersReport OneServer() {
  ServersReport report = test::UnfitServers();
  report.facts.servers.resize(1);
  report.texts.resize(1);
  report.facts.members = protocol::Members{.voters = {1}};
  return report;
}

std::string ReportText(const ServersReport& report) { return ServersReportText(report, {}); }

}  // namespace

TEST_CASE("The report has a row for each server, then what to fix, then what is worth knowing") {
  CHECK(ReportText(test::UnfitServers()) ==
        "SERVER    ADDRESS        ROLE       VERSION  SESSION  CONNECT    COMMIT     CLOCK  CONNS\n"
        "zk1:2181  10.0.0.1:2181  leader     3.8.0    30s      1.2/3.4ms  0.8/5.1ms  +12ms  4/60\n"
        "zk2:2181  10.0.0.2:2181  follower   3.8.0    12s      2/48ms     0.1/1.7s   ±48ms  -\n"
        "zk3:2181  10.0.0.3:2181  unreached  -        -        -          -          -      -\n"
        "\n"
        "fix: zk3:2181 cannot be reached: Connection refused\n"
        "fix: session timeouts differ: zk2:2181 grants 12s, others up to 30s: a reconnect to it "
        "shortens the lease; set the same minSessionTimeout and maxSessionTimeout\n"
        "fix: zk2:2181 took 1.7s for a commit, but heartbeats are due every 1.5s: raise "
        "--session-timeout, or find out what slows the server down\n"
        "note: cannot determine the connections and connection limit of zk2:2181: add cons and "
        "conf to 4lw.commands.whitelist\n"
        "\n"
        "without a server, a command gets its stop signal after 3.4s to 4.9s, or up to 9.5s if its "
        "lock is new, and KILL 2s later (session timeout 12s, --kill-after 5s)\n");
}

TEST_CASE("A report without a fault says so") {
  ServersReport report = OneServer();
  CHECK_THAT(ReportText(report), Contains("\n\nnothing to fix\nnote: a single server: "));
  report.facts.members = protocol::Members{.voters = {1}, .weighted = true};
  CHECK_THAT(ReportText(report), Contains("\n\nnothing to fix\n\nwithout a server, "));
}

TEST_CASE("A report on servers that cannot be reached has no time without servers") {
  ServersReport report = test::UnfitServers();
  report.facts.servers = {{.name = "zk3:2181"}};
  report.texts = {{.address = "zk3:2181", .version = "", .reason = "Name or service not known"}};
  const std::string text = ReportText(report);
  CHECK_THAT(text, Contains("fix: zk3:2181 cannot be reached: Name or service not known\n"));
  CHECK_THAT(text, !Contains("without a server") && !Contains("ADDRESS"));
  const json parsed = json::parse(ServersReportJson(report));
  CHECK(parsed["withoutServers"].is_null());
  CHECK(parsed["servers"][0]["reason"] == "Name or service not known");
}

TEST_CASE("Clocks, limits and slow times are shown with their units") {
  ServersReport report = OneServer();
  protocol::ServerFacts& server = report.facts.servers[0];
  server.clock = protocol::ClockOffset{-90s, 2ms};
  server.connection_limit = 0;
  server.commit = protocol::Spread{2s, 12s, 7};
  CHECK_THAT(ReportText(report), Contains("2.0/12.0s") && Contains("-1m30s") && Contains("4/∞"));
  CHECK_THAT(ReportText(report),
             Contains("fix: the servers' clock is 1m30s behind this host's (±2ms)"));
  server.clock = protocol::ClockOffset{90s, 2ms};
  CHECK_THAT(ReportText(report), Contains("fix: the servers' clock is 1m30s ahead of this host's"));
  server.connections.reset();
  CHECK_THAT(ReportText(report), Contains("?/∞"));
}

TEST_CASE("A long reason is shown with the remedy at its end") {
  const std::string reason = std::string(200, 'x') + ": is it up?";
  CHECK_THAT(ReportText(test::UnfitServers(reason)), Contains(reason));
}

TEST_CASE("Text written by other programs cannot break out of the report") {
  const ServersReport report = test::UnfitServers("\x1b[31mred\nfix: forged\x07\xff");
  for (const std::string& text : {ReportText(report), ServersReportJson(report)}) {
    CHECK(text.find('\x1b') == std::string::npos);
    CHECK(text.find('\x07') == std::string::npos);
    CHECK(text.find("\nfix: forged") == std::string::npos);
  }
  for (const unsigned char byte : ServersReportJson(report)) CHECK(byte < 0x80);
}

TEST_CASE("The JSON contains the same conclusions as the text") {
  const ServersReport report = test::UnfitServers();
  const json parsed = json::parse(ServersReportJson(report));
  CHECK(parsed["servers"].size() == 3);
  CHECK(parsed["servers"][0]["commit"]["worst"] == 0.0051);
  CHECK(parsed["servers"][1]["clock"]["offset"] == 0.013);
  CHECK(parsed["servers"][2]["reached"] == false);
  const std::string text = ReportText(report);
  for (const json& finding : parsed["findings"]) {
    const std::string line =
        (finding["fix"] == true ? "fix: " : "note: ") + finding["text"].get<std::string>() + "\n";
    CHECK_THAT(text, Contains(line));
  }
  CHECK(parsed["findings"][0]["kind"] == "unreached");
  CHECK(parsed["findings"][0]["servers"] == json::array({"10.0.0.3:2181"}));
}

}  // namespace zklock::cli
