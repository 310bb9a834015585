#pragma once

#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "zookeeper/server_list.h"

namespace zklock::zookeeper {

/// A process that passes bytes between a socket of this process and a server, for one connection.
/// Destroying this object ends the process.
class Helper {
 public:
  Helper() = default;
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;
  virtual ~Helper() = default;
  /// Returns what the helper last reported on standard error, as one line; empty if nothing. Must
  /// be called from time to time, so that a verbose helper does not block.
  [[nodiscard]] virtual const std::string& ErrorTail() = 0;
  /// Returns whether ErrorTail() means that the server has rejected the credentials.
  [[nodiscard]] virtual bool IsRefusal() { return false; }
  /// Forgets what was reported so far; called once the session exists.
  virtual void ForgetWords() = 0;
};

/// A way to reach servers other than the client library's own TCP connection.
class Transport {
 public:
  virtual ~Transport() = default;
  /// Starts a helper whose standard input and output are `socket`. The helper must not outlive this
  /// object. Throws std::system_error.
  [[nodiscard]] virtual std::unique_ptr<Helper> Start(const Endpoint& endpoint,
                                                      UniqueFd socket) = 0;
  /// Returns the exit status of the last proxy command that ended by itself and failed; 0 if none
  /// has since a session last existed.
  [[nodiscard]] virtual int LastFailure() { return 0; }
};

}  // namespace zklock::zookeeper
