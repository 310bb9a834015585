#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/event_source.h"
#include "zookeeper/access.h"
#include "zookeeper/loopback.h"
#include "zookeeper/server_list.h"
#include "zookeeper/transport.h"
#include "zookeeper/wire.h"

typedef struct _zhandle zhandle_t;

namespace zklock::zookeeper {

/// Identifies a session to the servers. Any process that has these credentials can take over the
/// session or close it.
struct Credentials {
  std::int64_t session_id = 0;
  std::string password;  ///< 16 bytes, secret
};

/// Why an attempt failed or a connection ended.
struct AttemptEnd {
  enum class How {
    kConnectUnanswered,
    kNoSession,  ///< connected, but the server does not answer the handshake
    kClosedAtOnce,
    kNoZooKeeper,  ///< the answer is not from a ZooKeeper server
    kClosed,
    kFellSilent,
    kClosesOnRequest,  ///< repeatedly, on the same kind of request
    kThrottles,        ///< the server is too busy for requests
    kNotUnderstood,    ///< a malformed reply
    kSystem,           ///< see `error`
    kHelper,           ///< see `words`
    kHelperRefused,    ///< credentials refused, or the helper could not get any; see `words`
    kHelperClosed,     ///< the helper closed the connection at once and reported nothing
    kHelperSilent,     ///< nothing has arrived through the helper
    kLoopback,         ///< the socket to the helper failed; see `error`
  };
  How how = How::kSystem;
  int error = 0;      ///< an errno
  std::string words;  ///< what the helper reported
  friend bool operator==(const AttemptEnd&, const AttemptEnd&) = default;
};

/// One attempt to connect to one server and, if it succeeds, the connection: one zhandle_t of the
/// single-threaded client library. It uses one numeric address, and never reconnects.
///
/// With a transport, the library connects to a loopback socket of this process, whose other end
/// becomes the standard input and output of a helper. To the library, its socket looks like any
/// other.
///
/// The library's own reconnection is not used: it may never try half of the servers
/// (ZOOKEEPER-2466), waits two thirds of the session timeout for a silent connect, and blocks while
/// it resolves names.
class Connection {
 public:
  enum class State {
    kConnecting,   ///< TCP
    kHandshaking,  ///< the connect request has been sent
    kConnected,    ///< the session is accepted
    kExpired,      ///< the servers have ended the session
    kRefused,      ///< the server refused the credentials
    kFailed,       ///< see failure()
  };

  /// `previous`: the session to continue; null for a new one. `timeout`: the T to request.
  /// `credentials` are sent in one write with the end of the handshake, before any request.
  /// `transport`: null for TCP. Throws std::system_error if no handle or socket can be created.
  Connection(const Endpoint& endpoint, Duration timeout, const Credentials* previous,
             const std::vector<AuthInfo>& credentials, const Clock& clock,
             Transport* transport = nullptr);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Returns what to wait for. May itself advance the attempt.
  EventSource::Interest GetInterest();
  /// Advances the attempt and reads replies. Their callbacks run inside this call.
  void Process(short revents);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] AttemptEnd failure() const { return failure_; }
  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }
  /// Returns whether the connection is, or will be, through a helper. If so, kHandshaking includes
  /// everything that the helper does before the session exists.
  [[nodiscard]] bool has_helper() const { return transport_ != nullptr; }
  /// Returns `end`, or what the helper reports about it.
  [[nodiscard]] AttemptEnd Explained(AttemptEnd end) const;
  /// Returns the time just before the connect request was sent; set from kHandshaking on.
  [[nodiscard]] TimePoint connect_sent() const { return connect_sent_; }
  [[nodiscard]] Credentials credentials() const;
  [[nodiscard]] Duration granted_timeout() const;
  /// Returns the library's handle, for making requests.
  [[nodiscard]] zhandle_t* handle() const { return handle_; }
  /// Registers a request that was made through handle(); see ReplyCheck::Expect().
  void Expect(std::string fields) { replies_.Expect(std::move(fields)); }

  /// Holds back requests until SendNow(), or for a fifth of a second, to send several in one
  /// segment.
  void HoldBack();
  /// Sends what HoldBack() has held back.
  void SendNow();

  /// Takes the socket away from the library, to which the connection then looks closed, so that the
  /// library's close neither blocks nor ends the session. Sends `last`, a complete request, in one
  /// segment with the requests that were held back. Returns the socket, or -1 on failure or if the
  /// library has sent only part of a request, which must not be cut off.
  [[nodiscard]] int TakeSocket(std::span<const std::byte> last);
  /// Returns what the library had read of an incomplete reply when TakeSocket() succeeded: the rest
  /// will be read from the socket.
  [[nodiscard]] const std::vector<std::byte>& incomplete_reply() const { return incomplete_reply_; }
  /// Returns the helper, which the socket needs; null without one.
  [[nodiscard]] std::unique_ptr<Helper> TakeHelper() { return std::move(helper_); }

 private:
  /// Returns whether the attempt has failed or the connection has ended.
  [[nodiscard]] bool IsOver() const;
  void Advance(int result, int error);
  void Fail(AttemptEnd why);
  /// Returns the reason to report if the system, or the library with its own timeouts, has given up
  /// waiting.
  [[nodiscard]] AttemptEnd::How Silence() const;
  /// Calls zookeeper_process() once, which reads at most one reply.
  void LetLibraryProcess(int events, bool connects);
  /// Returns whether to let the library read: false if the first bytes of the handshake are not
  /// ZooKeeper's. Decides only once: the rest may arrive later, in pieces of any size.
  bool GreetingIsSound(short revents);
  /// Starts the helper once the library's connection has arrived at the listener.
  void StartHelper();

  Endpoint endpoint_;
  const Clock& clock_;
  Transport* transport_;
  std::optional<LoopbackListener> listener_;  // until the helper is started
  std::unique_ptr<Helper> helper_;
  zhandle_t* handle_ = nullptr;
  State state_ = State::kConnecting;
  AttemptEnd failure_;
  TimePoint connect_sent_{};
  TimePoint before_call_{};
  int fd_ = -1;  // the library's; -1 before the first connect
  ReplyCheck replies_;
  std::vector<std::byte> incomplete_reply_;
  bool greeting_is_sound_ = false;
  bool wants_write_ = false;
  bool holds_back_ = false;
};

/// Returns the version of the client library that zklock was built with: "3.8.0".
[[nodiscard]] std::string_view ClientLibraryVersion();

}  // namespace zklock::zookeeper
