#include "process/guard/guard_link.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "process/loop/system_error.h"

namespace zklock::process {

namespace {

// The socket's buffer is finite, and naming more processes would not help.
constexpr size_t kMostNamed = 32;

/// A message in the form that sendmsg(2) and recvmsg(2) expect, with room for one descriptor.
struct Envelope {
  explicit Envelope(Message& message) : data{&message, sizeof message} {
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = room.data();
    header.msg_controllen = room.size();
  }

  iovec data;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room{};
  msghdr header{};
};

UniqueFd DescriptorIn(Envelope& envelope) {
  int descriptor = -1;
  if (const cmsghdr* const control = CMSG_FIRSTHDR(&envelope.header);
      control != nullptr && control->cmsg_type == SCM_RIGHTS) {
    std::memcpy(&descriptor, CMSG_DATA(control), sizeof descriptor);
  }
  return UniqueFd(descriptor);
}

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

bool SendNestedRun(int socket, int connection) {
  Message message{.kind = Message::Kind::kNestedRun};
  Envelope envelope(message);
  cmsghdr* const control = CMSG_FIRSTHDR(&envelope.header);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(sizeof connection);
  std::memcpy(CMSG_DATA(control), &connection, sizeof connection);
  return sendmsg(socket, &envelope.header, MSG_DONTWAIT | MSG_NOSIGNAL) ==
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
    Envelope envelope(message);
    const ssize_t size = recvmsg(socket, &envelope.header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (size == static_cast<ssize_t>(sizeof message)) {
      return {message, false, DescriptorIn(envelope)};
    }
    // ECONNRESET is reported once if the other end was closed before it had read all messages from
    // this end. The messages that the other end sent can still be read.
    if (size < 0 && (errno == EINTR || errno == ECONNRESET)) continue;
    return {.message = std::nullopt, .is_closed = size >= 0 || errno != EAGAIN};
  }
}

}  // namespace zklock::process
