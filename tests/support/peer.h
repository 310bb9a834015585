#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace zklock::test {

/// A loopback port of the kernel's choice on which nobody listens, and nobody else can: a
/// connection is refused while this lives.
class ClosedPort {
 public:
  ClosedPort();
  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  UniqueFd socket_;
  std::string address_;
};

/// A loopback port that does not even answer to a connect, as behind a firewall that drops packets.
class BlackHole {
 public:
  BlackHole();
  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  UniqueFd listener_;
  UniqueFd filler_;  // the one connection that its queue takes
  std::string address_;
};

/// Something that listens on a loopback port, and is no ZooKeeper server.
class Peer {
 public:
  enum class Manner {
    kClosesAtOnce,  ///< accepts and closes
    kSaysNothing,   ///< accepts, reads, and never answers
    kSpeaksHttp,    ///< answers the first bytes as a web server would
  };
  explicit Peer(Manner manner);
  ~Peer();

  /// "127.0.0.1:PORT".
  [[nodiscard]] const std::string& address() const;
  /// How many have connected so far.
  [[nodiscard]] int connections() const;
  /// Waits until so many have connected.
  void WaitForConnections(int count) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Stands before a real server, on a loopback port of its own, and passes bytes on until told
/// otherwise. Connections that are open stay so unless they are cut.
class Proxy {
 public:
  /// `server`: "HOST:PORT", the address numeric. `address`: its own, on a loopback network; port 0
  /// is one of the kernel's choice.
  explicit Proxy(const std::string& server, const std::string& address = "127.0.0.1:0");
  ~Proxy();

  [[nodiscard]] const std::string& address() const;
  [[nodiscard]] int connections() const;
  void WaitForConnections(int count) const;

  /// Passes nothing on any more, in either direction; what is sent is neither answered nor refused,
  /// and connects succeed: a server that hangs, a network that is gone. When this returns no byte
  /// is under way any more.
  void Freeze();
  /// As Freeze, but what clients send still reaches the server: every reply is lost.
  void FreezeReplies();
  /// Goes on, with all that has been held back.
  void Thaw();
  /// Closes every connection at once. New ones are taken.
  void Cut();
  /// Connections made from now on go to that server.
  void Redirect(const std::string& server);
  /// Passes everything on but the closes of sessions, which are lost on the way, or those too.
  void LoseCloses(bool lose);
  /// What clients are given for a reply: itself, another, or none: from then on nothing reaches
  /// that client any more. `request` is what it replies to, as Frame names it, or "connect".
  using Edit =
      std::function<std::optional<std::string>(const std::string& request, std::string reply)>;
  /// Replies on connections made from now on go through `edit`, in the proxy's own thread.
  void EditReplies(Edit edit);
  /// From now on bytes are passed on so much later.
  void Delay(std::chrono::milliseconds delay);
  /// What clients have sent so far, in the pieces in which it came.
  [[nodiscard]] std::vector<std::string> Requests() const;
  /// What servers have sent so far.
  [[nodiscard]] std::string Replies() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace zklock::test
