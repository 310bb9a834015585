#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "cli/contender_data.h"
#include "lock/ticket.h"
#include "process/event_loop.h"
#include "process/identity.h"
#include "process/nesting_link.h"
#include "process/signals.h"
#include "protocol/held.h"

namespace zklock::commands {

/// A zklock is said to hold a LOCK for us: by our environment, or by the contender's data, which
/// anybody may have written. AskHolder() finds out whether it is true.
struct HolderClaim {
  std::string node;            ///< the contender's path, chroot included
  process::ProcessId holder;   ///< the process that holds
  std::string socket;          ///< where it listens
  process::ProcessId owner{};  ///< with --hold the owner, else the holder
};
[[nodiscard]] HolderClaim ClaimOf(const protocol::HeldLock& held);
/// None where the data names no owner, or one of another host, boot or PID namespace than ours.
[[nodiscard]] std::optional<HolderClaim> ClaimIn(const std::string& data, const std::string& node,
                                                 const process::Identity& self);

/// The process that is said to hold has ended.
struct HoldsNothing {};
/// It lets nothing (more) run under the lock; or for kRelease: we run under it ourselves.
struct Refuses {};
/// It lives, but does not prove that it holds: nobody answers at its socket, or another process.
struct NoProof {};
/// A signal ended the wait for the answer.
struct AskingStopped {
  int signal_number = 0;
};
/// The link is in the state kHeld or kReleasing.
using HolderAnswer = std::variant<std::unique_ptr<process::NestingLink>, HoldsNothing, Refuses,
                                  NoProof, AskingStopped>;

/// Asks the process that is said to hold, and waits so long for its answer.
[[nodiscard]] HolderAnswer AskHolder(const HolderClaim& claim, protocol::NestingRequest::Kind kind,
                                     Duration patience, process::Signals& signals);

/// The locks that zklocks above hold for a run, each proven by a link to the one that holds it.
/// What runs under them has to end when one of these says so or has gone, and before lease_end().
class AncestorLocks {
 public:
  void Add(lock::Ticket ticket, std::unique_ptr<process::NestingLink> link);

  [[nodiscard]] bool empty() const { return links_.empty(); }
  [[nodiscard]] const std::vector<lock::Ticket>& tickets() const { return tickets_; }
  /// As messages name them.
  [[nodiscard]] std::string DisplayPath() const;
  /// The first end of a lease; kNever without any.
  [[nodiscard]] TimePoint lease_end() const;
  /// The smallest T. Not to be called without any.
  [[nodiscard]] Duration session_timeout() const;
  /// One of them is no longer held for us.
  [[nodiscard]] bool is_lost() const;
  /// As long as anybody has these open, the locks are not released.
  [[nodiscard]] std::vector<int> descriptors() const;

  /// A zklock above holds `lock` as a reader, and this reader queues all the same, without limit
  /// (--no-nest). A writer that it waits for waits for that zklock, and so for ever.
  void QueueBeside(std::string lock) { queued_beside_.insert(std::move(lock)); }
  [[nodiscard]] bool IsQueuedBeside(const std::string& lock) const {
    return queued_beside_.count(lock) > 0;
  }

  void AddTo(process::EventLoop& loop) const;
  void RemoveFrom(process::EventLoop& loop) const;

 private:
  std::vector<lock::Ticket> tickets_;
  std::vector<std::unique_ptr<process::NestingLink>> links_;
  std::set<std::string> queued_beside_;
};

}  // namespace zklock::commands
