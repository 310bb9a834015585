#include "zookeeper/session.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <system_error>
#include <utility>

#include "base/random.h"

namespace zklock::zookeeper {
namespace {

using namespace std::chrono_literals;

constexpr int kMostDoublings = 4;
constexpr Duration kLongestReconnectDelay = 1s;
constexpr Duration kLeastAttemptTime = 250ms;
// The time that ssh needs to connect to a distant host.
constexpr Duration kLeastHelperTime = 1s;

// A number that the library does not use: its xids start near the current time.
constexpr std::int32_t kCloseXid = 0x7a6b6c6b;

// zklock's exit (for up to a second in all) or the next holder waits for the close. A silent server
// must leave time for the others; a distant server gets more.
constexpr Duration kLeastCloseAnswerTime = 300ms;
constexpr int kFarFactor = 3;

// How many pieces to read before handling other events: a server may send without pause.
constexpr int kMostPieces = 64;

using How = AttemptEnd::How;

// The server refused the credentials or a heartbeat.
const AttemptEnd kRefused = {How::kSystem, EACCES};

std::mt19937::result_type RandomSeed() {
  std::mt19937::result_type seed = 0;
  FillRandomly(std::as_writable_bytes(std::span(&seed, 1)));
  return seed;
}

}  // namespace

Session::Session(std::vector<Endpoint> endpoints, Duration timeout, const Clock& clock,
                 Access access, Transport* transport)
    : SessionRequests(clock, timeout, std::move(access)),
      timeout_(timeout),
      transport_(transport),
      random_(RandomSeed()) {
  SetEndpoints(std::move(endpoints));
}

Session::~Session() {
  listener_ = nullptr;
  connection_.reset();  // the answers to its outstanding requests end up in ready_ and are dropped
}

void Session::SetEndpoints(std::vector<Endpoint> endpoints) {
  std::shuffle(endpoints.begin(), endpoints.end(), random_);
  // Keep the results of addresses that remain; one of them may be in use.
  std::vector<std::optional<AttemptEnd>> ends(endpoints.size());
  std::size_t current = endpoints.size();
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    const auto old = std::find(endpoints_.begin(), endpoints_.end(), endpoints[i]);
    if (old != endpoints_.end()) {
      ends[i] = ends_[static_cast<std::size_t>(old - endpoints_.begin())];
    }
    if (connection_ != nullptr && connection_->endpoint() == endpoints[i]) current = i;
  }
  endpoints_ = std::move(endpoints);
  ends_ = std::move(ends);
  next_endpoint_ = 0;
  tried_in_round_ = 0;
  current_endpoint_ = current;
}

void Session::SetEnd(std::optional<AttemptEnd> end) {
  if (current_endpoint_ < ends_.size()) ends_[current_endpoint_] = std::move(end);
}

std::vector<AttemptFailure> Session::Failures() const {
  std::vector<AttemptFailure> failures;
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    std::optional<AttemptEnd> end = ends_[i];
    // The attempt in progress has not succeeded yet either.
    if (!end && i == current_endpoint_ && connection_ != nullptr) {
      if (connection_->state() == Connection::State::kConnecting) end = {How::kConnectUnanswered};
      if (connection_->state() == Connection::State::kHandshaking) end = {How::kNoSession};
      if (end) end = connection_->Explained(*end);
      if (WasThrottled()) end = {How::kThrottles};
    }
    // The last attempts before the lease's end are short: after a refusal, silence explains less.
    const bool is_silent = !end || end->how == How::kFellSilent;
    if (is_silent && endpoints_[i].name == refuser_) end = kRefused;
    const auto& closers = closers_.servers;
    if (closers_.times > 1 &&
        std::find(closers.begin(), closers.end(), endpoints_[i].name) != closers.end()) {
      end = {How::kClosesOnRequest};
    }
    if (end) failures.push_back({endpoints_[i].name, *end});
  }
  return failures;
}

std::string Session::connected_server() const {
  return IsConnected() ? connection_->endpoint().name : "";
}

std::string Session::last_server() const {
  return current_endpoint_ < endpoints_.size() ? endpoints_[current_endpoint_].name : "";
}

std::int64_t Session::session_id() const { return credentials_ ? credentials_->session_id : 0; }

