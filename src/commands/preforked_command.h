#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "cli/options.h"
#include "commands/ancestor_locks.h"
#include "commands/shared_session.h"
#include "process/executable.h"
#include "process/signals.h"
#include "process/supervisor.h"
#include "zookeeper/session.h"

namespace zklock::commands {

/// The command of a run and its guard, forked while the servers commit what may give us the lock:
/// two forks take as long as a commit does.
///
/// Where the first contender may be the holder they are forked even before it is created, while the
/// servers make the session: a KILL of zklock's process group, which the guard has left by then,
/// then finds a guard that closes the session.
class PreforkedCommand {
 public:
  /// All outlive it. What is added to `outer` later needs a Discard().
  PreforkedCommand(const cli::RunOptions& options, const process::Signals& signals,
                   const AncestorLocks& outer)
      : options_(options), signals_(signals), outer_(outer), shared_(options.server.access) {}

  /// From FindExecutable; before all below.
  void SetExecutable(std::string executable) { executable_ = std::move(executable); }
  /// With a session that is new: the first contender to be created may be the holder.
  void PrepareEarly(const zookeeper::Session& session);
  /// For Waiting: forks them when it is time, and ends them when the lock is somebody else's.
  void OnProgress(bool is_about_to_hold, const zookeeper::Session& session);
  /// For Waiting, when a contender is about to be created: waits for the guard to leave the group.
  void OnJoining(const zookeeper::Session& session);
  void Discard() { supervisor_.reset(); }

  /// For a run under `session`'s locks: as Supervisor::Await().
  void Await(const zookeeper::Session& session, TimePoint lease_end);
  /// For one under outer zklocks' alone.
  void AwaitNested();
  /// From then on.
  [[nodiscard]] process::Supervisor& supervisor() { return *supervisor_; }

 private:
  void Prepare(Duration session_timeout);
  void TryPrepare(Duration session_timeout);
  /// The grace that goes with a session time-out of ours.
  [[nodiscard]] Duration GraceWith(Duration session_timeout) const;
  [[nodiscard]] process::CommandSpec Spec(Duration grace) const;

  const cli::RunOptions& options_;
  const process::Signals& signals_;
  const AncestorLocks& outer_;
  std::string executable_;
  SharedSession shared_;
  std::unique_ptr<process::Supervisor> supervisor_;
  bool is_early_ = false;  // no contender has been created yet, and the first may be the holder
};

}  // namespace zklock::commands
