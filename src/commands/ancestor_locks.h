#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "lock/ticket.h"
#include "process/event_loop.h"
#include "process/nesting_link.h"

namespace zklock::commands {

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