EventSource::Interest Session::GetInterest() {
  const TimePoint now = clock_.Now();
  if (!ready_.empty()) return {.wake = now};
  switch (phase_) {
    case Phase::kApart:
      if (connection_ == nullptr) {
        if (endpoints_.empty()) return {};  // until SetEndpoints()
        if (now < retry_at_) return {.wake = retry_at_};
        StartAttempt(now);
      }
      break;
    case Phase::kConnected: {
      connection_->SendNow();  // a release that was held back but not followed by a close
      Interest interest = connection_->GetInterest();
      interest.wake = std::min(interest.wake, NextSend());
      return interest;
    }
    case Phase::kClosing:
      return {.fd = closing_socket_.get(), .events = POLLIN, .wake = closing_until_};
    case Phase::kExpired:
    case Phase::kRefused:
    case Phase::kClosed:
      return {};
  }
  if (connection_ == nullptr) return {.wake = retry_at_};
  Interest interest = connection_->GetInterest();
  interest.wake = std::min(interest.wake, AttemptDeadline(now));
  return interest;
}

void Session::OnReady(short revents) {
  switch (phase_) {
    case Phase::kApart:
      if (connection_ == nullptr) break;
      if (revents != 0) connection_->Process(revents);
      CheckAttempt(clock_.Now());
      break;
    case Phase::kConnected:
      if (revents != 0) connection_->Process(revents);
      if (connection_->state() == Connection::State::kExpired) {
        OnSessionGone();
      } else if (connection_->state() == Connection::State::kRefused) {
        OnAccessRefused(Error::kAuthFailed);
      } else if (std::exchange(auth_required_, false)) {
        OnAccessRefused(Error::kAuthRequired);
      } else if (connection_->state() == Connection::State::kFailed) {
        LoseConnection(connection_->failure());
      } else {
        SendThrottled(clock_.Now());
      }
      break;
    case Phase::kClosing:
      ReadCloseReply();
      break;
    case Phase::kExpired:
    case Phase::kRefused:
    case Phase::kClosed:
      break;
  }
  Deliver();
  if (give_up_ && phase_ == Phase::kConnected) {
    AttemptEnd end = {WasThrottled() ? How::kThrottles : How::kFellSilent};
    if (refusal_ != Error::kNone) {
      end = IsRefusal(refusal_) ? kRefused : AttemptEnd{How::kNotUnderstood};
    }
    LoseConnection(end);
    Deliver();
  }
  give_up_ = false;
  refusal_ = Error::kNone;
}

void Session::StartAttempt(TimePoint now) {
  current_endpoint_ = next_endpoint_;
  next_endpoint_ = (next_endpoint_ + 1) % endpoints_.size();
  attempt_began_ = now;
  auth_required_ = false;
  try {
    connection_ = std::make_unique<Connection>(endpoints_[current_endpoint_], lease_.timeout(),
                                               credentials_ ? &*credentials_ : nullptr,
                                               access_.credentials, clock_, transport_);
  } catch (const std::system_error& error) {
    // For example, this host lacks the address family or a loopback interface.
    EndAttempt({transport_ != nullptr ? How::kLoopback : How::kSystem, error.code().value()}, now);
  }
}

TimePoint Session::AttemptDeadline(TimePoint now) const {
  // The helper's work before the handshake counts as part of it.
  const bool handshaking =
      connection_->state() == Connection::State::kHandshaking && !connection_->has_helper();
  return (handshaking ? connection_->connect_sent() : attempt_began_) + AttemptTime(now);
}

