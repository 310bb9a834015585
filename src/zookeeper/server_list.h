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

/// `HOST:PORT[,…][/CHROOT]`, taken apart.
struct ServerList {
  std::vector<Server> servers;
  std::string chroot;  ///< "" or an absolute path without a trailing slash
  friend bool operator==(const ServerList&, const ServerList&) = default;
};

/// Why a text is no server list.
struct BadServerList {
  enum class Why {
    kNoServer,
    kChroot,         ///< `chroot` says why
    kNoBracket,      ///< that closes; this and what follows: of one server
    kNoIpv6,         ///< between brackets
    kBehindBracket,  ///< text
    kSeveralColons,  ///< without brackets
    kNoHost,
    kBadHost,  ///< a character that none has
    kBadPort,
  };
  Why why = Why::kNoServer;
  std::size_t server = 0;  ///< which of them, from 1
  protocol::BadPath chroot = protocol::BadPath::kEmpty;
};

/// Takes `host:2181`, `10.0.0.1:2181`, `[::1]:2181`, several by comma (blanks around them and a
/// trailing comma are let pass), and a chroot behind the last; a chroot of `/` or one that ends in
/// `/` is taken without the slash. A missing port is 2181. Ports 1 to 65535.
[[nodiscard]] std::variant<ServerList, BadServerList> ParseServerList(std::string_view text);

/// How the server is shown: `host:port`, `[::1]:port`.
[[nodiscard]] std::string ToString(const Server& server);

}  // namespace zklock::zookeeper
