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

/// Where a run for a command and a keeper differ on the way to their locks.
struct AcquireTask {
  /// The locks are for this process: what it or its ancestors hold is not queued for.
  pid_t beneficiary = 0;
  /// The run ends when an existing hold of the beneficiary's shell ends. Otherwise the LOCK is only
  /// left out: it is that shell's already.
  bool depends_on_existing_holds = false;
  /// What to write in the contenders.
  std::function<std::string(const cli::WantedLock&)> contender_data;
  /// Asked after each event of the wait: nobody wants the locks any more. May be empty.
  std::function<bool()> is_cancelled{};
  /// Is forked on the way, with its guard, so that it can begin as soon as the locks are held. May
  /// be null.
  PreforkedCommand* command = nullptr;
  /// Without a command: forks the guard, unless it is there; may throw std::system_error. Called
  /// before each create of a contender.
  std::function<void()> fork_guard{};
};

/// All LOCKs are held: by contenders of our session, by ancestors (RunContext::ancestors), or both.
/// Or all are reserved, and the session is closed.
struct HeldLocks {
  std::unique_ptr<SessionDriver> session_driver;  ///< null if ancestors hold all of them
  std::vector<lock::Ticket> tickets{};            ///< of that session
  std::vector<std::string> passed{};              ///< contenders in turnstiles, to be deleted
  /// With --reserve, and then instead of all of the above: the reservations.
  std::vector<lock::Ticket> reserved{};

  [[nodiscard]] std::string DisplayPath() const { return DisplayPaths(tickets); }
};

/// Leaves out the LOCKs that are held for the beneficiary already, and queues for the others until
/// all are held, or reserved with --reserve. Throws Exit if they were not acquired, and
/// cli::UsageError where waiting would never end; the session is closed then.
[[nodiscard]] HeldLocks AcquireLocks(RunContext& context, const AcquireTask& task);

}  // namespace zklock::commands
