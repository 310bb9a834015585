#include "zookeeper/connection.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>
#include <zookeeper/zookeeper_version.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/unique_fd.h"
#include "zookeeper/wire.h"

namespace zklock::zookeeper {
namespace {

// How often to read what a helper reports before the session exists, so that a verbose helper does
// not block on a full pipe.
constexpr Duration kWordsPause = std::chrono::milliseconds(100);

// How many replies to read before handling other events: a server may send without pause.
constexpr int kMostReplies = 64;

// Set while the library is reading, to check what it reads: everything that this thread receives
// passes through __wrap_recv.
thread_local ReplyCheck* check_of_library = nullptr;

// Drops the library's log, which would otherwise go to standard error. The states of Connection are
// more precise.
void DropLog(const char*) {}

void IgnoreSessionEvent(zhandle_t*, int, int, const char*, void*) {}

int Milliseconds(Duration span) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(span).count());
}

TimePoint WakeAfter(TimePoint now, const timeval& left) {
  return now + std::chrono::seconds(left.tv_sec) + std::chrono::microseconds(left.tv_usec);
}

// The library writes each request in two pieces, which would otherwise be two segments.
void SetCork(int socket, bool on) {
  const int value = on ? 1 : 0;
  setsockopt(socket, IPPROTO_TCP, TCP_CORK, &value, sizeof value);
}

// Returns a socket that was never connected, so that reading and writing fail; none if the system
// has no more descriptors.
UniqueFd DeadSocket() { return UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

}  // namespace

Connection::Connection(const Endpoint& endpoint, Duration timeout, const Credentials* previous,
                       const std::vector<AuthInfo>& credentials, const Clock& clock,
                       Transport* transport)
    : endpoint_(endpoint), clock_(clock), transport_(transport), replies_(previous != nullptr) {
  if (transport_ != nullptr) listener_.emplace();
  const std::string& address = listener_ ? listener_->address() : endpoint_.address;
  clientid_t id{};
  if (previous != nullptr) {
    id.client_id = previous->session_id;
    std::memcpy(id.passwd, previous->password.data(),
                std::min(sizeof id.passwd, previous->password.size()));
  }
  zoo_set_debug_level(static_cast<ZooLogLevel>(0));
  handle_ =
      zookeeper_init2(address.c_str(), IgnoreSessionEvent, Milliseconds(timeout),
                      previous != nullptr ? &id : nullptr, this, ZOO_NO_LOG_CLIENTENV, DropLog);
  if (handle_ == nullptr) {
    throw std::system_error(errno, std::generic_category(), "a client handle for " + address);
  }
  // A single numeric address never has to be resolved again.
  zoo_set_servers_resolution_delay(handle_, -1);
  for (const AuthInfo& auth : credentials) {
    // The library keeps the credentials until it has a session. Only a lack of memory can make this
    // fail.
    if (zoo_add_auth(handle_, auth.scheme.c_str(), auth.credential.data(),
                     static_cast<int>(auth.credential.size()), nullptr, nullptr) != ZOK) {
      zookeeper_close(handle_);
      throw std::bad_alloc();
    }
  }
  before_call_ = clock_.Now();
}

Connection::~Connection() {
  // Closing a connected handle would block and end the session, which only Session may do.
  if (state_ == State::kConnected) {
    const UniqueFd socket(TakeSocket({}));
    if (!socket && fd_ >= 0) shutdown(fd_, SHUT_RDWR);
  }
  zookeeper_close(handle_);
}

bool Connection::IsOver() const {
  return state_ == State::kExpired || state_ == State::kRefused || state_ == State::kFailed;
}

EventSource::Interest Connection::GetInterest() {
  if (IsOver()) {
    return {.wake = clock_.Now()};
  }
  before_call_ = clock_.Now();
  int fd = -1;
  int interest = 0;
  timeval left{};
  errno = 0;
  const int result = zookeeper_interest(handle_, &fd, &interest, &left);
  const int error = errno;
  if (fd != fd_ && fd >= 0) {
    // The library does not make its socket close-on-exec. Also, it must not read the handshake
    // before enough has arrived for JudgeGreeting().
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    const int least = kGreetingSize;
    setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
  }
  fd_ = fd;
  wants_write_ = (interest & ZOOKEEPER_WRITE) != 0;
  Advance(result, error);
  if (IsOver()) return {.wake = clock_.Now()};
  if (listener_) {
    return {.fd = listener_->fd(), .events = POLLIN, .wake = WakeAfter(before_call_, left)};
  }
  TimePoint wake = WakeAfter(before_call_, left);
  if (helper_ != nullptr) {
    (void)helper_->ErrorTail();
    // While connected, this is called often enough anyway.
    if (state_ != State::kConnected) wake = std::min(wake, before_call_ + kWordsPause);
  }
  return {.fd = fd_,
          .events = static_cast<short>(((interest & ZOOKEEPER_READ) != 0 ? POLLIN : 0) |
                                       (wants_write_ ? POLLOUT : 0)),
          .wake = wake};
}

