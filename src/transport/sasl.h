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

/// Forwards zklock's request for a session and authenticates the connection. Holds back the
/// server's answer until that is done, so that zklock's handshake timeout covers the exchange.
/// Throws Failure, with `refusal` set if the exchange failed.
void Authenticate(Channel& channel, const std::string& host, const SaslOptions& options);

}  // namespace zklock::transport
