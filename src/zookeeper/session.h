#pragma once

#include <deque>
#include <functional>
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
#include "zookeeper/store.h"
#include "zookeeper/wire.h"

struct Stat;           // the client library's
struct String_vector;  // likewise

namespace zklock::zookeeper {

struct PendingRequest;

/// Why an address could not be used the last time it was tried.
struct AttemptFailure {
  std::string server;  ///< as the user wrote it
  AttemptEnd end;
};

/// One ZooKeeper session over as many connections as it takes: the real Store.
///
/// Passive: an event loop calls it. It tries the endpoints in a shuffled order, one Connection for
/// each attempt, with its own time-outs, and goes on with the same session after every loss until
/// the servers say that it has expired. Nothing here blocks; names are resolved elsewhere.
class Session final : public Store, public EventSource {
 public:
  /// `timeout`: the session time-out to ask for; over later connections, the one that is still
  /// counted with, so that the servers agree on it. Starts at the first GetInterest().
  Session(std::vector<Endpoint> endpoints, Duration timeout, const Clock& clock,
          Access access = {});
  /// Leaves the session to expire unless it was closed.
  ~Session() override;

  /// Replaces the addresses to try from the next attempt on (a name's addresses have changed).
  void SetEndpoints(std::vector<Endpoint> endpoints);
  /// How many times all endpoints have been tried in vain since there last was a connection.
  [[nodiscard]] int failed_rounds() const { return failed_rounds_; }
  /// What each server last said, or how far it let an attempt come that is still under way, in the
  /// order of the endpoints; those without a reason left out.
  [[nodiscard]] std::vector<AttemptFailure> Failures() const;
  /// The server in use, as the user wrote it; empty without one.
  [[nodiscard]] std::string connected_server() const;
  /// The session time-out that the last server to accept the session has granted.
  [[nodiscard]] Duration granted_timeout() const { return granted_timeout_; }
  /// What lease().timeout() was before that; none for a new session.
  [[nodiscard]] std::optional<Duration> timeout_before() const { return timeout_before_; }
  [[nodiscard]] const std::optional<Credentials>& credentials() const { return credentials_; }
  [[nodiscard]] const std::vector<Endpoint>& endpoints() const { return endpoints_; }
  /// To continue somebody's session, before the first GetInterest(): closing it for a dead process.
  void Adopt(Credentials credentials) { credentials_ = std::move(credentials); }

  /// Ends the session, and with it everything it holds: sends the close and waits for its reply,
  /// over a new connection if need be, to another server where one says nothing. No listener is
  /// called any more, requests are over. `releases`: that many WriteAndDelete() that are not
  /// answered yet let go of everything; their success is as good as the close's, which need not be
  /// waited for then. (The servers commit it with a write of its own to their logs.)
  void BeginClose(std::size_t releases = 0);
  /// The servers have confirmed that nothing is held any more, or there never was a session.
  [[nodiscard]] bool IsClosed() const { return phase_ == Phase::kClosed; }
  /// The servers do not even let us close the session: they want a scheme of credentials that the
  /// client library does not have, such as SASL. It ends with its time-out.
  [[nodiscard]] bool IsCloseRefused() const { return closing_ && phase_ == Phase::kRefused; }

  // Store
  void SetListener(StoreListener* listener) override { listener_ = listener; }
  [[nodiscard]] bool IsConnected() const override { return phase_ == Phase::kConnected; }
  /// A server has been asked to take the session on, and has not answered.
  [[nodiscard]] bool IsHandshaking() const {
    return phase_ == Phase::kApart && connection_ != nullptr &&
           connection_->state() == Connection::State::kHandshaking;
  }
  [[nodiscard]] std::int64_t session_id() const override;
  [[nodiscard]] const protocol::Lease& lease() const override { return lease_; }
  void Create(const std::string& path, const std::string& data, NodeKind kind,
              Done<CreateReply> done) override;
  void Get(const std::string& path, Watch watch, Done<GetReply> done) override;
  void List(const std::string& path, Watch watch, Done<ListReply> done) override;
  void Exists(const std::string& path, Watch watch, Done<Reply> done) override;
  void Delete(const std::string& path, std::int32_t version, Done<Reply> done) override;
  void Set(const std::string& path, const std::string& data, std::int32_t version,
           Done<Reply> done) override;
  void WriteAndDelete(const std::string& path, const std::string& data, std::int32_t version,
                      const std::string& gone, Done<Reply> done) override;
  void Sync(const std::string& path, Done<Reply> done) override;
  void Check(const std::vector<std::string>& paths, Done<Reply> done) override;
  void SetHolding(TimePoint stop) override { stop_time_ = stop; }
  void GiveUpServer() override;
  void Renew() override;

  // EventSource
  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  /// kApart: no connection, one is being tried for or waited for.
  ///   kApart -> kConnected -> kApart ...        lost and found
  ///   kApart -> kExpired -> kApart              by Renew()
  ///   kApart, kConnected -> kRefused            the credentials; no way on but the close
  ///   any but kExpired -> kClosing -> kClosed   the close's reply is awaited on a raw socket;
  ///   kClosing -> kRefused                      the close was refused, with any credentials;
  ///   kClosing -> kApart(closing_) -> kClosing  it was lost, or does not come
  ///   kExpired -> kClosed
  enum class Phase { kApart, kConnected, kExpired, kRefused, kClosing, kClosed };