void Connection::Process(short revents) {
  if (IsOver() || fd_ < 0) return;
  if (listener_) return StartHelper();
  if (state_ == State::kHandshaking && !GreetingIsSound(revents)) return;
  int events = ((revents & POLLOUT) != 0 ? ZOOKEEPER_WRITE : 0) |
               ((revents & (POLLIN | POLLHUP | POLLERR)) != 0 ? ZOOKEEPER_READ : 0);
  if (state_ == State::kConnecting && (revents & (POLLHUP | POLLERR)) != 0) {
    events |= ZOOKEEPER_WRITE;  // the library queries the socket's error only then
  }
  const bool connects = state_ == State::kConnecting;
  const bool was_connected = state_ == State::kConnected;
  if (connects) HoldBack();
  // One call reads one reply; usually, more have arrived. What follows the server's answer to the
  // handshake is read later: if it is the end of the connection, the session must have seen the
  // granted timeout before.
  for (int replies = 0; replies < kMostReplies; ++replies) {
    LetLibraryProcess(events, connects);
    if (state_ != State::kConnected || !was_connected || (events & ZOOKEEPER_READ) == 0) return;
    pollfd more{.fd = fd_, .events = POLLIN, .revents = 0};
    if (poll(&more, 1, 0) <= 0) return;
    events = ZOOKEEPER_READ;
  }
}

void Connection::LetLibraryProcess(int events, bool connects) {
  before_call_ = clock_.Now();
  errno = 0;
  check_of_library = &replies_;
  const int result = zookeeper_process(handle_, events);
  const int error = errno;
  check_of_library = nullptr;
  if (connects) SendNow();
  Advance(result, error);
}

