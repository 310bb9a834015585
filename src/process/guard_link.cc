#include "process/guard_link.h"

#include <sys/socket.h>

#include <cerrno>

#include "process/system_error.h"

namespace zklock::process {

GuardSocket MakeGuardSocket() {
  int ends[2];
  Check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), "socketpair");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

bool Send(int socket, const Message& message) {
  return send(socket, &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof message);
}

Received Receive(int socket) {
  Message message;
  for (;;) {
    const ssize_t size = recv(socket, &message, sizeof message, MSG_DONTWAIT);
    if (size == static_cast<ssize_t>(sizeof message)) return {message, false};
    // ECONNRESET, once: it has gone and left messages of ours unread. Its own are still there.
    if (size < 0 && (errno == EINTR || errno == ECONNRESET)) continue;
    if (size < 0 && errno == EAGAIN) return {std::nullopt, false};
    return {std::nullopt, true};
  }
}

}  // namespace zklock::process