Duration Session::AttemptTime(TimePoint now) const {
  const Duration timeout = lease_.timeout();
  const auto addresses = static_cast<std::int64_t>(endpoints_.size());
  const int doubled = 1 << std::min(failed_rounds_, kMostDoublings);
  // Hung servers must leave time for the others, and for a second round; a single server gets all
  // of it.
  const Duration least = connection_->has_helper() ? kLeastHelperTime : kLeastAttemptTime;
  const Duration share = std::max(connect_timeout_ / (addresses == 1 ? 1 : 2 * addresses),
                                  std::min(least, connect_timeout_ / addresses));
  const Duration handshake = std::max<Duration>(2s, timeout / 3);
  Duration allowed;
  if (connection_->has_helper()) {
    allowed = std::min(share, handshake) * doubled;
  } else if (connection_->state() == Connection::State::kHandshaking) {
    // `share` may be so long that doubling it would overflow.
    allowed = std::min(std::min(share, handshake) * doubled, handshake);
  } else {
    const Duration connect = std::clamp<Duration>(timeout / (3 * addresses), kLeastAttemptTime, 2s);
    allowed = std::min(share, connect) * doubled;
  }
  if (closing_) {
    const Duration close = connection_->has_helper() ? std::max(CloseAnswerTime(), kLeastHelperTime)
                                                     : CloseAnswerTime();
    return std::min(allowed, close * doubled);
  }
  // While a command runs under the lock, no single server may use up the lease.
  if (Holds(now)) {
    const TimePoint end = now < stop_time_ ? stop_time_ : lease_end_;
    // The time until the stop time shrinks with each call. So if half of it is allowed, the attempt
    // ends after a third of the initial time; if all of it is allowed, after half, so that a
    // heartbeat can still be answered.
    allowed = std::min(allowed, protocol::AnswerTimeout(timeout, end - now, handshake_took_));
  }
  return allowed;
}

void Session::CheckAttempt(TimePoint now) {
  switch (connection_->state()) {
    case Connection::State::kConnected:
      OnAccepted();
      return;
    case Connection::State::kExpired:
      OnSessionGone();
      return;
    case Connection::State::kRefused:
      OnAccessRefused(Error::kAuthFailed);
      return;
    case Connection::State::kFailed:
      if (connection_->Explained(connection_->failure()).how == How::kHelperRefused) {
        OnHelperRefused(now);
      } else {
        EndAttempt(connection_->failure(), now);
      }
      return;
    case Connection::State::kConnecting:
      if (now >= AttemptDeadline(now)) EndAttempt({How::kConnectUnanswered}, now);
      return;
    case Connection::State::kHandshaking:
      if (now >= AttemptDeadline(now)) EndAttempt({How::kNoSession}, now);
      return;
  }
}

void Session::EndAttempt(AttemptEnd end, TimePoint now) {
  SetEnd(connection_ != nullptr ? connection_->Explained(std::move(end)) : std::move(end));
  connection_.reset();
  retry_at_ = now;
  if (++tried_in_round_ >= endpoints_.size()) {
    tried_in_round_ = 0;
    ++failed_rounds_;
    retry_at_ = now + ReconnectDelay(now);
  }
}

Duration Session::ReconnectDelay(TimePoint now) {
  // Holders reconnect first: waiters have time, and a thousand of them may reconnect at once.
  if (Holds(now)) {
    const Duration pause = std::min<Duration>(20ms * (1 << std::min(useless_in_a_row_, 4)), 250ms);
    return std::min(pause, std::max<Duration>(20ms, (lease_end_ - now) / 8));
  }
  // A server that accepts the session, but closes the connection on the same request each time, is
  // of no more use than one that does not accept it.
  const int failures = closing_ ? failed_rounds_ : std::max(failed_rounds_, closers_.times);
  const Duration base =
      std::min<Duration>(50ms * (1 << std::min(failures, 8)), kLongestReconnectDelay);
  return std::uniform_int_distribution<Duration::rep>(base.count() / 2, base.count())(random_) *
         1ns;
}

void Session::OnAccepted() {
  const bool fresh = !credentials_;
  ++connects_;
  credentials_ = connection_->credentials();
  granted_timeout_ = connection_->granted_timeout();
  timeout_before_ = lease_.timeout();
  if (fresh) {
    timeout_before_.reset();
    lease_ = protocol::Lease(granted_timeout_);
  }
  lease_.ConnectAccepted(connection_->connect_sent(), granted_timeout_);
  const TimePoint now = clock_.Now();
  handshake_took_ = now - connection_->connect_sent();
  connect_took_ = now - attempt_began_;
  // A server that answers the close by dropping the connection is of no use either.
  failed_rounds_ = closing_ ? useless_in_a_row_ : 0;
  tried_in_round_ = 0;
  // Keep the result of a server that throttled requests or sent a malformed reply until it answers
  // a request.
  const std::optional<AttemptEnd> end =
      current_endpoint_ < ends_.size() ? ends_[current_endpoint_] : std::nullopt;
  if (end != AttemptEnd{How::kThrottles} && end != AttemptEnd{How::kNotUnderstood}) {
    SetEnd(std::nullopt);
  }
  phase_ = Phase::kConnected;
  first_lost_ = {};
  if (closing_) {
    SendClose();
    return;
  }
  ready_.emplace_back([this, fresh] {
    if (listener_ != nullptr) listener_->OnConnected(fresh);
  });
}

