#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "zookeeper/pending_request.h"
#include "zookeeper/session.h"

// The end of a Session: its close, sent on the connection's own socket, and the wait for the reply.

namespace zklock::zookeeper {
namespace {

using namespace std::chrono_literals;

// Any number that the library does not use: its xids begin near the time of day.
constexpr std::int32_t kCloseXid = 0x7a6b6c6b;

// While a session is being closed, the end of zklock (for a second in all) or the next holder waits
// for it. A silent server must leave time for the others; a distant one gets more.
constexpr Duration kLeastCloseAnswerTime = 300ms;
constexpr int kFarFactor = 3;

// Read before other events get their turn: a server may send without pause.
constexpr int kMostPieces = 64;

}  // namespace

void Session::BeginClose(std::size_t releases) {
  listener_ = nullptr;
  ready_.clear();
  closing_ = true;
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
  // it. All requests that the library has sent precede this close on the same socket. For the
  // library they end with the socket.
  std::vector<bool> asked = UnansweredReleases();
  const auto under_way = static_cast<std::size_t>(std::count(asked.begin(), asked.end(), true));
  if (under_way != std::exchange(releases_, 0)) asked.clear();
  closing_socket_.Reset(connection_->TakeSocket(MakeCloseRequest(kCloseXid)));
  close_scanner_ = ReplyScanner(kCloseXid, std::move(asked));
  closing_helper_ = connection_->TakeHelper();
  connection_.reset();
  pipeline_.clear();
  ready_.clear();
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

// The close may have been done all the same: then the next attempt finds the session expired, which
// is as good an answer.
void Session::LeaveClosingSocket() {
  closing_socket_.Reset();
  closing_helper_.reset();
  phase_ = Phase::kApart;
  retry_at_ = clock_.Now();
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
