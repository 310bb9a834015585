#include "process/nesting/nesting_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "process/loop/system_error.h"

namespace zklock::process {
namespace {

// The servers limit the length of a path only through the size of a request. Longer paths are
// refused here.
constexpr std::size_t kMostText = 16384;

// The option exists since Linux 6.5; this is its number in asm-generic/socket.h.
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

// How long to wait for a place in a listener's queue of connections.
constexpr timeval kConnectTime{.tv_sec = 0, .tv_usec = 100'000};

struct Address {
  sockaddr_un name{};
  socklen_t size = 0;
};

/// Returns none if the name is empty or too long.
std::optional<Address> AddressOf(const std::string& name) {
  Address address;
  address.name.sun_family = AF_UNIX;
  // The first byte stays 0, which makes the name abstract.
  if (name.empty() || name.size() + 1 > sizeof address.name.sun_path) return std::nullopt;
  std::memcpy(address.name.sun_path + 1, name.data(), name.size());
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

const sockaddr* AsAddress(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address.name);
}

}  // namespace

UniqueFd ListenAt(const std::string& name) {
  const auto address = AddressOf(name);
  if (!address) {
    errno = ENAMETOOLONG;
    ThrowErrno("naming a socket");
  }
  UniqueFd socket(
      Check(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "socket"));
  Check(bind(socket.get(), AsAddress(*address), address->size), "bind");
  Check(listen(socket.get(), SOMAXCONN), "listen");
  return socket;
}

UniqueFd ConnectTo(const std::string& name) {
  const auto address = AddressOf(name);
  if (!address) {
    errno = ENOENT;
    return {};
  }
  // Clients that block are served in turn; one that retried instead might never get a turn.
  UniqueFd socket(Check(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), "socket"));
  Check(setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kConnectTime, sizeof kConnectTime),
        "setsockopt");
  if (connect(socket.get(), AsAddress(*address), address->size) != 0) {
    if (errno == EINTR) errno = EAGAIN;
    return {};
  }
  Check(fcntl(socket.get(), F_SETFL, O_NONBLOCK), "fcntl");
  return socket;
}

std::optional<SocketPeer> PeerOf(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  SocketPeer peer{credentials.pid, credentials.uid};
  int process = -1;
  size = sizeof process;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &process, &size) == 0) {
    peer.process = UniqueFd(process);  // close-on-exec
  } else if (errno != ENOPROTOOPT) {
    return std::nullopt;  // the process no longer exists
  }
  return peer;
}

bool IsThere(const SocketPeer& peer) {
  pollfd polled{peer.process.get(), POLLIN, 0};
  return !peer.process || poll(&polled, 1, 0) == 0;
}

bool SendText(int socket, std::string_view text) {
  return send(socket, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

ReceivedText ReceiveText(int socket) {
  std::array<char, kMostText> buffer{};
  ssize_t size = recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
  // See PeekText().
  if (size < 0 && errno == ECONNRESET) {
    size = recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
  }
  if (size > 0) return {std::string(buffer.data(), static_cast<std::size_t>(size)), false};
  const bool is_open = size < 0 && (errno == EAGAIN || errno == EINTR);
  return {std::nullopt, !is_open};
}

std::string PeekText(int socket) {
  std::array<char, kMostText> buffer{};
  for (;;) {
    const ssize_t size = recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT | MSG_PEEK);
    if (size >= 0) return {buffer.data(), static_cast<std::size_t>(size)};
    // ECONNRESET is reported once if the other end was closed before it had read all texts from
    // this end. The texts that the other end sent can still be read.
    if (errno != EINTR && errno != ECONNRESET) return {};
  }
}

}  // namespace zklock::process
