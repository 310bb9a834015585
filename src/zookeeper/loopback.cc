#include "zookeeper/loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>

namespace zklock::zookeeper {
namespace {

// Leaves room for connections from other processes, so that they cannot easily block this process's
// own connection.
constexpr int kBacklog = 64;

using Name = int (*)(int, sockaddr*, socklen_t*);

/// Returns all zeros if the socket is no longer connected, or is not an IPv4 socket.
sockaddr_in NameBy(Name name, int socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (name(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  return address;
}

bool IsPeer(int accepted, int socket) {
  const sockaddr_in there = NameBy(getpeername, accepted);
  const sockaddr_in here = NameBy(getsockname, socket);
  return here.sin_family == AF_INET && here.sin_port == there.sin_port &&
         here.sin_addr.s_addr == there.sin_addr.s_addr;
}

}  // namespace

LoopbackListener::LoopbackListener()
    : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (!socket_ ||
      bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(socket_.get(), kBacklog) != 0) {
    throw std::system_error(errno, std::generic_category(), "a loopback socket");
  }
  address_ = "127.0.0.1:" + std::to_string(ntohs(NameBy(getsockname, socket_.get()).sin_port));
}

UniqueFd LoopbackListener::Accept(int socket) const {
  for (;;) {
    UniqueFd accepted(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!accepted) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN) return {};
      throw std::system_error(errno, std::generic_category(), "accept");
    }
    if (!IsPeer(accepted.get(), socket)) continue;
    // Most helpers pass on each piece as it arrives. Nagle's algorithm would delay the second of
    // two replies.
    const int yes = 1;
    setsockopt(accepted.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    return accepted;
  }
}

}  // namespace zklock::zookeeper
