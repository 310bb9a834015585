#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/event_source.h"
#include "zookeeper/access.h"

typedef struct _zhandle zhandle_t;

namespace zklock::zookeeper {

/// What names a session to the servers: whoever has it may take the session over or close it.
struct Credentials {
  std::int64_t session_id = 0;
  std::string password;  ///< 16 bytes, secret
};

/// One numeric address of a server, and the name under which the user knows it.
struct Endpoint {
  std::string address;  ///< as the client library takes it: "127.0.0.1:2181", "::1:2181"
  std::string name;     ///< as the user wrote it: "zk1:2181"
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

/// Why nothing comes of an attempt, or nothing more of a connection.
struct AttemptEnd {
  enum class How {
    kConnectUnanswered,
    kNoSession,  ///< connected, but it does not answer the handshake
    kClosedAtOnce,
    kNoZooKeeper,  ///< it answers something else
    kClosed,
    kFellSilent,
    kClosesOnRequest,  ///< again and again, in answer to one kind of request
    kThrottles,        ///< it answers that it has no time for our requests
    kNotUnderstood,
    kSystem,  ///< `error`
  };
  How how = How::kSystem;
  int error = 0;  ///< errno's
  friend bool operator==(const AttemptEnd&, const AttemptEnd&) = default;
};

/// One attempt at one server and, if it succeeds, the connection: one zhandle_t of the
/// single-threaded client library with one numeric address, never reconnected.
///
/// The library's own reconnection is not used: it may never try half of the servers
/// (ZOOKEEPER-2466), gives a silent connect two thirds of the session time-out, and resolves names
/// blockingly. Throws std::system_error when the system refuses a handle.
class Connection {
 public:
  enum class State {
    kConnecting,   ///< TCP
    kHandshaking,  ///< the connect request has been sent
    kConnected,    ///< the session is accepted
    kExpired,      ///< the servers have ended the session
    kRefused,      ///< the server does not take the credentials
    kFailed,       ///< closed, or no ZooKeeper: failure() says which
  };

  /// `previous`: the session to go on with; null for a new one. `timeout`: the T to ask for.
  /// `credentials` go out in one write with the end of the handshake, before any request can.
  Connection(const Endpoint& endpoint, Duration timeout, const Credentials* previous,
             const std::vector<AuthInfo>& credentials, const Clock& clock);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// What to wait for; may itself move the attempt on.
  EventSource::Interest GetInterest();
  /// Moves the attempt on, reads replies; their callbacks run inside.
  void Process(short revents);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] AttemptEnd failure() const { return failure_; }
  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }
  /// Just before the connect request was sent; set from kHandshaking on.
  [[nodiscard]] TimePoint connect_sent() const { return connect_sent_; }
  [[nodiscard]] Credentials credentials() const;
  [[nodiscard]] Duration granted_timeout() const;
  /// For requests; null once the connection has been taken from the library.
  [[nodiscard]] zhandle_t* handle() const { return handle_; }

  /// What is sent from here on waits for SendNow(), or for a fifth of a second, so that it leaves
  /// in one segment with what follows.
  void HoldBack();
  /// Sends what HoldBack() keeps.
  void SendNow();

  /// Takes the socket away from the library, which from then on sees a connection that has ended:
  /// its close neither blocks nor ends the session. Sends `last`, a whole request, in one segment
  /// with what is held back. Returns the socket, or -1 if that cannot be. Requests that the library
  /// has not wholly sent would be cut in the middle: then -1 as well.
  [[nodiscard]] int TakeSocket(std::span<const std::byte> last);

 private:
  /// Nothing comes of it any more.
  [[nodiscard]] bool IsOver() const;
  void Advance(int result, int error);
  void Fail(AttemptEnd why);
  /// False while a handshake's first bytes are still to come, or are no ZooKeeper's.
  bool GreetingIsSound(short revents);

  Endpoint endpoint_;
  const Clock& clock_;
  zhandle_t* handle_ = nullptr;
  State state_ = State::kConnecting;
  AttemptEnd failure_;
  TimePoint connect_sent_{};
  TimePoint before_call_{};
  int fd_ = -1;  // the library's; -1 before the first connect
  bool wants_write_ = false;
  bool holds_back_ = false;
};

}  // namespace zklock::zookeeper
