#include "cli/servers/servers_json.h"

#include <chrono>
#include <nlohmann/json.hpp>

namespace zklock::cli {
namespace {

// Keeps the order of the manual page.
using nlohmann::ordered_json;
using protocol::ServerFacts;

double Seconds(Duration span) { return std::chrono::duration<double>(span).count(); }

template <typename T>
ordered_json OrNull(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json TextOrNull(std::string_view text) {
  return text.empty() ? ordered_json(nullptr) : ordered_json(text);
}

ordered_json SpreadJson(const std::optional<protocol::Spread>& spread) {
  if (!spread) return nullptr;
  ordered_json json;
  json["median"] = Seconds(spread->median);
  json["worst"] = Seconds(spread->worst);
  json["count"] = spread->count;
  return json;
}

ordered_json ClockJson(const std::optional<protocol::ClockOffset>& clock) {
  if (!clock) return nullptr;
  ordered_json json;
  json["offset"] = Seconds(clock->offset);
  json["uncertainty"] = Seconds(clock->uncertainty);
  return json;
}

ordered_json ServerJson(const ServerFacts& server, const ServerTexts& texts) {
  ordered_json json;
  json["server"] = server.name;
  json["address"] = texts.address;
  json["reached"] = server.reached;
  json["reason"] = server.reached ? ordered_json(nullptr) : TextOrNull(texts.reason);
  json["role"] = TextOrNull(RoleName(server.role));
  json["version"] = TextOrNull(texts.version);
  json["id"] = OrNull(server.id);
  json["sessionTimeout"] =
      server.granted ? ordered_json(Seconds(*server.granted)) : ordered_json(nullptr);
  json["connect"] = SpreadJson(server.connect);
  json["commit"] = SpreadJson(server.commit);
  json["clock"] = ClockJson(server.clock);
  json["connections"] = OrNull(server.connections);
  json["connectionLimit"] = OrNull(server.connection_limit);
  json["sameEnsemble"] = OrNull(server.same_ensemble);
  return json;
}

ordered_json FindingJson(const protocol::Finding& finding, const ServersReport& report) {
  ordered_json json;
  json["kind"] = FindingName(finding.kind);
  json["fix"] = protocol::ShouldBeFixed(finding.kind);
  json["servers"] = ordered_json::array();
  for (const std::size_t place : finding.servers) {
    json["servers"].push_back(report.texts[place].address);
  }
  json["text"] = FindingText(finding, report);
  return json;
}

ordered_json WithoutServersJson(const ServersReport& report) {
  const auto times = WithoutServers(report);
  if (!times) return nullptr;
  ordered_json json;
  json["leastToStop"] = Seconds(times->least_to_stop);
  json["usualToStop"] = Seconds(times->usual_to_stop);
  json["mostToStop"] = Seconds(times->most_to_stop);
  json["mostToEnd"] = Seconds(times->most_to_end);
  return json;
}

}  // namespace

std::string ServersReportJson(const ServersReport& report) {
  ordered_json json;
  json["servers"] = ordered_json::array();
  for (std::size_t i = 0; i < report.facts.servers.size(); ++i) {
    json["servers"].push_back(ServerJson(report.facts.servers[i], report.texts[i]));
  }
  json["sessionTimeoutAsked"] = Seconds(report.facts.asked);
  json["withoutServers"] = WithoutServersJson(report);
  json["findings"] = ordered_json::array();
  for (const protocol::Finding& finding : protocol::Judge(report.facts)) {
    json["findings"].push_back(FindingJson(finding, report));
  }
  // ASCII only, since some terminals interpret control characters beyond ASCII.
  return json.dump(2, ' ', /*ensure_ascii=*/true, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace zklock::cli
