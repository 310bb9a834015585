#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cli/duration.h"
#include "cli/option_table.h"
#include "cli/printable.h"
#include "cli/servers_messages.h"
#include "cli/servers_view.h"
#include "protocol/lease.h"

namespace zklock::cli {
namespace {

using Kind = protocol::Finding::Kind;
using protocol::ServerFacts;
using protocol::WordEnd;

// The width of a reason that another program wrote.
constexpr std::size_t kMostReason = 120;

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool is_last = i + 1 == words.size();
    text += (i == 0 ? "" : is_last ? " and " : ", ") + words[i];
  }
  return text;
}

/// The name, or name and address where one name has several.
std::string ServerName(const ServersReport& report, std::size_t place) {
  const auto& servers = report.facts.servers;
  const auto same_name =
      std::count_if(servers.begin(), servers.end(),
                    [&](const ServerFacts& other) { return other.name == servers[place].name; });
  std::string name = servers[place].name;
  const std::string& address = report.texts[place].address;
  if (same_name > 1 && address != name) name += " (" + address + ")";
  return Printable(name);
}

std::string ServerNames(const ServersReport& report, const std::vector<std::size_t>& places) {
  std::vector<std::string> names;
  names.reserve(places.size());
  for (const std::size_t place : places) names.push_back(ServerName(report, place));
  return Joined(names);
}

std::string Reason(const ServersReport& report, std::size_t place) {
  return Printable(report.texts[place].reason, kMostReason);
}

/// Of the finding that four-letter words of these servers ended so: what is therefore not known,
/// and which words these are.
std::string WordsText(fmt::format_string<std::string, std::string, std::string> text,
                      const ServersReport& report, const std::vector<std::size_t>& places,
                      WordEnd end) {
  std::vector<std::string> missing;
  std::vector<std::string> words;
  const auto add = [&](WordEnd ServerFacts::*fact, const char* word,
                       const std::vector<std::string>& shows) {
    const bool ends_so = std::any_of(places.begin(), places.end(), [&](std::size_t place) {
      return report.facts.servers[place].*fact == end;
    });
    if (!ends_so) return;
    missing.insert(missing.end(), shows.begin(), shows.end());
    words.emplace_back(word);
  };
  add(&ServerFacts::srvr, "srvr", {"role", "version"});
  add(&ServerFacts::cons, "cons", {"connections"});
  add(&ServerFacts::conf, "conf", {"connection limit"});
  return fmt::format(text, Joined(missing), ServerNames(report, places), Joined(words));
}

std::string ClockText(const protocol::Finding& finding, const ServersReport& report) {
  const auto& clock = report.facts.servers[finding.servers.front()].clock;
  const Duration uncertainty = clock ? clock->uncertainty : Duration::zero();
  const char* text = finding.most < Duration::zero() ? message::kClockBehind : message::kClockAhead;
  return fmt::format(fmt::runtime(text), FormatDuration(std::chrono::abs(finding.most)),
                     FormatDuration(uncertainty));
}

/// Of `exclusive`, since a report runs no command.
Duration DefaultKillAfter() {
  for (const OptionSpec& option : OptionTable()) {
    if (option.name == "kill-after") return ParseDuration(option.fallback).value_or(Duration{});
  }
  return {};
}

}  // namespace

