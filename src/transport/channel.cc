#include "transport/channel.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>

#include "base/transport_interface.h"

namespace zklock::transport {
namespace {

[[noreturn]] void FailErrno(int error) { throw Failure(std::generic_category().message(error)); }

void WriteLine(std::string text) {
  text += '\n';
  while (write(STDERR_FILENO, text.data(), text.size()) < 0 && errno == EINTR) {
  }
}

Channel::Result ResultOf(ssize_t size, Channel::State wanted) {
  if (size > 0) return {Channel::State::kDone, static_cast<std::size_t>(size)};
  if (size == 0) return {Channel::State::kEnd};
  if (errno == EAGAIN || errno == EINTR) return {wanted};
  FailErrno(errno);
}

/// The buffer for one direction of Relay(): bytes that have been read but not yet written.
class Buffer {
 public:
  [[nodiscard]] bool IsEmpty() const { return begin_ == end_; }
  [[nodiscard]] std::span<char> Room() { return bytes_; }
  [[nodiscard]] std::span<const char> Rest() const {
    return std::span(bytes_).subspan(begin_, end_ - begin_);
  }
  void Filled(std::size_t size) {
    begin_ = 0;
    end_ = size;
  }
  void Taken(std::size_t size) { begin_ += size; }

 private:
  std::array<char, 16384> bytes_{};
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

/// The loop of Relay(), with the events to wait for on each side.
class RelayLoop {
 public:
  explicit RelayLoop(Channel& channel) : channel_(channel) {}

  void Run() {
    while (!is_over_) {
      zklock_events_ = 0;
      server_events_ = 0;
      bool progressed = FromServer();
      progressed = ToServer() || progressed;
      if (!progressed && !is_over_) Wait();
    }
  }

 private:
  bool FromServer() {
    bool progressed = false;
    if (to_zklock_.IsEmpty()) {
      const Channel::Result result = channel_.Read(to_zklock_.Room());
      if (result.state == Channel::State::kEnd) is_over_ = true;
      if (!Note(result.state)) return false;
      to_zklock_.Filled(result.size);
      progressed = true;
    }
    const std::span<const char> rest = to_zklock_.Rest();
    const ssize_t size = send(kZklock, rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size > 0) {
      to_zklock_.Taken(static_cast<std::size_t>(size));
      return true;
    }
    if (errno == EAGAIN || errno == EINTR) {
      zklock_events_ |= POLLOUT;
    } else {
      is_over_ = true;
    }
    return progressed;
  }

  bool ToServer() {
    bool progressed = false;
    if (to_server_.IsEmpty()) {
      const std::span<char> room = to_server_.Room();
      const ssize_t size = recv(kZklock, room.data(), room.size(), MSG_DONTWAIT);
      if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
        zklock_events_ |= POLLIN;
        return false;
      }
      if (size <= 0) {
        channel_.Close();
        is_over_ = true;
        return false;
      }
      to_server_.Filled(static_cast<std::size_t>(size));
      progressed = true;
    }
    const Channel::Result result = channel_.Write(to_server_.Rest());
    if (result.state == Channel::State::kEnd) is_over_ = true;
    if (!Note(result.state)) return progressed;
    to_server_.Taken(result.size);
    return true;
  }

  /// Returns whether the call made progress; if not, records the server socket's event to wait for.
  bool Note(Channel::State state) {
    if (state == Channel::State::kWantsRead) server_events_ |= POLLIN;
    if (state == Channel::State::kWantsWrite) server_events_ |= POLLOUT;
    return state == Channel::State::kDone;
  }

  void Wait() const {
    // A side without events gets descriptor -1; otherwise, poll() would report its hangup.
    std::array<pollfd, 2> polled = {
        {{zklock_events_ != 0 ? kZklock : -1, zklock_events_, 0},
         {server_events_ != 0 ? channel_.fd() : -1, server_events_, 0}}};
    poll(polled.data(), polled.size(), -1);
  }

  Channel& channel_;
  Buffer to_server_;
  Buffer to_zklock_;
  short zklock_events_ = 0;
  short server_events_ = 0;
  bool is_over_ = false;
};

}  // namespace

Channel::Result PlainChannel::Read(std::span<char> buffer) {
  return ResultOf(recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT),
                  State::kWantsRead);
}

Channel::Result PlainChannel::Write(std::span<const char> data) {
  return ResultOf(send(socket_.get(), data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT),
                  State::kWantsWrite);
}

void Report(std::string text) {
  // Names in a certificate are untrusted text, which must not add lines.
  const auto is_control = [](char byte) { return static_cast<unsigned char>(byte) < ' '; };
  std::replace_if(text.begin(), text.end(), is_control, '?');
  WriteLine(std::string(transport_interface::kDiscardLine) + '\n' + text);
}

void DiscardReport() { WriteLine(transport_interface::kDiscardLine); }

void WaitFor(int fd, short events) {
  std::array<pollfd, 2> polled = {{{fd, events, 0}, {kZklock, POLLRDHUP, 0}}};
  while (polled[0].revents == 0) {
    poll(polled.data(), polled.size(), -1);
    if (polled[1].revents != 0) std::exit(0);
  }
}

void WaitFor(const Channel& channel, Channel::State state) {
  if (state == Channel::State::kWantsRead) WaitFor(channel.fd(), POLLIN);
  if (state == Channel::State::kWantsWrite) WaitFor(channel.fd(), POLLOUT);
}

UniqueFd ConnectTo(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(address.substr(0, colon).c_str(), address.substr(colon + 1).c_str(),
                                &hints, &found);
  if (error != 0) throw Failure(gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(found, freeaddrinfo);
  UniqueFd connection(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!connection) FailErrno(errno);
  const int yes = 1;
  setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (connect(connection.get(), found->ai_addr, found->ai_addrlen) != 0) {
    if (errno != EINPROGRESS) FailErrno(errno);
    WaitFor(connection.get(), POLLOUT);
    int failed = 0;
    socklen_t size = sizeof failed;
    getsockopt(connection.get(), SOL_SOCKET, SO_ERROR, &failed, &size);
    if (failed != 0) FailErrno(failed);
  }
  return connection;
}

void WriteAll(Channel& channel, std::span<const char> data) {
  while (!data.empty()) {
    const Channel::Result result = channel.Write(data);
    if (result.state == Channel::State::kEnd) FailErrno(EPIPE);
    data = data.subspan(result.size);
    WaitFor(channel, result.state);
  }
}

void WriteAllToZklock(std::span<const char> data) {
  while (!data.empty()) {
    const ssize_t size = send(kZklock, data.data(), data.size(), MSG_NOSIGNAL);
    if (size < 0 && errno != EINTR) std::exit(0);
    if (size > 0) data = data.subspan(static_cast<std::size_t>(size));
  }
}

void Relay(Channel& channel) { RelayLoop(channel).Run(); }

}  // namespace zklock::transport
