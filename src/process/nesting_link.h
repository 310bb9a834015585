#pragma once

#include <poll.h>

#include <memory>
#include <string>
#include <utility>

#include "base/event_source.h"
#include "base/unique_fd.h"
#include "process/process_tree.h"
#include "protocol/nesting.h"

namespace zklock::process {

/// The way from a zklock to the one that holds a lock above it.
///
///   kAsking -> kHeld -> kEnded;  kAsking -> kReleasing, kRefused, kEnded
class NestingLink final : public EventSource {
 public:
  enum class State {
    kAsking,     ///< no answer yet
    kHeld,       ///< we run under its lock until lease().end at most
    kReleasing,  ///< it releases, as was asked; see release()
    kRefused,    ///< it lets nobody run under its lock (any more)
    kEnded,      ///< it has gone, or says that what runs under its lock has to end now
  };

  /// Asks the process `holder` that listens at `name`. None when it does not listen there, or
  /// somebody else does: neither root nor a user that we or `owner` run as. `owner`: of --hold, or
  /// the holder itself. Throws std::system_error.
  [[nodiscard]] static std::unique_ptr<NestingLink> Open(const std::string& name,
                                                         const ProcessId& holder,
                                                         const ProcessId& owner,
                                                         const protocol::NestingRequest& request);

  [[nodiscard]] State state() const { return state_; }
  /// Where it is kHeld, or was.
  [[nodiscard]] const protocol::NestingLease& lease() const { return lease_; }
  [[nodiscard]] const protocol::NestingRelease& release() const { return release_; }
  /// As long as anybody has it open, the holder does not release.
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
