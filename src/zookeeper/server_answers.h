#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/ensemble.h"

// Parsers for what servers say about themselves: the answers to four-letter words, and the znode
// that has the ensemble's configuration. They accept what ZooKeeper 3.4 to 3.9 writes, and nothing
// that only resembles it: the port may be any program's.

namespace zklock::zookeeper {

/// The answer to a four-letter word that the server's whitelist does not have.
[[nodiscard]] bool IsClosedWord(std::string_view answer, std::string_view word);

/// Of the answer to `srvr`.
struct ServerState {
  protocol::ServerRole role = protocol::ServerRole::kUnknown;
  std::string version;  ///< "3.8.0"; empty if the server does not serve
};
[[nodiscard]] std::optional<ServerState> ParseSrvr(std::string_view answer);

/// Of the answer to `conf`: how many connections one host may have; 0: no limit.
[[nodiscard]] std::optional<std::uint64_t> ParseConf(std::string_view answer);

/// Of the answer to `cons`: how many connections come from `address`, a numeric one. None if a line
/// is not one of that answer.
[[nodiscard]] std::optional<std::uint64_t> CountConnections(std::string_view answer,
                                                            const std::string& address);

/// Of /zookeeper/config. None if it lists no server, as a standalone server's, or has a line that
/// is not known.
[[nodiscard]] std::optional<protocol::Members> ParseMembers(std::string_view data);

}  // namespace zklock::zookeeper
