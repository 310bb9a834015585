#pragma once

#include <poll.h>

#include <memory>
#include <string>
#include <utility>

#include "base/event_source.h"
#include "base/unique_fd.h"
#include "process/tree/process_tree.h"
#include "protocol/nesting.h"

namespace zklock::process {

/// A nested zklock's connection to the ancestor that holds the lock.
///
///   kAsking -> kHeld -> kEnded;  kAsking -> kReleasing, kRefused, kEnded
class NestingLink final : public EventSource {
 public:
  enum class State {
    kAsking,     ///< no answer yet
    kHeld,       ///< this process runs under its lock, until lease().end at most
    kReleasing,  ///< it releases, as requested; see release()
    kRefused,    ///< it does not let nested runs begin (any more)
    kEnded,      ///< it is gone, or nested runs have to end now
  };

  /// Asks the process `holder`, which listens at `name`. `owner`: the owner of --hold, or the
  /// holder itself. None, with errno, if it does not listen there, runs as another user than root,
  /// this process or `owner`, or has too many connections (EAGAIN). Throws std::system_error.
  [[nodiscard]] static std::unique_ptr<NestingLink> Open(const std::string& name,
                                                         const ProcessId& holder,
                                                         const ProcessId& owner,
                                                         const protocol::NestingRequest& request);

  [[nodiscard]] State state() const { return state_; }
  /// In kHeld, and after it.
  [[nodiscard]] const protocol::NestingLease& lease() const { return lease_; }
  [[nodiscard]] const protocol::NestingRelease& release() const { return release_; }
  /// In kHeld, once: if every process that has the link open is killed, the holder waits for the
  /// end of this one before it releases.
  void NameCommand(const ProcessId& command) const;
  /// As long as any process has it open, the holder does not release.
  [[nodiscard]] int fd() const { return socket_.get(); }

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  explicit NestingLink(UniqueFd socket) : socket_(std::move(socket)) {}
  void Take(const std::string& text);

  UniqueFd socket_;
  State state_ = State::kAsking;
  protocol::NestingLease lease_;
  protocol::NestingRelease release_;
};

}  // namespace zklock::process
