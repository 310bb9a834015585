#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace zklock::process {

// Sockets between a zklock that holds a lock and those that run below it: SOCK_SEQPACKET, with a
// name in Linux's abstract namespace, which vanishes with the last process that has it open. All
// are close-on-exec and do not block.

/// The process at the other end: for a client the one that listens, for a server the one that
/// connected.
struct SocketPeer {
  pid_t pid = 0;  ///< 0: of a PID namespace that we do not see
  uid_t uid = 0;
};

/// Throws std::system_error when the system refuses.
[[nodiscard]] UniqueFd ListenAt(const std::string& name);
/// None when nobody listens there, or too many wait for an answer already.
[[nodiscard]] UniqueFd ConnectTo(const std::string& name);
/// None when the kernel does not tell.
[[nodiscard]] std::optional<SocketPeer> PeerOf(int socket);

/// Never blocks and never raises PIPE. False when it was not sent.
bool SendText(int socket, std::string_view text);

/// What ReceiveText() found.
struct ReceivedText {
  std::optional<std::string> text;  ///< none: nothing there now
  bool is_closed = false;           ///< the other end has closed
};
[[nodiscard]] ReceivedText ReceiveText(int socket);

}  // namespace zklock::process
