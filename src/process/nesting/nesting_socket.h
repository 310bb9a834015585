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

/// The process at the other end: the listener for a client, the client for a server. The kernel
/// recorded the process when it began to listen or connected; it may have ended since.
struct SocketPeer {
  pid_t pid = 0;  ///< 0: in a PID namespace that is not visible from here
  uid_t uid = 0;
  UniqueFd process{};  ///< a pidfd; none before Linux 6.5
};

/// Returns a listening socket with this name. Throws std::system_error.
[[nodiscard]] UniqueFd ListenAt(const std::string& name);
/// Connects to the socket of this name. Returns none and sets errno if no process listens there, or
/// if the queue of connections is still full after a tenth of a second (EAGAIN).
[[nodiscard]] UniqueFd ConnectTo(const std::string& name);
/// Returns the peer; none if the kernel cannot identify it, or reports that the process has ended.
[[nodiscard]] std::optional<SocketPeer> PeerOf(int socket);
/// Returns false if the process has ended, so that its pid may belong to another process. Returns
/// true if the kernel cannot tell.
[[nodiscard]] bool IsThere(const SocketPeer& peer);

/// Sends a text. Never blocks, never raises SIGPIPE. Returns whether the text was sent.
bool SendText(int socket, std::string_view text);

/// What ReceiveText() found.
struct ReceivedText {
  std::optional<std::string> text;  ///< none: nothing has arrived
  bool is_closed = false;           ///< the other end is closed
};
[[nodiscard]] ReceivedText ReceiveText(int socket);
/// Returns the next text without removing it; empty if there is none.
[[nodiscard]] std::string PeekText(int socket);

}  // namespace zklock::process
