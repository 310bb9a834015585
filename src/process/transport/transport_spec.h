#pragma once

#include <optional>
#include <string>

namespace zklock::process {

/// How to reach the servers.
struct TransportSpec {
  /// A line for /bin/sh in which %h and %p are a server's host and port, and %% is a percent sign.
  /// The standard input and output of the command are the connection. Empty: none.
  std::string proxy_command;

  bool tls = false;
  // Absolute paths of files; empty: none.
  std::string tls_ca;
  std::string tls_cert;
  std::string tls_key;
  bool tls_checks_name = true;

  std::string sasl;  ///< "gssapi", "digest-md5"; empty: none
  std::string sasl_service;
  std::string sasl_secret;  ///< USER:PASSWORD, for digest-md5

  /// Returns whether zklock-transport is needed.
  [[nodiscard]] bool NeedsProgram() const { return tls || !sasl.empty(); }
};

/// Returns the path of the zklock-transport that belongs to this zklock: beside it, or where it was
/// installed. Returns none if neither exists.
[[nodiscard]] std::optional<std::string> FindTransportProgram();

/// Sets `expanded` to `line` with the placeholders replaced. Returns false if it has an unknown
/// placeholder or ends in a percent sign.
[[nodiscard]] bool ExpandProxyCommand(const std::string& line, const std::string& host,
                                      const std::string& port, std::string& expanded);

}  // namespace zklock::process
