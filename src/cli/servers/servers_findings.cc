#include "cli/servers/servers_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cli/options/option_table.h"
#include "cli/servers/servers_messages.h"
#include "cli/text/duration.h"
#include "cli/text/printable.h"
#include "protocol/lease.h"

namespace zklock::cli {
namespace {

using Kind = protocol::Finding::Kind;
using protocol::ServerFacts;
using protocol::WordEnd;

// The maximum width of a reason, which another program may have written. Our own longest reasons,
// remedies included, take about 250 columns.
constexpr std::size_t kMostReason = 400;

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool is_last = i + 1 == words.size();
    text += (i == 0 ? "" : is_last ? " and " : ", ") + words[i];
  }
  return text;
}

/// Returns the server's name; with the address if several servers have this name.
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

/// Four-letter words without a usable answer, and the facts that are therefore unknown.
struct MissingWords {
  std::string words;
  std::string facts;
};

MissingWords WordsThatEnded(WordEnd end, const ServersReport& report,
                            const std::vector<std::size_t>& places) {
  std::vector<std::string> facts;
  std::vector<std::string> words;
  const auto add = [&](WordEnd ServerFacts::*fact, const char* word,
                       const std::vector<std::string>& shows) {
    const bool ends_so = std::any_of(places.begin(), places.end(), [&](std::size_t place) {
      return report.facts.servers[place].*fact == end;
    });
    if (!ends_so) return;
    facts.insert(facts.end(), shows.begin(), shows.end());
    words.emplace_back(word);
  };
  add(&ServerFacts::srvr, "srvr", {"role", "version"});
  add(&ServerFacts::cons, "cons", {"connections"});
  add(&ServerFacts::conf, "conf", {"connection limit"});
  return {Joined(words), Joined(facts)};
}

/// Returns the server that the others are compared with.
std::string FirstServer(const ServersReport& report) {
  const auto& servers = report.facts.servers;
  const auto first = std::find_if(servers.begin(), servers.end(),
                                  [](const ServerFacts& one) { return one.same_ensemble == true; });
  const auto place = static_cast<std::size_t>(first - servers.begin());
  return first == servers.end() ? "?" : ServerName(report, place);
}

/// One kind of finding: its name in JSON, and its sentence.
struct Row {
  Kind kind;
  std::string_view name;
  const char* text;
};

// In the order of the enumeration.
constexpr Row kRows[] = {
    {Kind::kUnreached, "unreached", message::kServerUnreached},
    {Kind::kOldVersion, "oldVersion", message::kOldServer},
    {Kind::kOtherEnsemble, "otherEnsemble", message::kOtherEnsemble},
    {Kind::kNotMember, "notMember", message::kNotMember},
    {Kind::kSameServer, "sameServer", message::kSameServer},
    {Kind::kNoQuorum, "noQuorum", message::kServerNoQuorum},
    {Kind::kDifferentGrants, "differentGrants", message::kGrantsDiffer},
    {Kind::kLocalSessions, "localSessions", message::kServerLocalSessions},
    {Kind::kUselessGrant, "uselessGrant", message::kUselessGrant},
    {Kind::kTooSlow, "tooSlow", message::kCommitsTooSlow},
    {Kind::kEvenMembers, "evenMembers", message::kEvenMembers},
    {Kind::kClockOff, "clockOff", message::kClockAhead},
    {Kind::kFewConnectionsLeft, "fewConnectionsLeft", message::kFewConnectionsLeft},
    {Kind::kNoChroot, "noChroot", message::kChrootMissing},
    {Kind::kSlow, "slow", message::kCommitsSlow},
    {Kind::kShortGrant, "shortGrant", message::kBriefGrant},
    {Kind::kGrantBelowAsked, "grantBelowAsked", message::kGrantBelowAsked},
    {Kind::kEvenList, "evenList", message::kEvenList},
    {Kind::kSingleServer, "singleServer", message::kSingleServer},
    {Kind::kPartialList, "partialList", message::kPartialList},
    {Kind::kUnreachedAddress, "unreachedAddress", message::kAddressUnreached},
    {Kind::kClockUnknown, "clockUnknown", message::kClockUnknown},
    {Kind::kWordsClosed, "wordsClosed", message::kWordsClosed},
    {Kind::kWordsUnusable, "wordsUnusable", message::kWordsUnusable},
    {Kind::kNotCompared, "notCompared", message::kNotCompared},
};

constexpr bool AreInOrder() {
  for (std::size_t i = 0; i < std::size(kRows); ++i) {
    if (static_cast<std::size_t>(kRows[i].kind) != i) return false;
  }
  return std::size(kRows) == static_cast<std::size_t>(Kind::kNotCompared) + 1;
}
static_assert(AreInOrder());

const Row& RowOf(Kind kind) { return kRows[static_cast<std::size_t>(kind)]; }

/// Returns the default for `exclusive`, since the report itself runs no command.
Duration DefaultKillAfter() {
  for (const OptionSpec& option : OptionTable()) {
    if (option.name == "kill-after") return ParseDuration(option.fallback).value_or(Duration{});
  }
  return {};
}

}  // namespace

std::string FindingText(const protocol::Finding& finding, const ServersReport& report) {
  const bool is_behind = finding.kind == Kind::kClockOff && finding.most < Duration::zero();
  const char* const text = is_behind ? message::kClockBehind : RowOf(finding.kind).text;
  const WordEnd end = finding.kind == Kind::kWordsClosed ? WordEnd::kClosed : WordEnd::kUnusable;
  const MissingWords missing = WordsThatEnded(end, report, finding.servers);
  // The first of the servers that the finding is about.
  const ServerFacts none;
  const std::size_t place = finding.servers.empty() ? report.texts.size() : finding.servers.front();
  const bool is_any = place < report.texts.size();
  const ServerFacts& facts = is_any ? report.facts.servers[place] : none;
  const ServerTexts texts = is_any ? report.texts[place] : ServerTexts{};
  const Duration uncertainty = facts.clock ? facts.clock->uncertainty : Duration::zero();
  return fmt::format(
      fmt::runtime(text), fmt::arg("servers", ServerNames(report, finding.servers)),
      fmt::arg("name", Printable(facts.name)), fmt::arg("address", Printable(texts.address)),
      fmt::arg("reason", Printable(texts.reason, kMostReason)),
      fmt::arg("version", Printable(texts.version)), fmt::arg("first", FirstServer(report)),
      fmt::arg("least", FormatDuration(finding.least)),
      fmt::arg("most", FormatDuration(std::chrono::abs(finding.most))),
      fmt::arg("floor", FormatDuration(protocol::kLeastSessionTimeout)),
      fmt::arg("uncertainty", FormatDuration(uncertainty)), fmt::arg("count", finding.count),
      fmt::arg("fewer", finding.count - 1), fmt::arg("least_count", finding.least_count),
      fmt::arg("missing", missing.facts), fmt::arg("words", missing.words),
      fmt::arg("root", Printable(report.root)), fmt::arg("chroot", Printable(report.chroot)));
}

std::string_view FindingName(Kind kind) { return RowOf(kind).name; }

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

}  // namespace zklock::cli