bool Connection::GreetingIsSound(short revents) {
  if (greeting_is_sound_ || (revents & (POLLIN | POLLHUP | POLLERR)) == 0) return true;
  std::array<std::byte, kGreetingSize> first{};
  const ssize_t size = recv(fd_, first.data(), first.size(), MSG_PEEK | MSG_DONTWAIT);
  if (size <= 0) return true;  // the library will determine the reason
  switch (JudgeGreeting(first.data(), static_cast<std::size_t>(size))) {
    case Greeting::kZooKeeper: {
      const int least = 1;
      setsockopt(fd_, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
      return greeting_is_sound_ = true;
    }
    case Greeting::kTooShort:
      // With SO_RCVLOWAT, fewer bytes mean that the server has closed the connection.
      Fail({AttemptEnd::How::kClosedAtOnce});
      return false;
    case Greeting::kForeign:
      Fail({AttemptEnd::How::kNoZooKeeper});
      return false;
  }
  return true;
}

void Connection::Advance(int result, int error) {
  const int library_state = zoo_state(handle_);
  if (library_state == ZOO_EXPIRED_SESSION_STATE) {
    state_ = State::kExpired;
    return;
  }
  if (library_state == ZOO_AUTH_FAILED_STATE) {
    state_ = State::kRefused;
    return;
  }
  if (result != ZOK && result != ZNOTHING) {
    // The library reports end of file as EHOSTDOWN. With a request in flight, the error may be a
    // reset instead.
    if (error == EHOSTDOWN || error == EPIPE || error == ECONNRESET) {
      Fail({state_ == State::kConnected ? AttemptEnd::How::kClosed
                                        : AttemptEnd::How::kClosedAtOnce});
    } else if (error == ETIMEDOUT) {
      Fail({Silence()});
    } else if (error != 0 && error != EBADMSG) {
      // Until the helper is started, no server is involved.
      Fail({listener_ ? AttemptEnd::How::kLoopback : AttemptEnd::How::kSystem, error});
    } else {
      Fail({AttemptEnd::How::kNotUnderstood});
    }
    return;
  }
  if (state_ == State::kConnecting && library_state == ZOO_ASSOCIATING_STATE) {
    connect_sent_ = before_call_;
    state_ = State::kHandshaking;
  }
  if (state_ != State::kConnected && library_state == ZOO_CONNECTED_STATE) {
    state_ = State::kConnected;
    if (helper_ != nullptr) helper_->ForgetWords();
  }
}

AttemptEnd::How Connection::Silence() const {
  switch (state_) {
    case State::kConnecting:
      return AttemptEnd::How::kConnectUnanswered;
    case State::kHandshaking:
      return AttemptEnd::How::kNoSession;
    default:
      return AttemptEnd::How::kFellSilent;
  }
}

void Connection::StartHelper() {
  try {
    UniqueFd socket = listener_->Accept(fd_);
    if (!socket) return;
    listener_.reset();
    helper_ = transport_->Start(endpoint_, std::move(socket));
  } catch (const std::system_error& error) {
    Fail({AttemptEnd::How::kSystem, error.code().value()});
  }
}

AttemptEnd Connection::Explained(AttemptEnd end) const {
  if (helper_ == nullptr) return end;
  const std::string& words = helper_->ErrorTail();
  if (!words.empty()) {
    const auto how =
        helper_->IsRefusal() ? AttemptEnd::How::kHelperRefused : AttemptEnd::How::kHelper;
    return {how, 0, words};
  }
  if (end.how == AttemptEnd::How::kClosedAtOnce) return {AttemptEnd::How::kHelperClosed};
  if (end.how == AttemptEnd::How::kNoSession) return {AttemptEnd::How::kHelperSilent};
  return end;
}

void Connection::Fail(AttemptEnd why) {
  failure_ = std::move(why);
  state_ = State::kFailed;
}

Credentials Connection::credentials() const {
  const clientid_t* id = zoo_client_id(handle_);
  return {.session_id = id->client_id, .password = std::string(id->passwd, sizeof id->passwd)};
}

Duration Connection::granted_timeout() const {
  return std::chrono::milliseconds(zoo_recv_timeout(handle_));
}

void Connection::HoldBack() {
  if (!std::exchange(holds_back_, true)) SetCork(fd_, true);
}

void Connection::SendNow() {
  if (std::exchange(holds_back_, false)) SetCork(fd_, false);
}

int Connection::TakeSocket(std::span<const std::byte> last) {
  // Query again: a request made since the last wait may have been sent only in part.
  if (state_ == State::kConnected) GetInterest();
  if (state_ != State::kConnected || fd_ < 0 || wants_write_) return -1;
  incomplete_reply_ = replies_.Incomplete();
  // Send `last` first: a contender may be waiting for its effect, and the next steps, which need
  // descriptors, may fail.
  if (!last.empty() && send(fd_, last.data(), last.size(), MSG_NOSIGNAL | MSG_DONTWAIT) !=
                           static_cast<ssize_t>(last.size())) {
    return -1;
  }
  SendNow();
  UniqueFd socket(fcntl(fd_, F_DUPFD_CLOEXEC, 3));
  if (!socket) return -1;
  const UniqueFd dead = DeadSocket();
  if (!dead) return -1;
  if (dup3(dead.get(), fd_, O_CLOEXEC) < 0) return -1;
  zookeeper_process(handle_, ZOOKEEPER_READ);
  Fail({AttemptEnd::How::kClosed});
  return socket.Release();
}

std::string_view ClientLibraryVersion() { return ZOO_VERSION; }

}  // namespace zklock::zookeeper

// The linker redirects these calls here. After a malformed frame, the connection looks broken to
// the library: it does not see the frame's last bytes, and reads no more.
extern "C" {
ssize_t __real_recv(int socket, void* buffer, size_t size, int flags);  // NOLINT

ssize_t __wrap_recv(int socket, void* buffer, size_t size, int flags) {  // NOLINT
  const ssize_t received = __real_recv(socket, buffer, size, flags);
  auto* const check = zklock::zookeeper::check_of_library;
  if (check == nullptr || received <= 0 ||
      check->Feed(static_cast<const std::byte*>(buffer), static_cast<std::size_t>(received))) {
    return received;
  }
  errno = EBADMSG;
  return -1;
}

// The library passes AI_ADDRCONFIG, for which the C library lists all addresses of the host, twice
// for each connect. A Connection gives it only a numeric address, which needs none of this.
int __real_getaddrinfo(const char* node, const char* service, const addrinfo* hints,  // NOLINT
                       addrinfo** found);

int __wrap_getaddrinfo(const char* node, const char* service, const addrinfo* hints,  // NOLINT
                       addrinfo** found) {
  if (hints != nullptr && (hints->ai_flags & AI_ADDRCONFIG) != 0) {
    addrinfo numeric = *hints;
    numeric.ai_flags = (hints->ai_flags & ~AI_ADDRCONFIG) | AI_NUMERICHOST;
    if (__real_getaddrinfo(node, service, &numeric, found) == 0) return 0;
  }
  return __real_getaddrinfo(node, service, hints, found);
}
}
