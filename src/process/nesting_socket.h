#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace zklock::process {

// Sockets between a zklock that holds a lock and the zklocks nested under it: SOCK_SEQPACKET, with
// a name in Linux's abstract namespace, which disappears with the last descriptor. All are
// close-on-exec and do not block.

/// The process at the other end: the listener for a client, the client for a server.
struct SocketPeer {
  pid_t pid = 0;  ///< 0: in a PID namespace that is not visible from here
  uid_t uid = 0;
};

/// Throws std::system_error.
[[nodiscard]] UniqueFd ListenAt(const std::string& name);
/// None if no process listens there, or the queue of connections is full.
[[nodiscard]] UniqueFd ConnectTo(const std::string& name);
/// None if the kernel refuses the information.
[[nodiscard]] std::optional<SocketPeer> PeerOf(int socket);

/// Never blocks and never raises PIPE. False if it was not sent.
bool SendText(int socket, std::string_view text);

/// What ReceiveText() found.
struct ReceivedText {
  std::optional<std::string> text;  ///< none: nothing has arrived
  bool is_closed = false;           ///< the other end is closed
};
[[nodiscard]] ReceivedText ReceiveText(int socket);

}  // namespace zklock::process