void Session::OnReply(std::string_view operation, Error error, bool is_answer, bool commits) {
  // The connection can no longer be used, even if it is still open.
  if (error == Error::kConnectionLoss) give_up_ = true;
  // The servers process requests in order: if a request made them close the connection, it is the
  // first lost one.
  if (error == Error::kConnectionLoss && first_lost_.empty()) first_lost_ = operation;
  if (is_answer && operation == closers_.request) closers_ = {};
  is_of_use_ = is_of_use_ || (error == Error::kNone && commits);
  if (error == Error::kNone && operation == "Check") refuser_.clear();
  if (error == Error::kAuthRequired) auth_required_ = true;
}

void Session::NoteCloser() {
  if (first_lost_ != closers_.request) closers_ = {.request = first_lost_};
  ++closers_.times;
  auto& servers = closers_.servers;
  const std::string& name = connection_->endpoint().name;
  if (std::find(servers.begin(), servers.end(), name) == servers.end()) servers.push_back(name);
}

void Session::LoseConnection(const AttemptEnd& end) {
  SetEnd(connection_->Explained(end));
  if (end.how == How::kClosed && !first_lost_.empty()) NoteCloser();
  if (end == kRefused) {
    refuser_ = connection_->endpoint().name;
  } else if (end.how != How::kFellSilent) {
    refuser_.clear();
  }
  phase_ = Phase::kApart;
  connection_.reset();
  AnswerAllLost();
  const TimePoint now = clock_.Now();
  const bool was_of_use = std::exchange(is_of_use_, false) && refusal_ == Error::kNone;
  useless_in_a_row_ = was_of_use ? 0 : useless_in_a_row_ + 1;
  const bool is_urgent = closing_ || (Holds(now) && useless_in_a_row_ == 0);
  retry_at_ = is_urgent ? now : now + ReconnectDelay(now);
  ready_.emplace_back([this] {
    if (listener_ != nullptr) listener_->OnDisconnected();
  });
}

void Session::OnSessionGone() {
  credentials_.reset();
  connection_.reset();
  AnswerAllLost();
  if (closing_) {
    phase_ = Phase::kClosed;  // the close has achieved its purpose
    return;
  }
  phase_ = Phase::kExpired;
  ready_.emplace_back([this] {
    if (listener_ != nullptr) listener_->OnExpired();
  });
}

void Session::OnAccessRefused(Error why) {
  if (Holds(clock_.Now()) && !closing_) {
    // Another server may accept the credentials, and there is time until the lease ends.
    if (phase_ == Phase::kConnected) return LoseConnection(kRefused);
    return EndAttempt(kRefused, clock_.Now());
  }
  // The session exists and must be closed. Servers that refuse these credentials may accept a close
  // without any; others require some, but accept any: no password is wrong in the digest scheme.
  credentials_ = connection_->credentials();
  access_.credentials.clear();
  if (why == Error::kAuthRequired) CloseAsAnybody();
  connection_.reset();
  AnswerAllLost();
  if (closing_) return;
  phase_ = Phase::kRefused;
  ready_.emplace_back([this, why] {
    if (listener_ != nullptr) listener_->OnRefused(why);
  });
}

void Session::OnHelperRefused(TimePoint now) {
  // Another server may accept the credentials, and there is time until the lease ends. A close is
  // always tried again: the refusal may be temporary, for example while the KDC is down.
  const bool is_tried_again = closing_ || Holds(now);
  EndAttempt(connection_->failure(), now);
  if (is_tried_again) return;
  AnswerAllLost();
  phase_ = Phase::kRefused;
  ready_.emplace_back([this] {
    if (listener_ != nullptr) listener_->OnRefused(Error::kAuthFailed);
  });
}

