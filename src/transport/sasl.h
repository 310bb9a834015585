#pragma once

#include <string>

#include "transport/channel.h"

namespace zklock::transport {

struct SaslOptions {
  std::string mechanism;  ///< "gssapi", "digest-md5"; empty: no SASL
  std::string service = "zookeeper";
  // For digest-md5.
  std::string user;
  std::string password;
};

/// Passes zklock's request for a session on and authenticates the connection while it holds the
/// server's answer back, so that zklock's time for a handshake covers the exchange. Then passes the
/// answer on. Throws Failure; a refusal if the exchange failed.
void Authenticate(Channel& channel, const std::string& host, const SaslOptions& options);

}  // namespace zklock::transport
