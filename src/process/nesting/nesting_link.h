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
///   kAsking -> kHeld -> kEnded;  kAsking -> kReleasing, kRefused, kStranger, kEnded
class NestingLink final : public EventSource {
 public:
  enum class State {
    kAsking,     ///< no answer yet
    kHeld,       ///< this process runs under the holder's lock, until lease().end at most
    kReleasing,  ///< the holder is releasing the lock, as requested; see release()
    kRefused,    ///< the holder admits no nested runs, or no longer does
    kStranger,   ///< the holder does not see us below itself: /proc may hide us from it (hidepid)
    kEnded,      ///< the holder is gone, or nested runs must end now
  };

  /// Sends `request` to the process `holder`, which listens at `name`. `owner`: the owner of
  /// --hold, or the holder itself. Returns null and sets errno if the holder does not listen there,
  /// has too many connections (EAGAIN), or runs as a user other than root, this process's or the
  /// owner's. Throws std::system_error.
  [[nodiscard]] static std::unique_ptr<NestingLink> Open(const std::string& name,
                                                         const ProcessId& holder,
                                                         const ProcessId& owner,
                                                         const protocol::NestingRequest& request);

  [[nodiscard]] State state() const { return state_; }
  /// Valid in kHeld and after it.
  [[nodiscard]] const protocol::NestingLease& lease() const { return lease_; }
  [[nodiscard]] const protocol::NestingRelease& release() const { return release_; }
  /// Must be called once, in kHeld: if every process that has the link open is killed, the holder
  /// waits for `command` to end before it releases the lock.
  void NameCommand(const ProcessId& command) const;
  /// As long as any process has this descriptor open, the holder does not release the lock.
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
