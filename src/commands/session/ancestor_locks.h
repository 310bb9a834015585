#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cli/options/options.h"
#include "lock/data/ticket.h"
#include "process/loop/event_loop.h"
#include "process/nesting/nesting_link.h"

namespace zklock::commands {

/// Returns the LOCKs as the user knows them, separated by ", ".
[[nodiscard]] std::string DisplayPaths(const std::vector<lock::Ticket>& tickets);
[[nodiscard]] std::string DisplayPaths(const std::vector<cli::WantedLock>& locks);

/// The locks that ancestor zklocks, or a keeper, hold for a run; each is proven by a link to the
/// process that holds it. The run must end when is_lost() returns true, and before lease_end().
class AncestorLocks {
 public:
  void Add(lock::Ticket ticket, std::unique_ptr<process::NestingLink> link);

  [[nodiscard]] bool empty() const { return links_.empty(); }
  [[nodiscard]] const std::vector<lock::Ticket>& tickets() const { return tickets_; }
  /// Returns all LOCKs, for messages.
  [[nodiscard]] std::string DisplayPath() const;
  /// Returns the earliest end of a lease; kNever if there are no leases.
  [[nodiscard]] TimePoint lease_end() const;
  /// Returns the time between the stop signal and KILL: `kill_after`, or less if the leases do not
  /// allow that much.
  [[nodiscard]] Duration GraceFor(Duration kill_after) const;
  /// Returns whether one of the locks is lost or released, or its holder is gone.
  [[nodiscard]] bool is_lost() const;
  /// Call once, before the command is executed: see NestingLink::NameCommand().
  void NameCommand(const process::ProcessId& command) const;
  /// Returns the links' descriptors: the locks are not released while any process has these open.
  [[nodiscard]] std::vector<int> descriptors() const;

  /// Notes that an ancestor holds `lock` as a reader, but this run queues for it as another reader,
  /// without a time limit (--no-nest). If it has to wait, it waits for a writer that waits for that
  /// ancestor, so the wait never ends.
  void QueueBeside(std::string lock) { queued_beside_.insert(std::move(lock)); }
  [[nodiscard]] bool IsQueuedBeside(const std::string& lock) const {
    return queued_beside_.count(lock) > 0;
  }

  void AddTo(process::EventLoop& loop) const;

 private:
  std::vector<lock::Ticket> tickets_;
  std::vector<std::unique_ptr<process::NestingLink>> links_;
  std::set<std::string> queued_beside_;
};

}  // namespace zklock::commands
