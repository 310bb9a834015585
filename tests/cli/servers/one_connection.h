#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "support/peer.h"

namespace zklock::test {

/// Keeps a zklock to one connection through `proxy`, even if the server is slow to close its
/// session. Before zklock connects again, it waits for the answer to the close for three times as
/// long as its handshake took, but for a second at most. With handshakes of 400 ms, it waits for
/// the full second.
inline void KeepToOneConnection(Proxy& proxy) {
  proxy.EditReplies([](const std::string& request, std::string reply) {
    if (request == "connect") std::this_thread::sleep_for(std::chrono::milliseconds(400));
    return std::optional(std::move(reply));
  });
}

}  // namespace zklock::test
