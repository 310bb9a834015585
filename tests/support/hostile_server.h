#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace zklock::test {

/// A listener on a loopback port that answers each connection as a test wants: with any bytes, at
/// any pace.
class HostileServer {
 public:
  /// A function called in its own thread for each connection, with the connection's number, from 0.
  /// It can use the socket until a call fails; the socket is closed when it returns. Throwing ends
  /// the process.
  using Script = std::function<void(int socket, int number)>;
  explicit HostileServer(Script script);
  /// Shuts all connections down, and waits until every script has returned.
  ~HostileServer();
  HostileServer(const HostileServer&) = delete;
  HostileServer& operator=(const HostileServer&) = delete;

  /// Returns "127.0.0.1:PORT".
  [[nodiscard]] const std::string& address() const { return address_; }

  /// Returns false once the connection is gone.
  static bool Send(int socket, std::string_view bytes);
  /// Reads some bytes. Returns false once the connection is gone.
  static bool Receive(int socket);
  /// Returns a number in the protocol's format: four bytes, most significant first.
  static std::string Number(std::int32_t number);
  /// Returns `body`, preceded by its length.
  static std::string Frame(std::string_view body);
  /// Returns the answer to a connect request that grants a session with this timeout in ms.
  static std::string Grant(std::int32_t timeout = 30'000);

 private:
  void Accept();

  const Script script_;
  UniqueFd listener_;
  std::string address_;
  std::vector<UniqueFd> sockets_;     // used by accepting_ until that has ended
  std::vector<std::thread> scripts_;  // likewise
  std::thread accepting_;
};

}  // namespace zklock::test
