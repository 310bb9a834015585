#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/child.h"
#include "support/peer.h"
#include "support/server.h"

namespace zklock::test {

/// A proxy that lets the test choose the session timeouts that a server grants.
class Regranted {
 public:
  /// `grants`: the timeouts for the first connects, in ms and in order; the server chooses the
  /// others. The second connect is the client's reconnect.
  explicit Regranted(const std::string& server, std::vector<std::uint32_t> grants = {})
      : proxy_(server) {
    struct State {
      std::size_t connects = 0;
      int heartbeats = 0;
      std::promise<void> is_confirmed;
    };
    const auto state = std::make_shared<State>();
    is_confirmed_ = state->is_confirmed.get_future();
    proxy_.EditReplies([state, grants = std::move(grants)](const std::string& request,
                                                           std::string reply) {
      if (request == "connect" && state->connects++ < grants.size()) {
        const std::uint32_t granted = grants[state->connects - 1];
        for (std::size_t i = 0; i < 4; ++i) {  // after the length and the protocol version
          reply[8 + i] = static_cast<char>(granted >> (24 - 8 * i));
        }
      } else if (state->connects == 2 && request.starts_with("check") && ++state->heartbeats == 2) {
        state->is_confirmed.set_value();
      }
      return std::optional(std::move(reply));
    });
  }

  [[nodiscard]] Proxy& proxy() { return proxy_; }
  /// Cuts the connection. Returns when a waiter that is next in line has found its contender over a
  /// new connection, and has then sent a heartbeat because its lease was running out.
  void CutUntilLeaseIsShort() {
    proxy_.Cut();
    if (is_confirmed_.wait_for(kPatience) != std::future_status::ready) {
      throw std::runtime_error("no second heartbeat on a second connection");
    }
  }

 private:
  Proxy proxy_;
  std::future<void> is_confirmed_;
};

}  // namespace zklock::test
