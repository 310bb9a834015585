#pragma once

#include <string>

#include "base/unique_fd.h"

namespace zklock::zookeeper {

/// Listens on a loopback port for one connection, which this process makes to itself: the client
/// library can only connect to an address, and a helper needs the other end.
class LoopbackListener {
 public:
  /// Throws std::system_error.
  LoopbackListener();

  /// "127.0.0.1:PORT".
  [[nodiscard]] const std::string& address() const { return address_; }
  /// Readable when a connection has arrived.
  [[nodiscard]] int fd() const { return socket_.get(); }
  /// Returns the other end of `socket`; none if it has not arrived yet. Closes connections that
  /// other processes have made. Throws std::system_error, for example for lack of descriptors.
  [[nodiscard]] UniqueFd Accept(int socket) const;

 private:
  UniqueFd socket_;
  std::string address_;
};

}  // namespace zklock::zookeeper
