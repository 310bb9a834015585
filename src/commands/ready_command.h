#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "cli/options.h"
#include "commands/outer_locks.h"
#include "process/executable.h"
#include "process/signals.h"
#include "process/supervisor.h"
#include "zookeeper/session.h"

namespace zklock::commands {

/// The command of a run and its guard, forked while the servers commit what may give us the lock:
/// two forks take as long as a commit does.
class ReadyCommand {
 public:
  /// All outlive it. What is added to `outer` later needs a Discard().
  ReadyCommand(const cli::RunOptions& options, const process::Signals& signals,
               const OuterLocks& outer)
      : options_(options), signals_(signals), outer_(outer) {}

  /// From FindExecutable; before all below.
  void SetExecutable(std::string executable) { executable_ = std::move(executable); }
  /// For Waiting: forks them when it is time, and ends them when the lock is somebody else's.
  void OnProgress(bool is_about_to_hold, const zookeeper::Session& session);
  void Discard() { supervisor_.reset(); }

  /// For a run under `session`'s locks: as Supervisor::Await().
  void Await(const zookeeper::Session& session, TimePoint lease_end);
  /// For one under outer zklocks' alone.
  void AwaitNested();
  /// From then on.
  [[nodiscard]] process::Supervisor& supervisor() { return *supervisor_; }

 private:
  void Prepare(const zookeeper::Session& session);
  [[nodiscard]] process::CommandSpec Spec(Duration session_timeout) const;

  const cli::RunOptions& options_;
  const process::Signals& signals_;
  const OuterLocks& outer_;
  std::string executable_;
  std::unique_ptr<process::Supervisor> supervisor_;
  std::int64_t session_ = 0;  // those that the guard knows
  Duration timeout_{};
};

}  // namespace zklock::commands
