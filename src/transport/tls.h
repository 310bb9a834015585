#pragma once

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

/// Performs the handshake as a client, with TLS 1.2 or newer. `host`: the name or address that the
/// certificate must be for. Throws Failure, which names what is wrong with the server's certificate
/// or with ours.
[[nodiscard]] std::unique_ptr<Channel> OpenTls(UniqueFd socket, const std::string& host,
                                               const TlsOptions& options);

}  // namespace zklock::transport
