#pragma once

#include <string_view>

namespace zklock::zookeeper {

/// The version of the ZooKeeper C client that zklock was built with: "3.8.0".
[[nodiscard]] std::string_view ClientLibraryVersion();

}  // namespace zklock::zookeeper
