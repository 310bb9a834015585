#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "commands/run/preforked_command.h"
#include "commands/session/run_context.h"
#include "commands/session/session_driver.h"
#include "lock/data/ticket.h"
#include "protocol/contender_name.h"

namespace zklock::commands {

/// How acquiring locks differs between a run with a command and a keeper.
struct AcquireTask {
  /// The process that the locks are for. The run does not queue for locks that this process or its
  /// ancestors already hold.
  pid_t beneficiary = 0;
  /// Whether the run ends when an existing hold of the beneficiary's shell ends. If not, the LOCK
  /// is merely left out, since that shell holds it already.
  bool depends_on_existing_holds = false;
  /// The data to write to a contender.
  std::function<std::string(const cli::WantedLock&)> contender_data;
  /// Called after each event of the wait; returns true if the locks are no longer wanted. May be
  /// empty.
  std::function<bool()> is_cancelled{};
  /// Forked during the wait, with its guard, so that it can begin as soon as the locks are held.
  /// May be null.
  PreforkedCommand* command = nullptr;
  /// Without a command: forks the guard unless already forked; may throw std::system_error. Called
  /// before each create of a contender.
  std::function<void()> fork_guard{};
};

/// All LOCKs are held: by contenders of our session, by ancestors (RunContext::ancestors), or both.
/// With --reserve, all are reserved instead, and the session is closed.
struct HeldLocks {
  std::unique_ptr<SessionDriver> session_driver;  ///< null: ancestors hold all, or all are reserved
  std::vector<lock::Ticket> tickets{};            ///< contenders of that session
  std::vector<std::string> passed{};              ///< contenders in turnstiles, to be deleted
  /// With --reserve: the reservations, instead of all of the above.
  std::vector<lock::Ticket> reserved{};

  [[nodiscard]] std::string DisplayPath() const { return DisplayPaths(tickets); }
};

/// Leaves out the LOCKs that are already held for the beneficiary, and queues for the others until
/// all are held, or reserved with --reserve. Throws Exit if they were not acquired, and
/// cli::UsageError if the wait would never end; in both cases, the session has been closed.
[[nodiscard]] HeldLocks AcquireLocks(RunContext& context, const AcquireTask& task);

}  // namespace zklock::commands
