#include "zookeeper/server_list.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "base/text.h"
#include "protocol/lock_path.h"

namespace zklock::zookeeper {
namespace {

constexpr std::string_view kDefaultPort = "2181";
constexpr std::string_view kBlanks = " \t";

using Why = BadServerList::Why;

std::string_view Trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

bool IsName(std::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), IsNameCharacter);
}

/// Returns whether `host` is a numeric address, with a zone (`fe80::1%eth0`) or without.
bool IsIpv6(std::string_view host) {
  const std::size_t percent = host.find('%');
  if (percent != std::string_view::npos && !IsName(host.substr(percent + 1))) return false;
  const std::string digits(host.substr(0, percent));
  // inet_pton() would stop at a NUL.
  if (digits.find('\0') != std::string::npos) return false;
  in6_addr address{};
  return inet_pton(AF_INET6, digits.c_str(), &address) == 1;
}

std::optional<std::string> ParsePort(std::string_view text) {
  const unsigned value = ParseWhole<unsigned>(text).value_or(0);
  if (value < 1 || value > 65535) return std::nullopt;
  return std::to_string(value);
}

/// Parses one `HOST[:PORT]` without spaces around it.
std::variant<Server, BadServerList> ParseServer(std::string_view text) {
  if (text.find_first_of(kBlanks) != std::string_view::npos) return BadServerList{Why::kBlank};
  std::string_view host;
  std::string_view rest;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return BadServerList{Why::kNoBracket};
    host = text.substr(1, end - 1);
    rest = text.substr(end + 1);
    if (!IsIpv6(host)) return BadServerList{Why::kNoIpv6};
    if (!rest.empty() && rest.front() != ':') return BadServerList{Why::kBehindBracket};
  } else {
    // `::1:2181` may or may not end in a port, so brackets are required.
    if (std::count(text.begin(), text.end(), ':') > 1) {
      return BadServerList{Why::kSeveralColons};
    }
    host = text.substr(0, text.find(':'));
    rest = text.substr(host.size());
    if (host.empty()) return BadServerList{Why::kNoHost};
    if (!IsName(host)) return BadServerList{Why::kBadHost};
  }
  if (rest.empty()) return Server{std::string(host), std::string(kDefaultPort)};
  auto port = ParsePort(rest.substr(1));
  if (!port) return BadServerList{Why::kBadPort};
  return Server{std::string(host), std::move(*port)};
}

std::variant<std::string, BadServerList> ParseChroot(std::string_view text) {
  // The client library rejects a chroot that ends in a slash, but users write such chroots.
  if (text.ends_with('/')) text.remove_suffix(1);
  if (text.empty()) return std::string();
  if (text.find_first_of(",:") != std::string_view::npos) {
    return BadServerList{.why = Why::kServersBehind};
  }
  auto checked = protocol::CheckAbsolutePath(text);
  if (const auto* bad = std::get_if<protocol::BadPath>(&checked)) {
    return BadServerList{.why = Why::kChroot, .chroot = *bad};
  }
  return std::get<std::string>(std::move(checked));
}

}  // namespace

std::variant<ServerList, BadServerList> ParseServerList(std::string_view text) {
  text = Trim(text);
  if (text.find("://") != std::string_view::npos) return BadServerList{.why = Why::kScheme};
  std::string_view servers = text.substr(0, text.find('/'));
  auto chroot = ParseChroot(text.substr(servers.size()));
  if (const auto* bad = std::get_if<BadServerList>(&chroot)) return *bad;

  servers = Trim(servers);
  if (servers.ends_with(',')) servers.remove_suffix(1);
  if (Trim(servers).empty()) return BadServerList{Why::kNoServer};

  ServerList list{{}, std::get<std::string>(std::move(chroot))};
  for (std::size_t start = 0; start <= servers.size();) {
    const std::size_t end = std::min(servers.find(',', start), servers.size());
    auto server = ParseServer(Trim(servers.substr(start, end - start)));
    if (const auto* bad = std::get_if<BadServerList>(&server)) {
      return BadServerList{bad->why, list.servers.size() + 1};
    }
    list.servers.push_back(std::get<Server>(std::move(server)));
    start = end + 1;
  }
  return list;
}

std::string ToString(const Server& server) {
  const bool ipv6 = server.host.find(':') != std::string::npos;
  return (ipv6 ? "[" + server.host + "]" : server.host) + ":" + server.port;
}

}  // namespace zklock::zookeeper
