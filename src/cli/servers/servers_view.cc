#include "cli/servers/servers_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "cli/servers/servers_messages.h"
#include "cli/text/duration.h"
#include "cli/text/printable.h"
#include "cli/text/table.h"

namespace zklock::cli {
namespace {

using protocol::ServerFacts;
using protocol::Spread;

constexpr char kUnknown[] = "-";

/// Returns "0.8/3.1ms": the median and the worst, in the same unit.
std::string SpreadText(const std::optional<Spread>& spread) {
  if (!spread) return kUnknown;
  const auto milliseconds = [](Duration span) {
    return std::chrono::duration<double, std::milli>(span).count();
  };
  const double median = milliseconds(spread->median);
  const double worst = milliseconds(spread->worst);
  if (worst < 10) return fmt::format("{:.1f}/{:.1f}ms", median, worst);
  if (worst < 1000) return fmt::format("{:.0f}/{:.0f}ms", median, worst);
  return fmt::format("{:.1f}/{:.1f}s", median / 1000, worst / 1000);
}

/// Returns "+1.2s"; "±2ms" if no difference is proven.
std::string ClockCell(const std::optional<protocol::ClockOffset>& clock) {
  if (!clock) return kUnknown;
  const Duration off = std::chrono::abs(clock->offset);
  if (off <= clock->uncertainty) return "±" + FormatDuration(clock->uncertainty);
  return (clock->offset < Duration::zero() ? "-" : "+") + FormatDuration(off);
}

/// Returns "3/60": the connections and their limit.
std::string ConnectionsText(const ServerFacts& server) {
  if (!server.connections && !server.connection_limit) return kUnknown;
  std::string count = server.connections ? std::to_string(*server.connections) : std::string("?");
  if (!server.connection_limit) return count;
  const std::uint64_t limit = *server.connection_limit;
  return count + "/" + (limit == 0 ? std::string("∞") : std::to_string(limit));
}

Cell RoleCell(const ServerFacts& server) {
  const std::string role(RoleName(server.role));
  if (server.reached) return {role.empty() ? kUnknown : role, Tone::kHeld};
  return {role.empty() ? "unreached" : role, Tone::kBad};
}

std::string TableText(const ServersReport& report, const ViewStyle& style) {
  const auto& servers = report.facts.servers;
  bool has_names = false;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    has_names = has_names || servers[i].name != report.texts[i].address;
  }
  // On a narrow terminal, the columns that matter least are dropped first.
  std::vector<Column> columns = {{.title = "SERVER", .least = 12}};
  if (has_names) columns.push_back({.title = "ADDRESS", .dispensable = 7});
  columns.insert(columns.end(), {{.title = "ROLE"},
                                 {.title = "VERSION", .dispensable = 6},
                                 {.title = "SESSION", .dispensable = 1},
                                 {.title = "CONNECT", .dispensable = 3},
                                 {.title = "COMMIT", .dispensable = 2},
                                 {.title = "CLOCK", .dispensable = 4},
                                 {.title = "CONNS", .dispensable = 5}});
  Table table(std::move(columns), style.width, style.colours);
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const ServerFacts& server = servers[i];
    const std::string& version = report.texts[i].version;
    std::vector<Cell> cells = {server.name};
    if (has_names) cells.emplace_back(report.texts[i].address);
    cells.insert(cells.end(),
                 {RoleCell(server), version.empty() ? std::string(kUnknown) : version,
                  server.granted ? FormatDuration(*server.granted) : std::string(kUnknown),
                  SpreadText(server.connect), SpreadText(server.commit), ClockCell(server.clock),
                  ConnectionsText(server)});
    table.AddRow(std::move(cells));
  }
  return table.TakePage();
}

/// Returns `text` after `label`, wrapped at spaces to fit the width of the terminal; later lines
/// are indented to the start of the text.
std::string Paragraph(std::string_view label, Tone tone, std::string_view text,
                      const ViewStyle& style) {
  const std::size_t indent = label.empty() ? 0 : label.size() + 2;
  std::string result = label.empty() ? "" : Paint(tone, label, style.colours) + ": ";
  std::size_t at = indent;
  for (bool first = true; !text.empty(); first = false) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const std::size_t size = DisplayWidth(word);
    if (!first && style.width != 0 && at + 1 + size > style.width) {
      result += "\n" + std::string(indent, ' ');
      at = indent;
    } else if (!first) {
      result += ' ';
      ++at;
    }
    result += word;
    at += size;
  }
  return result + "\n";
}

// Keeps the order of the manual page.
using nlohmann::ordered_json;

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

std::string ServersReportText(const ServersReport& report, const ViewStyle& style) {
  std::string text = TableText(report, style) + "\n";
  bool fixes = false;
  for (const protocol::Finding& finding : protocol::Judge(report.facts)) {
    const bool fix = protocol::ShouldBeFixed(finding.kind);
    if (!fix && !fixes && text.ends_with("\n\n")) {
      text += Paragraph("", Tone::kPlain, message::kNothingToFix, style);
    }
    fixes = fixes || fix;
    text += Paragraph(fix ? "fix" : "note", fix ? Tone::kBad : Tone::kFaint,
                      FindingText(finding, report), style);
  }
  if (text.ends_with("\n\n")) text += Paragraph("", Tone::kPlain, message::kNothingToFix, style);
  const std::string without = WithoutServersText(report);
  if (!without.empty()) text += "\n" + Paragraph("", Tone::kPlain, without, style);
  return text;
}

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