std::string Session::HelperRefusal() const {
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    if (ends_[i] && ends_[i]->how == How::kHelperRefused) {
      return endpoints_[i].name + " (" + ends_[i]->words + ")";
    }
  }
  return "";
}

void Session::Renew() {
  if (phase_ != Phase::kExpired) return;
  lease_ = protocol::Lease(timeout_);
  lease_end_ = {};
  phase_ = Phase::kApart;
  retry_at_ = clock_.Now();
}

void Session::GiveUpServer(Error refusal) {
  // The caller may be a callback of the connection that has to be closed.
  if (phase_ != Phase::kConnected) return;
  give_up_ = true;
  refusal_ = refusal;
  ready_.emplace_back([] {});  // so that GetInterest() asks for OnReady()
}

// ---- the close ------------------------------------------------------------------------------

void Session::BeginClose(std::size_t releases) {
  listener_ = nullptr;
  ready_.clear();
  closing_ = true;
  tried_in_round_ = 0;
  useless_in_a_row_ = 0;
  releases_ = releases;
  switch (phase_) {
    case Phase::kConnected:
      SendClose();
      break;
    case Phase::kApart:
    case Phase::kRefused:
      phase_ = credentials_ ? Phase::kApart : Phase::kClosed;
      retry_at_ = clock_.Now();
      break;
    case Phase::kExpired:
      phase_ = Phase::kClosed;
      break;
    case Phase::kClosing:
    case Phase::kClosed:
      break;
  }
}

void Session::SendClose() {
  // The library's own close blocks for up to 4.5 s and does not report whether the servers received
  // it. All requests that the library has sent precede this close on the same socket. To the
  // library, they fail when it loses the socket.
  std::vector<bool> asked = UnansweredReleases();
  const auto under_way = static_cast<std::size_t>(std::count(asked.begin(), asked.end(), true));
  if (under_way != std::exchange(releases_, 0)) asked.clear();
  closing_socket_.Reset(connection_->TakeSocket(MakeCloseRequest(kCloseXid)));
  close_scanner_ = ReplyScanner(kCloseXid, std::move(asked));
  const std::vector<std::byte>& read = connection_->incomplete_reply();
  close_scanner_.Feed(read.data(), read.size());
  closing_helper_ = connection_->TakeHelper();
  connection_.reset();
  Clear();
  if (closing_socket_) {
    phase_ = Phase::kClosing;
    closing_until_ = clock_.Now() + CloseAnswerTime();
    return;
  }
  LeaveClosingSocket();
}

void Session::ReadCloseReply() {
  std::array<std::byte, 4096> buffer;
  for (int pieces = 0; pieces < kMostPieces; ++pieces) {
    const ssize_t size = recv(closing_socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (size <= 0) return LeaveClosingSocket();
    const bool is_closed = close_scanner_.Feed(buffer.data(), static_cast<std::size_t>(size));
    if (close_scanner_.is_close_refused()) return OnCloseRefused();
    if (close_scanner_.is_foreign()) return LeaveClosingSocket();
    if (is_closed) {
      closing_socket_.Reset();
      closing_helper_.reset();
      credentials_.reset();
      phase_ = Phase::kClosed;
      return;
    }
  }
  if (clock_.Now() >= closing_until_) LeaveClosingSocket();
}

// The close may still have succeeded. In that case, the next attempt finds that the session has
// expired, which serves the same purpose.
void Session::LeaveClosingSocket() {
  closing_socket_.Reset();
  closing_helper_.reset();
  phase_ = Phase::kApart;
  const TimePoint now = clock_.Now();
  retry_at_ = useless_in_a_row_ == 0 ? now : now + ReconnectDelay(now);
  ++useless_in_a_row_;
}

void Session::OnCloseRefused() {
  LeaveClosingSocket();
  if (closes_as_anybody_) {
    phase_ = Phase::kRefused;
  } else {
    CloseAsAnybody();
  }
}

Duration Session::CloseAnswerTime() const {
  return std::max(kLeastCloseAnswerTime, kFarFactor * handshake_took_);
}

void Session::CloseAsAnybody() {
  closes_as_anybody_ = true;
  access_.credentials = {{.scheme = "digest", .credential = "zklock:close"}};
}

}  // namespace zklock::zookeeper
