#include "zookeeper/word_query.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace zklock::zookeeper {
namespace {

struct AddressDeleter {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

/// Returns the socket's own address in numeric form; empty if it has none.
std::string OwnAddress(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::array<char, NI_MAXHOST> host{};
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host.data(), host.size(),
                  nullptr, 0, NI_NUMERICHOST) != 0) {
    return "";
  }
  return host.data();
}

bool IsWaiting(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

WordQuery::WordQuery(const Endpoint& endpoint, std::string_view word, std::size_t most,
                     TimePoint deadline, const Clock& clock, Transport* transport)
    : word_(word), most_(most), deadline_(deadline), clock_(clock) {
  try {
    if (transport == nullptr) {
      Connect(endpoint);
    } else {
      Start(endpoint, *transport);
    }
  } catch (const std::system_error&) {
    End(State::kFailed);
  }
}

void WordQuery::Connect(const Endpoint& endpoint) {
  const std::size_t colon = endpoint.address.rfind(':');
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(endpoint.address.substr(0, colon).c_str(),
                  endpoint.address.substr(colon + 1).c_str(), &hints, &found) != 0) {
    return End(State::kFailed);
  }
  const std::unique_ptr<addrinfo, AddressDeleter> address(found);
  socket_.Reset(socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket_ || (connect(socket_.get(), address->ai_addr, address->ai_addrlen) != 0 &&
                   errno != EINPROGRESS)) {
    End(State::kFailed);
  }
}

void WordQuery::Start(const Endpoint& endpoint, Transport& transport) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return End(State::kFailed);
  }
  socket_.Reset(ends[0]);
  // The word stays buffered until the helper is connected.
  helper_ = transport.Start(endpoint, UniqueFd(ends[1]));
}

EventSource::Interest WordQuery::GetInterest() {
  if (IsOver()) return {};
  if (helper_ != nullptr) (void)helper_->ErrorTail();
  return {.fd = socket_.get(),
          .events = static_cast<short>(state_ == State::kConnecting ? POLLOUT : POLLIN),
          .wake = deadline_};
}

void WordQuery::OnReady(short revents) {
  if (IsOver()) return;
  if (revents != 0) {
    if (state_ == State::kConnecting) {
      Send();
    } else {
      Read();
    }
  }
  if (!IsOver() && clock_.Now() >= deadline_) End(State::kFailed);
}

void WordQuery::Send() {
  // The four bytes either fit, or the connection has failed.
  const ssize_t size = send(socket_.get(), word_.data(), word_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (size < 0 && IsWaiting(errno)) return;
  if (size != static_cast<ssize_t>(word_.size())) return End(State::kFailed);
  if (helper_ == nullptr) own_address_ = OwnAddress(socket_.get());
  state_ = State::kReading;
}

void WordQuery::Read() {
  std::array<char, 4096> buffer;
  // One piece for each wake-up, so that an endless answer does not keep the other servers waiting.
  const ssize_t size = recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (size < 0 && IsWaiting(errno)) return;
  // Some servers reset the connection after the answer.
  if (size <= 0) return End(answer_.empty() ? State::kFailed : State::kAnswered);
  answer_.append(buffer.data(), static_cast<std::size_t>(size));
  if (answer_.size() > most_) End(State::kTooLong);
}

void WordQuery::End(State state) {
  if (state != State::kAnswered) answer_.clear();
  state_ = state;
  socket_.Reset();
  helper_.reset();
}

}  // namespace zklock::zookeeper
