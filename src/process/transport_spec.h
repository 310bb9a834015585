#pragma once

#include <string>

namespace zklock::process {

/// How to reach the servers.
struct TransportSpec {
  /// A line for /bin/sh in which %h and %p are a server's host and port, and %% is a percent sign.
  /// Its standard input and output are the connection. Empty: none.
  std::string proxy_command;

  /// Whether this process connects to the servers itself.
  [[nodiscard]] bool IsDirect() const { return proxy_command.empty(); }
};

/// The line with the placeholders replaced. False if it has a placeholder that is not known, or
/// ends in a percent sign.
[[nodiscard]] bool ExpandProxyCommand(const std::string& line, const std::string& host,
                                      const std::string& port, std::string& expanded);

}  // namespace zklock::process
