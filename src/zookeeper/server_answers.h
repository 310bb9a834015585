#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/ensemble.h"

// Parsers for what servers report about themselves: the answers to four-letter words, and the znode
// that contains the ensemble's configuration. They accept what ZooKeeper 3.4 to 3.9 writes, and
// nothing that only resembles it: any program may be listening on the port.

namespace zklock::zookeeper {

/// Returns whether this is the answer to a four-letter word that is not in the server's whitelist.
[[nodiscard]] bool IsClosedWord(std::string_view answer, std::string_view word);

/// The contents of the answer to `srvr`.
struct ServerState {
  protocol::ServerRole role = protocol::ServerRole::kUnknown;
  std::string version;  ///< "3.8.0"; empty if the server does not serve
};
[[nodiscard]] std::optional<ServerState> ParseSrvr(std::string_view answer);

/// Returns how many connections one host may have, from the answer to `conf`; 0: no limit.
[[nodiscard]] std::optional<std::uint64_t> ParseConf(std::string_view answer);

/// Counts the connections from `address`, which is numeric, in the answer to `cons`. Returns none
/// if a line does not belong in that answer.
[[nodiscard]] std::optional<std::uint64_t> CountConnections(std::string_view answer,
                                                            const std::string& address);

/// Parses /zookeeper/config. Returns none if it lists no server, like that of a standalone server,
/// or has an unknown line.
[[nodiscard]] std::optional<protocol::Members> ParseMembers(std::string_view data);

}  // namespace zklock::zookeeper
