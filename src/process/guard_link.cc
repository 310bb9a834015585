#include "process/guard_link.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "process/system_error.h"

namespace zklock::process {

namespace {

// The socket's buffer is finite, and naming more processes would help nobody.
constexpr size_t kMostNamed = 32;

}  // namespace

GuardSocket MakeGuardSocket() {
  int ends[2];
  Check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), "socketpair");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

bool Send(int socket, const Message& message) {
  return send(socket, &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof message);
}

void SendProcesses(int socket, Message::Kind kind, const std::vector<Survivor>& processes) {
  for (size_t i = 0; i < std::min(processes.size(), kMostNamed); ++i) {
    Message message{.kind = kind, .number = processes[i].pid};
    processes[i].name.copy(message.name.data(), message.name.size() - 1);
    Send(socket, message);
  }
}

void SendFailure(int socket, const std::system_error& error) {
  Message message{.kind = Message::Kind::kFailed, .number = error.code().value()};
  const std::string what = error.what();  // "operation: text"
  what.substr(0, what.find(':')).copy(message.name.data(), message.name.size() - 1);
  Send(socket, message);
}

Received Receive(int socket) {
  Message message;
  for (;;) {
    const ssize_t size = recv(socket, &message, sizeof message, MSG_DONTWAIT);
    if (size == static_cast<ssize_t>(sizeof message)) return {message, false};
    // ECONNRESET, once: the other end closed with messages of this end unread. What it sent itself
    // can still be read.
    if (size < 0 && (errno == EINTR || errno == ECONNRESET)) continue;
    if (size < 0 && errno == EAGAIN) return {std::nullopt, false};
    return {std::nullopt, true};
  }
}

}  // namespace zklock::process
