#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "protocol/lock_path.h"

namespace zklock::zookeeper {

/// One server as the user named it.
struct Server {
  std::string host;  ///< a name or a numeric address, IPv6 without brackets
  std::string port;
  friend bool operator==(const Server&, const Server&) = default;
};

/// One address of a server, and its name as the user gave it.
struct Endpoint {
  /// Numeric, in the client library's format: "127.0.0.1:2181", "::1:2181". With a proxy command,
  /// which resolves names itself, the user's host and port.
  std::string address;
  std::string name;  ///< as the user wrote it: "zk1:2181"
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

/// The parts of `HOST:PORT[,…][/CHROOT]`.
struct ServerList {
  std::vector<Server> servers;
  std::string chroot;  ///< "" or an absolute path without a trailing slash
  friend bool operator==(const ServerList&, const ServerList&) = default;
};

/// Why a text is not a server list.
struct BadServerList {
  enum class Why {
    kNoServer,
    kScheme,         ///< a URL scheme, such as zk://
    kChroot,         ///< see `chroot`
    kServersBehind,  ///< text follows the chroot that may be another server, or its port
    // The rest concern one server: see `server`.
    kNoBracket,      ///< the closing bracket is missing
    kNoIpv6,         ///< no IPv6 address between the brackets
    kBehindBracket,  ///< text follows the brackets
    kSeveralColons,  ///< without brackets
    kNoHost,
    kBlank,    ///< between two servers, where a comma belongs
    kBadHost,  ///< a character that is not allowed in a name
    kBadPort,
  };
  Why why = Why::kNoServer;
  std::size_t server = 0;  ///< counted from 1
  protocol::BadPath chroot = protocol::BadPath::kEmpty;
};

/// Parses `host:2181`, `10.0.0.1:2181`, `[::1]:2181`, or several of them separated by commas
/// (spaces around them and a trailing comma are allowed), and a chroot after the last; a trailing
/// slash of the chroot is dropped. A chroot has neither commas nor colons: otherwise, in
/// `a:1/app,b:1/app` all but the first server would silently become part of it. The default port is
/// 2181. Ports are 1 to 65535.
[[nodiscard]] std::variant<ServerList, BadServerList> ParseServerList(std::string_view text);

/// Returns `host:port` or `[::1]:port`.
[[nodiscard]] std::string ToString(const Server& server);

}  // namespace zklock::zookeeper
