#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/event_source.h"
#include "base/unique_fd.h"
#include "zookeeper/access.h"
#include "zookeeper/connection.h"
#include "zookeeper/session_requests.h"
#include "zookeeper/wire.h"

namespace zklock::zookeeper {

/// The reason why the last attempt at an address failed.
struct AttemptFailure {
  std::string server;  ///< as the user wrote it
  AttemptEnd end;
};

/// The real Store: one ZooKeeper session over as many connections as it needs.
///
/// It is entirely passive: an event loop calls it. It tries the endpoints in shuffled order, with
/// one Connection for each attempt and its own timeouts, and continues the same session after each
/// connection loss until the servers report that it has expired. Nothing here blocks; names are
/// resolved elsewhere.
class Session final : public SessionRequests, public EventSource {
 public:
  /// `timeout`: the session timeout to request. A later connection requests lease().timeout(), so
  /// that the servers agree on it. The first attempt starts with the first GetInterest().
  /// `transport`: must outlive the session; null for TCP.
  Session(std::vector<Endpoint> endpoints, Duration timeout, const Clock& clock, Access access = {},
          Transport* transport = nullptr);
  /// Leaves the session to expire unless it was closed.
  ~Session() override;

  /// Replaces the addresses from the next attempt on: a name's addresses may have changed.
  void SetEndpoints(std::vector<Endpoint> endpoints);
  /// Sets how long the caller waits for a server; the addresses share this time. Default: 15 s.
  void SetConnectTimeout(Duration connect_timeout) { connect_timeout_ = connect_timeout; }
  /// Returns how many times all endpoints have been tried in vain since the last connection.
  [[nodiscard]] int failed_rounds() const { return failed_rounds_; }
  /// Returns why the last attempt at each server failed, or how far the current attempt has got, in
  /// the order of the endpoints. Omits servers that have not failed.
  [[nodiscard]] std::vector<AttemptFailure> Failures() const;
  /// Returns the server in use, as the user wrote it; empty without one.
  [[nodiscard]] std::string connected_server() const;
  /// Returns the server that was tried or used last; empty before the first attempt.
  [[nodiscard]] std::string last_server() const;
  /// Returns the session timeout that the last server to accept the session granted.
  [[nodiscard]] Duration granted_timeout() const { return granted_timeout_; }
  /// Returns how long the current or last connection took from the attempt's start to the session.
  [[nodiscard]] Duration connect_took() const { return connect_took_; }
  /// Returns lease().timeout() before that connection; none for a new session.
  [[nodiscard]] std::optional<Duration> timeout_before() const { return timeout_before_; }
  /// Returns how many times servers have granted a session or taken it over.
  [[nodiscard]] int connects() const { return connects_; }
  [[nodiscard]] const std::optional<Credentials>& credentials() const { return credentials_; }
  [[nodiscard]] const std::vector<Endpoint>& endpoints() const { return endpoints_; }
  /// Continues another process's session, to close it for a process that died. Must be called
  /// before the first GetInterest().
  void Adopt(Credentials credentials) { credentials_ = std::move(credentials); }

  /// Ends the session, which releases everything that it holds: sends the close and waits for the
  /// reply, if necessary over a new connection to the same or another server. The listener is no
  /// longer called, and no requests may be made. `releases`: how many unanswered WriteAndDelete()
  /// calls together release everything. If they succeed, the session does not wait for the reply to
  /// the close. (The servers commit the close separately, with a log write of its own.)
  void BeginClose(std::size_t releases = 0);
  /// Returns whether the servers have confirmed that nothing is held, or there was no session.
  [[nodiscard]] bool IsClosed() const { return phase_ == Phase::kClosed; }
  /// Returns the helper's message about refused credentials; empty if no helper reported a refusal.
  [[nodiscard]] std::string HelperRefusal() const;
  /// Returns whether the servers refuse even the close: they require an authentication scheme that
  /// the client library does not have, such as SASL. The session then ends with its timeout.
  [[nodiscard]] bool IsCloseRefused() const { return closing_ && phase_ == Phase::kRefused; }
  /// Returns how long a server may take to answer while others wait for the session to be closed.
  [[nodiscard]] Duration CloseAnswerTime() const;

  // Store
  [[nodiscard]] bool IsConnected() const override { return phase_ == Phase::kConnected; }
  /// Returns whether a server has been asked to accept the session and has not answered.
  [[nodiscard]] bool IsHandshaking() const {
    return phase_ == Phase::kApart && connection_ != nullptr &&
           connection_->state() == Connection::State::kHandshaking;
  }
  [[nodiscard]] std::int64_t session_id() const override;
  void SetHolding(TimePoint stop, TimePoint end) override {
    stop_time_ = stop;
    lease_end_ = end;
  }
  void GiveUpServer(Error refusal = Error::kNone) override;
  void Renew() override;

