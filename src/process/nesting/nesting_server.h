#pragma once

#include <poll.h>
#include <sys/epoll.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/event_source.h"
#include "base/unique_fd.h"
#include "process/nesting/run_connection.h"
#include "process/tree/process_tree.h"
#include "protocol/nesting.h"

namespace zklock::process {

/// Admits nested runs: zklocks that descend from this process, or from the owner of --hold, and run
/// under the locks that are held here. Each nested run keeps its connection open until none of its
/// processes is left, so that the server knows when the locks may be released. Nested runs are sent
/// the lease, and end their commands when the server tells them to or is gone.
///
/// Every process on the host can connect. Therefore, once a connection has been refused, others are
/// accepted at a limited rate, and a client whose connection is closed without an answer may ask
/// again.
///
///   kClosed -> kOpen -> kDraining -> kEnded;  kOpen -> kEnded
class NestingServer final : public EventSource {
 public:
  enum class State {
    kClosed,    ///< clients wait for an answer
    kOpen,      ///< every descendant of `root` may run
    kDraining,  ///< only descendants of nested runs may run: they end before the nested runs
    kEnded,     ///< no new runs; running ones have been told to end
  };

  /// `name`: the socket's name. `root`: this process, or the owner of --hold. `before_run`, which
  /// may be empty, is called with the connection of each nested run before the run is admitted.
  /// Throws std::system_error.
  NestingServer(const std::string& name, ProcessId root, std::function<void(int)> before_run = {});
  ~NestingServer() override;

  /// Begins to admit nested runs: the locks are now held, under this lease, by the contenders
  /// `nodes` (paths with the chroot).
  void Open(std::vector<std::string> nodes, const protocol::NestingLease& lease);
  /// Sends the lease to the nested runs if it has changed.
  void SetLease(const protocol::NestingLease& lease);
  /// Must be called when the locks will be released as soon as the nested runs have ended.
  void Drain();
  /// Ends the nested runs: the locks are lost, or must be released soon.
  void End();

  [[nodiscard]] State state() const { return state_; }
  /// Returns the pids of the nested zklocks, without duplicates. A command that has outlived its
  /// zklock and guard is listed with its own pid.
  [[nodiscard]] std::vector<pid_t> Runs() const;
  /// Returns whether a process is one of these, or a descendant of one.
  [[nodiscard]] bool IsBelowRun(pid_t process) const;
  /// Whether the owner of --hold, or one of its descendants, has requested the release (zklock
  /// release).
  [[nodiscard]] bool release_requested() const { return release_requested_; }

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  struct Connection {
    RunConnection link;
    ProcessId peer;
    bool runs = false;     // it has been admitted
    bool is_over = false;  // to be forgotten
  };

  void Accept();
  void PauseAccepting(Duration pause);
  bool Admit(UniqueFd socket);
  void Serve(Connection& connection);
  bool Answer(Connection& connection, const protocol::NestingRequest& request);
  void SeeEnd(Connection& run);
  [[nodiscard]] bool MayRun(const Connection& connection, const std::string& node) const;
  void Watch(int fd, short events = POLLIN, int operation = EPOLL_CTL_ADD);
  void Unwatch(int fd);

  const ProcessId root_;
  const std::function<void(int)> before_run_;
  UniqueFd epoll_;
  UniqueFd listener_;
  TimePoint accept_again_ = kNever;  // set during a pause: see Accept()
  std::set<uid_t> strangers_;        // users whose connections are closed unread
  TimePoint strangers_end_ = TimePoint::min();
  State state_ = State::kClosed;
  std::vector<std::string> nodes_;
  protocol::NestingLease lease_;
  std::vector<std::unique_ptr<Connection>> connections_;
  bool release_requested_ = false;
};

}  // namespace zklock::process
