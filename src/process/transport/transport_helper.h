#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "process/transport/transport_spec.h"
#include "process/tree/process_tree.h"
#include "zookeeper/transport.h"

namespace zklock::process {

/// Child processes that pass bytes between a connection and a server. They are reaped some time
/// after they were told to end, because there is no time to wait for one while a lease runs.
class HelperProcesses {
 public:
  HelperProcesses() = default;
  /// Waits up to five seconds for the processes that were told to end, and kills the rest.
  ~HelperProcesses();
  HelperProcesses(const HelperProcesses&) = delete;
  HelperProcesses& operator=(const HelperProcesses&) = delete;

  void Add(pid_t helper);
  /// Sends the helper a signal that ends it.
  void End(pid_t helper, int signal_number);
  /// Reaps the helpers that have ended.
  void Reap();
  /// The exit status of the last helper that was reaped with a status other than 0; 0 if there has
  /// been none since ForgetFailure().
  [[nodiscard]] int last_failure() const { return last_failure_; }
  void ForgetFailure() { last_failure_ = 0; }

 private:
  int last_failure_ = 0;
  std::vector<pid_t> ended_;  // told to end, not reaped yet
};

/// Runs a proxy command for each connection.
///
/// A proxy command gets a session of its own, without the terminal: Ctrl-C must not cut the
/// connection of a lock before the command under the lock has ended. The monitor, a process between
/// the proxy command and zklock, ends the proxy command's process group when the connection is over
/// or zklock is gone: first with HUP, as ssh does, then with KILL. Both run in "/" from the start,
/// since zklock also leaves its own working directory.
class ProxyTransport final : public zookeeper::Transport {
 public:
  /// `command`: see TransportSpec.
  explicit ProxyTransport(std::string command) : command_(std::move(command)) {}
  std::unique_ptr<zookeeper::Helper> Start(const zookeeper::Endpoint& endpoint,
                                           UniqueFd socket) override;
  int LastFailure() override;

 private:
  class Proxy;

  const std::string command_;
  HelperProcesses monitors_;
};

/// Runs zklock-transport for each connection. That program exits at the end of its standard input.
/// With a proxy command, it uses the command's connection.
class ProgramTransport final : public zookeeper::Transport {
 public:
  explicit ProgramTransport(TransportSpec spec);
  std::unique_ptr<zookeeper::Helper> Start(const zookeeper::Endpoint& endpoint,
                                           UniqueFd socket) override;
  int LastFailure() override;

 private:
  class Program;

  const TransportSpec spec_;
  const std::string file_;
  std::unique_ptr<ProxyTransport> proxy_;
  HelperProcesses programs_;
};

/// Returns null if zklock connects to the servers itself.
[[nodiscard]] std::unique_ptr<zookeeper::Transport> MakeTransport(const TransportSpec& spec);

/// Returns whether a process connects this or another zklock to its servers. Such a process ends by
/// itself when that zklock does.
[[nodiscard]] bool IsTransportHelper(const ProcessStat& process);

/// Returns whether `pid` is a child of this process that belongs to its connection to the servers.
[[nodiscard]] bool IsOwnHelper(pid_t pid);

}  // namespace zklock::process
