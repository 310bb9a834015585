#pragma once

#include <string>

#include "cli/servers/servers_findings.h"

namespace zklock::test {

/// Returns three servers: a leader, a slow follower that grants shorter sessions, and one that
/// cannot be reached. A test can make the texts as long and as hostile as it wants.
inline cli::ServersReport UnfitServers(const std::string& reason = "Connection refused") {
  using namespace std::chrono_literals;
  using protocol::ServerRole;
  using protocol::WordEnd;
  cli::ServersReport report;
  report.root = "/zklock";
  report.facts.asked = 30s;
  report.facts.members = protocol::Members{.voters = {1, 2, 3}};
  report.facts.servers = {{.name = "zk1:2181",
                           .reached = true,
                           .role = ServerRole::kLeader,
                           .id = 1,
                           .connect = protocol::Spread{1200us, 3400us, 20},
                           .commit = protocol::Spread{800us, 5100us, 20},
                           .granted = 30s,
                           .clock = protocol::ClockOffset{12ms, 2ms},
                           .connections = 4,
                           .connection_limit = 60,
                           .srvr = WordEnd::kAnswered,
                           .conf = WordEnd::kAnswered,
                           .cons = WordEnd::kAnswered,
                           .same_ensemble = true},
                          {.name = "zk2:2181",
                           .reached = true,
                           .role = ServerRole::kFollower,
                           .id = 2,
                           .connect = protocol::Spread{2ms, 48ms, 20},
                           .commit = protocol::Spread{95ms, 1720ms, 20},
                           .granted = 12s,
                           .clock = protocol::ClockOffset{13ms, 48ms},
                           .srvr = WordEnd::kAnswered,
                           .conf = WordEnd::kClosed,
                           .cons = WordEnd::kClosed,
                           .same_ensemble = true},
                          {.name = "zk3:2181"}};
  report.texts = {{.address = "10.0.0.1:2181", .version = "3.8.0", .reason = ""},
                  {.address = "10.0.0.2:2181", .version = "3.8.0", .reason = ""},
                  {.address = "10.0.0.3:2181", .version = "", .reason = reason}};
  return report;
}

}  // namespace zklock::test
