#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "transport/channel.h"

namespace zklock::transport {

struct TlsOptions {
  std::string ca;    ///< a file; empty: the system's authorities
  std::string cert;  ///< a file; empty: no client certificate
  std::string key;   ///< a file
  bool checks_name = true;
};

/// Performs the handshake as a client, with TLS 1.2 or newer, on the socket that `connect` returns.
/// Calls `connect` only after reading the files: errors in them do not depend on the server.
/// `host`: the name or address that the certificate must be valid for. Throws Failure, which
/// explains what is wrong with the server's or the client's certificate.
[[nodiscard]] std::unique_ptr<Channel> OpenTls(const std::function<UniqueFd()>& connect,
                                               const std::string& host, const TlsOptions& options);

}  // namespace zklock::transport
