// The input is parsed as a server list from a file, a variable or a command line.

#include <string>
#include <variant>

#include "fuzz/fuzz.h"
#include "fuzz/text.h"
#include "protocol/lock_path.h"
#include "zookeeper/server_list.h"

namespace zklock::fuzz {
namespace {

using zookeeper::ParseServerList;
using zookeeper::Server;
using zookeeper::ServerList;

void TryServer(const Server& server) {
  Require(!server.host.empty(), "a server has a host");
  // A name, or a numeric address with a zone.
  Require(server.host.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                        "0123456789.-_:%") == std::string::npos,
          "a host has valid characters");
  Require(!server.port.empty() && server.port.size() <= 5 && server.port.front() != '0' &&
              server.port.find_first_not_of("0123456789") == std::string::npos &&
              std::stoi(server.port) <= 65535,
          "a port is from 1 to 65535");
}

void RequireSame(const std::string& text, const ServerList& list) {
  const auto again = ParseServerList(text);
  const auto* const read = std::get_if<ServerList>(&again);
  Require(read != nullptr && *read == list, "a formatted list parses to the same list");
}

}  // namespace

void Try(std::string_view input) {
  const auto parsed = ParseServerList(input);
  if (std::holds_alternative<zookeeper::BadServerList>(parsed)) return;
  const auto& list = std::get<ServerList>(parsed);
  Require(!list.servers.empty(), "a list names a server");
  std::string tight;
  std::string loose;
  for (const Server& server : list.servers) {
    TryServer(server);
    tight += (tight.empty() ? "" : ",") + ToString(server);
    loose += " \t" + ToString(server) + " ,";
  }
  Require(list.chroot.empty() || protocol::CheckAbsolutePath(list.chroot) ==
                                     std::variant<std::string, protocol::BadPath>(list.chroot),
          "a chroot is a usable path");
  RequireSame(tight + list.chroot + '/', list);
  RequireSame(loose + list.chroot + "/ ", list);
  // A trailing space belongs to the chroot only if a slash follows it.
  if (!list.chroot.ends_with(' ')) RequireSame(tight + list.chroot, list);
}

}  // namespace zklock::fuzz
