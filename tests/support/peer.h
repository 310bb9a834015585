#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace zklock::test {

/// A loopback port chosen by the kernel and reserved without listening: connections to it are
/// refused while this object lives.
class ClosedPort {
 public:
  ClosedPort();
  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  UniqueFd socket_;
  std::string address_;
};

/// A loopback port that does not answer a connect, as if behind a firewall that drops packets.
class BlackHole {
 public:
  BlackHole();
  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  UniqueFd listener_;
  UniqueFd filler_;  // the only connection that fits into its backlog
  std::string address_;
};

/// A listener on a loopback port that is not a ZooKeeper server.
class Peer {
 public:
  enum class Manner {
    kClosesAtOnce,  ///< accepts and closes
    kSaysNothing,   ///< accepts, reads, and never answers
    kSpeaksHttp,    ///< answers the first bytes like a web server
  };
  explicit Peer(Manner manner);
  ~Peer();

  /// Returns "127.0.0.1:PORT".
  [[nodiscard]] const std::string& address() const;
  /// Returns the number of connections so far.
  [[nodiscard]] int connections() const;
  /// Waits for `count` connections.
  void WaitForConnections(int count) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A proxy for a real server, on its own loopback port. Passes bytes on unless a function below
/// changes that. Open connections stay open unless they are cut.
class Proxy {
 public:
  /// `server`: a numeric "HOST:PORT". `address`: the proxy's own loopback address; port 0 lets the
  /// kernel choose.
  explicit Proxy(const std::string& server, const std::string& address = "127.0.0.1:0");
  ~Proxy();

  [[nodiscard]] const std::string& address() const;
  [[nodiscard]] int connections() const;
  void WaitForConnections(int count) const;

  /// Passes nothing on in either direction from now on. Connects still succeed, but requests are
  /// neither answered nor refused, as with a hanging server or a dead network. No byte is in
  /// transit when this returns.
  void Freeze();
  /// Like Freeze, but requests still reach the server: only replies are lost.
  void FreezeReplies();
  /// Resumes, and passes on everything held back.
  void Thaw();
  /// Closes every connection at once. New ones are accepted.
  void Cut();
  /// Sends connections made from now on to `server`.
  void Redirect(const std::string& server);
  /// If `lose` is true, drops session closes from now on, but passes everything else on.
  void LoseCloses(bool lose);
  /// Gives clients that reconnect a new session instead of an error, from now on: their session's
  /// id and password do not reach the server. ClickHouse Keeper behaves like this.
  void ForgetSessions();
  /// Given the server's reply, returns the one to pass to the client: the same, another, or none.
  /// After none, nothing more reaches that client. `request` is what the client sent, named as in
  /// Frame, or "connect".
  using Edit =
      std::function<std::optional<std::string>(const std::string& request, std::string reply)>;
  /// Passes replies on future connections through `edit`, in the proxy's thread.
  void EditReplies(Edit edit);
  /// Delays all bytes by `delay` from now on.
  void Delay(std::chrono::milliseconds delay);
  /// Returns everything that clients have sent so far, in the pieces in which it arrived.
  [[nodiscard]] std::vector<std::string> Requests() const;
  /// Returns everything that servers have sent so far.
  [[nodiscard]] std::string Replies() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace zklock::test