  void StartAttempt(TimePoint now);
  void CheckAttempt(TimePoint now);
  /// `end` by value: it is often the connection's own, which goes here.
  void EndAttempt(AttemptEnd end, TimePoint now);
  /// Of the server that is or was in use; forgotten if that is no longer one of ours.
  void SetEnd(std::optional<AttemptEnd> end);
  void OnAccepted();
  void OnSessionGone();
  void OnAccessRefused(Error why);
  void CloseAsAnybody();
  void LoseConnection(AttemptEnd end);
  void NoteCloser();
  void SendClose();
  /// Of each request that the server has and has not answered, in order: is it a WriteAndDelete()?
  [[nodiscard]] std::vector<bool> UnansweredReleases() const;
  void ReadCloseReply();
  /// No reply will come from there: asks again elsewhere.
  void LeaveClosingSocket();
  void OnCloseRefused();
  void Deliver();
  [[nodiscard]] TimePoint AttemptDeadline(TimePoint now) const;
  [[nodiscard]] Duration AttemptTime(TimePoint now) const;
  /// How long a server may take for one answer while the session is being closed.
  [[nodiscard]] Duration CloseAnswerTime() const;
  [[nodiscard]] Duration ReconnectDelay();

  // Requests (session_requests.cc).
  /// Takes a request into the pipeline, and sends it unless a throttled one is to be sent before
  /// it. Without a connection it is answered kConnectionLoss.
  void Request(std::unique_ptr<PendingRequest> pending);
  /// Hands it to the library; what that refuses is answered kConnectionLoss.
  void Send(PendingRequest& pending);
  template <typename R>
  void Complete(PendingRequest& pending, int result, R reply);
  template <typename R>
  void Answer(PendingRequest& pending, R reply);
  void AnswerLost(PendingRequest& pending);
  /// The connection has gone: what is still to be answered never will be.
  void AnswerAllLost();
  /// Hands the answers that the order allows to Deliver().
  void TakeAnswers();
  [[nodiscard]] bool IsBehindThrottled(const PendingRequest& pending) const;
  /// One that is to be sent again is.
  [[nodiscard]] bool IsThrottled() const;
  /// Sends the first of them, if it is time and nothing is under way.
  void SendThrottled(TimePoint now);
  [[nodiscard]] TimePoint NextSend() const;
  static int SendMulti(PendingRequest& request, zhandle_t* handle);
  static void OnCreated(int result, const char* path, const ::Stat* stat, const void* data);
  static void OnGot(int result, const char* value, int size, const ::Stat* stat, const void* data);
  static void OnSet(int result, const ::Stat* stat, const void* data);
  static void OnListed(int result, const ::String_vector* names, const void* data);
  static void OnExists(int result, const ::Stat* stat, const void* data);
  static void OnDone(int result, const void* data);
  static void OnSynced(int result, const char* path, const void* data);
  static void OnWatchEvent(zhandle_t* handle, int type, int state, const char* path, void* self);

  std::vector<Endpoint> endpoints_;
  std::vector<std::optional<AttemptEnd>> ends_;  // by endpoint: what the last attempt came to
  std::size_t next_endpoint_ = 0;
  std::size_t tried_in_round_ = 0;
  int failed_rounds_ = 0;

  Duration timeout_;
  const Clock& clock_;
  Access access_;
  std::minstd_rand random_;
  StoreListener* listener_ = nullptr;

  Phase phase_ = Phase::kApart;
  bool closing_ = false;
  bool give_up_ = false;
  bool auth_required_ = false;      // this server has said so, and closes the connection
  bool closes_as_anybody_ = false;  // with credentials that are made up for it
  std::optional<Credentials> credentials_;
  protocol::Lease lease_;
  Duration granted_timeout_{};
  std::optional<Duration> timeout_before_;
  std::optional<TimePoint> stop_time_;  // set while something is held

  std::unique_ptr<Connection> connection_;
  std::size_t current_endpoint_ = 0;
  TimePoint attempt_began_{};
  TimePoint retry_at_{};
  Duration handshake_took_{};  // the last one

  /// Servers that closed the connection in answer to one kind of request, and how often in a row.
  struct Closers {
    std::string_view request;
    std::vector<std::string> servers;
    int times = 0;
  };
  Closers closers_;
  std::string_view first_lost_;  // of the requests that were lost with the connection

  std::deque<std::unique_ptr<PendingRequest>>
      pipeline_;               // asked for and not yet delivered, in order
  TimePoint send_again_at_{};  // what was throttled
  Duration throttle_pause_{};  // the last one; zero: the last answer was one
  std::size_t releases_ = 0;   // how many WriteAndDelete() let go of everything; 0: the close does

  UniqueFd closing_socket_;
  TimePoint closing_until_{};  // then its server is left for another
  ReplyScanner close_scanner_{0};

  bool holds_garbage_ = false;               // of a long list, in the allocator: see Deliver
  std::deque<std::function<void()>> ready_;  // answers and events, in order, not yet delivered
  bool delivering_ = false;
};

}  // namespace zklock::zookeeper