std::string FindingText(const protocol::Finding& finding, const ServersReport& report) {
  const std::string names = ServerNames(report, finding.servers);
  const std::string least = FormatDuration(finding.least);
  const std::string most = FormatDuration(finding.most);
  switch (finding.kind) {
    case Kind::kUnreached:
      return fmt::format(message::kServerUnreached, names, Reason(report, finding.servers.front()));
    case Kind::kUnreachedAddress: {
      const std::size_t place = finding.servers.front();
      return fmt::format(message::kAddressUnreached, Printable(report.facts.servers[place].name),
                         Printable(report.texts[place].address), Reason(report, place));
    }
    case Kind::kOtherEnsemble: {
      const auto& servers = report.facts.servers;
      const auto first = std::find_if(servers.begin(), servers.end(), [](const ServerFacts& one) {
        return one.same_ensemble == true;
      });
      const auto place = static_cast<std::size_t>(first - servers.begin());
      return fmt::format(message::kOtherEnsemble, names,
                         first == servers.end() ? "?" : ServerName(report, place));
    }
    case Kind::kOldVersion:
      return fmt::format(message::kOldServer, names,
                         Printable(report.texts[finding.servers.front()].version));
    case Kind::kNotMember:
      return fmt::format(message::kNotMember, names);
    case Kind::kSameServer:
      return fmt::format(message::kSameServer, names);
    case Kind::kNoQuorum:
      return fmt::format(message::kServerNoQuorum, names);
    case Kind::kDifferentGrants:
      return fmt::format(message::kGrantsDiffer, names, least, most);
    case Kind::kUselessGrant:
      return fmt::format(message::kUselessGrant, names, least,
                         FormatDuration(protocol::kLeastSessionTimeout));
    case Kind::kTooSlow:
      return fmt::format(message::kCommitsTooSlow, names, most, least);
    case Kind::kEvenMembers:
      return fmt::format(message::kEvenMembers, finding.count, finding.count - 1);
    case Kind::kClockOff:
      return ClockText(finding, report);
    case Kind::kFewConnectionsLeft:
      return fmt::format(message::kFewConnectionsLeft, names, finding.count, finding.least_count);
    case Kind::kSlow:
      return fmt::format(message::kCommitsSlow, names, most, least);
    case Kind::kShortGrant:
      return fmt::format(message::kBriefGrant, names, least);
    case Kind::kGrantBelowAsked:
      return fmt::format(message::kGrantBelowAsked, most, least);
    case Kind::kEvenList:
      return fmt::format(message::kEvenList, finding.count, finding.count - 1);
    case Kind::kSingleServer:
      return message::kSingleServer;
    case Kind::kPartialList:
      return fmt::format(message::kPartialList, finding.least_count, finding.count);
    case Kind::kClockUnknown:
      return fmt::format(message::kClockUnknown, Printable(report.root));
    case Kind::kWordsClosed:
      return WordsText(message::kWordsClosed, report, finding.servers, WordEnd::kClosed);
    case Kind::kWordsUnusable:
      return WordsText(message::kWordsUnusable, report, finding.servers, WordEnd::kUnusable);
    case Kind::kNotCompared:
      break;
  }
  return fmt::format(message::kNotCompared, names);
}

std::optional<protocol::TimeWithoutServers> WithoutServers(const ServersReport& report) {
  const auto timeout = protocol::ShortestGrant(report.facts);
  if (!timeout) return std::nullopt;
  Duration round_trip{};
  for (const ServerFacts& server : report.facts.servers) {
    if (server.commit) round_trip = std::max(round_trip, server.commit->median);
  }
  return protocol::HowLongWithoutServers(*timeout, DefaultKillAfter(), round_trip);
}

std::string WithoutServersText(const ServersReport& report) {
  const auto times = WithoutServers(report);
  if (!times) return "";
  return fmt::format(
      message::kWithoutServers, FormatDuration(times->least_to_stop),
      FormatDuration(times->usual_to_stop), FormatDuration(times->most_to_stop),
      FormatDuration(times->most_to_end - times->most_to_stop),
      FormatDuration(protocol::ShortestGrant(report.facts).value_or(Duration::zero())),
      FormatDuration(DefaultKillAfter()));
}

std::string_view RoleName(protocol::ServerRole role) {
  switch (role) {
    case protocol::ServerRole::kLeader:
      return "leader";
    case protocol::ServerRole::kFollower:
      return "follower";
    case protocol::ServerRole::kObserver:
      return "observer";
    case protocol::ServerRole::kStandalone:
      return "standalone";
    case protocol::ServerRole::kReadOnly:
      return "read-only";
    case protocol::ServerRole::kNotServing:
      return "no quorum";
    case protocol::ServerRole::kUnknown:
      break;
  }
  return "";
}

std::string_view FindingName(Kind kind) {
  constexpr std::array<std::pair<Kind, std::string_view>, 23> kNames = {{
      {Kind::kUnreached, "unreached"},
      {Kind::kOldVersion, "oldVersion"},
      {Kind::kOtherEnsemble, "otherEnsemble"},
      {Kind::kNotMember, "notMember"},
      {Kind::kSameServer, "sameServer"},
      {Kind::kNoQuorum, "noQuorum"},
      {Kind::kDifferentGrants, "differentGrants"},
      {Kind::kUselessGrant, "uselessGrant"},
      {Kind::kTooSlow, "tooSlow"},
      {Kind::kEvenMembers, "evenMembers"},
      {Kind::kClockOff, "clockOff"},
      {Kind::kFewConnectionsLeft, "fewConnectionsLeft"},
      {Kind::kSlow, "slow"},
      {Kind::kShortGrant, "shortGrant"},
      {Kind::kGrantBelowAsked, "grantBelowAsked"},
      {Kind::kEvenList, "evenList"},
      {Kind::kSingleServer, "singleServer"},
      {Kind::kPartialList, "partialList"},
      {Kind::kUnreachedAddress, "unreachedAddress"},
      {Kind::kClockUnknown, "clockUnknown"},
      {Kind::kWordsClosed, "wordsClosed"},
      {Kind::kWordsUnusable, "wordsUnusable"},
      {Kind::kNotCompared, "notCompared"},
  }};
  for (const auto& [one, name] : kNames) {
    if (one == kind) return name;
  }
  return "";
}

}  // namespace zklock::cli
