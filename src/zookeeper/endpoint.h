#pragma once

#include <string>

namespace zklock::zookeeper {

/// One address of a server, and its name as the user gave it.
struct Endpoint {
  /// Numeric, in the client library's format: "127.0.0.1:2181", "::1:2181". With a proxy command,
  /// which looks names up itself, the user's host and port.
  std::string address;
  std::string name;  ///< as the user wrote it: "zk1:2181"
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

}  // namespace zklock::zookeeper
