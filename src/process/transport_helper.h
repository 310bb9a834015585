#pragma once

#include <sys/types.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "process/transport_spec.h"
#include "zookeeper/transport.h"

namespace zklock::process {

/// Runs a proxy command for each connection.
///
/// A command gets a session of its own, without the terminal: Ctrl-C must not cut the connection of
/// a lock before the command under the lock has ended. A process between it and zklock, the minder,
/// ends its process group when the connection is over or zklock is gone, first with HUP, as ssh
/// does, then with KILL. The working directory is "/" from the start, since zklock leaves its own.
class ProxyTransport final : public zookeeper::Transport {
 public:
  explicit ProxyTransport(TransportSpec spec) : spec_(std::move(spec)) {}
  /// Waits a moment until all commands have ended. All helpers are gone by then.
  ~ProxyTransport() override;
  ProxyTransport(const ProxyTransport&) = delete;
  ProxyTransport& operator=(const ProxyTransport&) = delete;

  std::unique_ptr<zookeeper::Helper> Start(const zookeeper::Endpoint& endpoint,
                                           UniqueFd socket) override;

 private:
  class Proxy;

  void End(pid_t minder);
  void Reap();

  const TransportSpec spec_;
  std::vector<pid_t> ended_;  // minders that were told to end, not reaped yet
};

/// Null if zklock connects to the servers itself.
[[nodiscard]] std::unique_ptr<zookeeper::Transport> MakeTransport(const TransportSpec& spec);

/// Whether `pid` is a child of this process that belongs to its connection to the servers.
[[nodiscard]] bool IsTransportHelper(pid_t pid);

}  // namespace zklock::process
