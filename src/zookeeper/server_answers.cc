#include "zookeeper/server_answers.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/text.h"

namespace zklock::zookeeper {
namespace {

using protocol::ServerRole;

constexpr std::string_view kNotServing =
    "This ZooKeeper instance is not currently serving requests";
// A longer text is not a ZooKeeper version, and would only fill the terminal.
constexpr std::size_t kMostVersion = 32;

/// Returns "3.8.0" for "3.8.0-5a02a05…, built on …".
std::string VersionIn(std::string_view text) {
  const std::size_t size =
      std::min(text.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyz."), text.size());
  if (size == 0 || size > kMostVersion || text.front() < '0' || text.front() > '9') return "";
  return std::string(text.substr(0, size));
}

ServerRole RoleIn(std::string_view mode) {
  constexpr std::array<std::pair<std::string_view, ServerRole>, 5> kRoles = {
      {{"leader", ServerRole::kLeader},
       {"follower", ServerRole::kFollower},
       {"observer", ServerRole::kObserver},
       {"standalone", ServerRole::kStandalone},
       {"read-only", ServerRole::kReadOnly}}};
  for (const auto& [name, role] : kRoles) {
    if (mode == name) return role;
  }
  return ServerRole::kUnknown;
}

/// Returns an address in a canonical form; an empty string if `text` is not an address.
std::string Normalized(std::string_view text) {
  std::string address(text.substr(0, text.find('%')));
  std::array<unsigned char, 16> bytes{};
  if (inet_pton(AF_INET, address.c_str(), bytes.data()) == 1) {
    return std::string(reinterpret_cast<const char*>(bytes.data()), 4);
  }
  if (inet_pton(AF_INET6, address.c_str(), bytes.data()) != 1) return "";
  constexpr std::array<unsigned char, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  const bool is_mapped = std::equal(kMapped.begin(), kMapped.end(), bytes.begin());
  const auto* const whole = reinterpret_cast<const char*>(bytes.data());
  return is_mapped ? std::string(whole + 12, 4) : std::string(whole, 16);
}

/// Returns the peer in a line " /10.0.0.1:40000[1](queued=0,…)"; empty for any other line. Java
/// writes IPv6 addresses with brackets (since Java 14) or without, and may write a host name before
/// the slash.
std::string PeerIn(std::string_view line) {
  const std::size_t open = line.find('(');
  if (open == std::string_view::npos || !line.ends_with(')')) return "";
  const std::string_view peer = line.substr(0, open);
  const std::size_t slash = peer.find('/');
  const std::size_t state = peer.rfind('[');  // the interest, a number in brackets
  if (slash == std::string_view::npos || state == std::string_view::npos || state < slash ||
      !peer.ends_with(']')) {
    return "";
  }
  if (!ParseWhole<std::uint32_t>(peer.substr(state + 1, peer.size() - state - 2))) return "";
  std::string_view address = peer.substr(slash + 1, state - slash - 1);
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return "";
  if (!ParseWhole<std::uint16_t>(address.substr(colon + 1))) return "";
  address = address.substr(0, colon);
  if (address.starts_with('[') && address.ends_with(']')) {
    address = address.substr(1, address.size() - 2);
  }
  return Normalized(address);
}

/// Adds the server in a line "server.1=zk1:2888:3888:participant;2181". Returns false for any other
/// line.
bool AddMember(std::string_view line, protocol::Members& members) {
  constexpr std::string_view kServer = "server.";
  const std::size_t equals = line.find('=');
  if (!line.starts_with(kServer) || equals == std::string_view::npos) return false;
  const auto id = ParseWhole<int>(line.substr(kServer.size(), equals - kServer.size()));
  if (!id || *id < 0) return false;
  // Several addresses of one server are separated by '|', and each may have the role.
  const std::string_view addresses = line.substr(equals + 1, line.find(';') - equals - 1);
  const bool is_observer = addresses.ends_with(":observer");
  if (!is_observer && !addresses.ends_with(":participant")) return false;
  if (members.voters.contains(*id) || members.observers.contains(*id)) return false;
  (is_observer ? members.observers : members.voters).insert(*id);
  return true;
}

}  // namespace

bool IsClosedWord(std::string_view answer, std::string_view word) {
  const std::string expected =
      std::string(word) + " is not executed because it is not in the whitelist.";
  return TakeUntil(answer, '\n') == expected && answer.empty();
}

std::optional<ServerState> ParseSrvr(std::string_view answer) {
  constexpr std::string_view kVersion = "Zookeeper version: ";
  constexpr std::string_view kMode = "Mode: ";
  const std::string_view first = TakeUntil(answer, '\n');
  if (first == kNotServing && answer.empty()) {
    return ServerState{.role = ServerRole::kNotServing, .version = ""};
  }
  if (!first.starts_with(kVersion)) return std::nullopt;
  ServerState state{.version = VersionIn(first.substr(kVersion.size()))};
  while (!answer.empty()) {
    const std::string_view line = TakeUntil(answer, '\n');
    if (line.starts_with(kMode)) state.role = RoleIn(line.substr(kMode.size()));
  }
  if (state.version.empty() || state.role == ServerRole::kUnknown) return std::nullopt;
  return state;
}

std::optional<std::uint64_t> ParseConf(std::string_view answer) {
  constexpr std::string_view kLimit = "maxClientCnxns=";
  if (!answer.starts_with("clientPort=")) return std::nullopt;
  while (!answer.empty()) {
    const std::string_view line = TakeUntil(answer, '\n');
    if (!line.starts_with(kLimit)) continue;
    // Any number below 1 means no limit.
    const auto limit = ParseWhole<std::int64_t>(line.substr(kLimit.size()));
    if (!limit) return std::nullopt;
    return static_cast<std::uint64_t>(std::max<std::int64_t>(*limit, 0));
  }
  return std::nullopt;
}

std::optional<std::uint64_t> CountConnections(std::string_view answer, const std::string& address) {
  const std::string wanted = Normalized(address);
  if (wanted.empty() || answer.empty()) return std::nullopt;
  std::uint64_t count = 0;
  while (!answer.empty()) {
    const std::string_view line = TakeUntil(answer, '\n');
    if (line.empty()) continue;
    const std::string peer = PeerIn(line);
    if (peer.empty()) return std::nullopt;
    if (peer == wanted) ++count;
  }
  return count;
}

std::optional<protocol::Members> ParseMembers(std::string_view data) {
  constexpr std::string_view kVersion = "version=";
  protocol::Members members;
  while (!data.empty()) {
    const std::string_view line = TakeUntil(data, '\n');
    if (line.empty()) continue;
    if (line.starts_with(kVersion)) {
      const std::string_view digits = line.substr(kVersion.size());
      (void)std::from_chars(digits.data(), digits.data() + digits.size(), members.version, 16);
      continue;
    }
    if (line.starts_with("group.") || line.starts_with("weight.")) {
      members.weighted = true;
    } else if (!AddMember(line, members)) {
      return std::nullopt;
    }
  }
  if (members.voters.empty()) return std::nullopt;
  return members;
}

}  // namespace zklock::zookeeper