  // EventSource
  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  /// kApart: not connected; an attempt is in progress, or the next one is awaited.
  ///   kApart -> kConnected -> kApart ...        connected and lost again
  ///   kApart -> kExpired -> kApart              by Renew()
  ///   kApart, kConnected -> kRefused            refused credentials: only the close is possible
  ///   any but kExpired -> kClosing -> kClosed   the close's reply is awaited on a raw socket
  ///   kClosing -> kRefused                      the close was refused, whatever the credentials
  ///   kClosing -> kApart(closing_) -> kClosing  the reply was lost, or did not arrive in time
  ///   kExpired, kApart without a session -> kClosed
  enum class Phase { kApart, kConnected, kExpired, kRefused, kClosing, kClosed };

  void StartAttempt(TimePoint now);
  void CheckAttempt(TimePoint now);
  /// Takes `end` by value: it often belongs to the connection, which is destroyed here.
  void EndAttempt(AttemptEnd end, TimePoint now);
  /// Records `end` for the server that is or was in use, if that is still one of the endpoints.
  void SetEnd(std::optional<AttemptEnd> end);
  void OnAccepted();
  void OnSessionGone();
  void OnAccessRefused(Error why);
  void LoseConnection(const AttemptEnd& end);
  /// Called when the helper could not authenticate the connection, which then has no session.
  void OnHelperRefused(TimePoint now);
  void NoteCloser();
  [[nodiscard]] TimePoint AttemptDeadline(TimePoint now) const;
  [[nodiscard]] Duration AttemptTime(TimePoint now) const;
  [[nodiscard]] Duration ReconnectDelay(TimePoint now);
  /// Returns whether a lease is still running: once it has ended, reconnecting is not urgent.
  [[nodiscard]] bool Holds(TimePoint now) const { return now < lease_end_; }

  void SendClose();
  void ReadCloseReply();
  /// Gives up the socket, on which no reply is expected any more, to close the session over another
  /// connection.
  void LeaveClosingSocket();
  void OnCloseRefused();
  /// Makes the next close use made-up credentials.
  void CloseAsAnybody();

  // SessionRequests
  [[nodiscard]] Connection* connection() override { return connection_.get(); }
  void OnReply(std::string_view operation, Error error, bool is_answer, bool commits) override;
  void OnServed() override { SetEnd(std::nullopt); }

  std::vector<Endpoint> endpoints_;
  std::vector<std::optional<AttemptEnd>> ends_;  // by endpoint: how the last attempt failed
  std::size_t next_endpoint_ = 0;
  std::size_t tried_in_round_ = 0;
  int failed_rounds_ = 0;

  Duration timeout_;
  Duration connect_timeout_ = std::chrono::seconds(15);
  Transport* transport_;
  std::minstd_rand random_;

  Phase phase_ = Phase::kApart;
  bool closing_ = false;
  bool give_up_ = false;
  Error refusal_ = Error::kNone;  // the reason to give up this server
  bool is_of_use_ = false;        // a transaction over this connection has succeeded
  // Connections that were refused, or lost before a transaction or the close succeeded.
  int useless_in_a_row_ = 0;
  std::string refuser_;             // the last server that refused a request, until one is served
  bool auth_required_ = false;      // this server requires credentials and closes the connection
  bool closes_as_anybody_ = false;  // the close uses made-up credentials
  std::optional<Credentials> credentials_;
  Duration granted_timeout_{};
  std::optional<Duration> timeout_before_;
  int connects_ = 0;
  TimePoint stop_time_{};  // see SetHolding()
  TimePoint lease_end_{};  // likewise; in the past before the first call and after Renew()

  std::unique_ptr<Connection> connection_;
  std::size_t current_endpoint_ = 0;
  TimePoint attempt_began_{};
  TimePoint retry_at_{};
  Duration handshake_took_{};  // the last handshake
  Duration connect_took_{};    // including what preceded the handshake

  /// Servers that closed the connection on one kind of request, and how many times in a row.
  struct Closers {
    std::string_view request;
    std::vector<std::string> servers;
    int times = 0;
  };
  Closers closers_;
  std::string_view first_lost_;  // the first request that was lost with the connection

  std::size_t releases_ = 0;  // how many WriteAndDelete() release everything; 0: the close does

  UniqueFd closing_socket_;
  std::unique_ptr<Helper> closing_helper_;  // the helper at the other end of that socket
  TimePoint closing_until_{};               // when to try another server
  ReplyScanner close_scanner_{0};
};

}  // namespace zklock::zookeeper
