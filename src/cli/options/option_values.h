#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "protocol/lock_path.h"
#include "zookeeper/server_list.h"

namespace zklock::cli {

/// Parses a whole number from `least` to `most`; none if `text` contains anything else.
[[nodiscard]] std::optional<int> ParseNumber(std::string_view text, int least, int most);

/// Parses "TERM", "SIGTERM", "term" or "15".
[[nodiscard]] std::optional<int> ParseSignal(std::string text);

/// Say what is wrong with a path or with a list of servers.
[[nodiscard]] const char* PathText(protocol::BadPath bad);
[[nodiscard]] std::string ServersText(const zookeeper::BadServerList& bad);

}  // namespace zklock::cli
