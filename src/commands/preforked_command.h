#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "commands/run_context.h"
#include "commands/shared_session.h"
#include "process/cgroup.h"
#include "process/command_spec.h"
#include "process/supervisor.h"
#include "zookeeper/session.h"

namespace zklock::commands {

/// The command of a run and its guard, forked while the servers commit what may give us the lock,
/// and kept while our turn is near: two forks take as long as a commit.
///
/// Where the first contender may be the holder they are forked even before it is created, while the
/// servers make the session. The guard has left zklock's process group by then: if that group is
/// killed, the guard closes the session.
class PreforkedCommand {
 public:
  /// `context` outlives it; after an addition to its ancestors, call Discard(). `executable`: from
  /// FindExecutable.
  PreforkedCommand(RunContext& context, std::string executable)
      : context_(context), executable_(std::move(executable)), shared_(context.options.server) {}

  /// --contain require, before the wait: throws process::CgroupUnavailable where the command cannot
  /// have a cgroup.
  void RequireCgroup();
  /// Before a contender exists: finds where the command's cgroup can be made (--contain), and ends
  /// what killed zklocks have left there. Does nothing if called again.
  void FindCgroup();
  /// Whether the command is to run in a cgroup, by what FindCgroup() has found.
  [[nodiscard]] bool HasCgroup() const { return !cgroup_parent_.empty(); }

  /// For a new session: the first contender to be created may be the holder.
  void PrepareEarly(const zookeeper::Session& session);
  /// After each event of the wait: forks the two when it is time, and ends them when another
  /// contender is to hold.
  void OnProgress(bool is_near_turn, const zookeeper::Session& session);
  /// When a contender is about to be created: waits until the guard has left the process group.
  /// `may_hold`: it is the last contender that the locks need, so the two are forked if that has
  /// not been done.
  void OnJoining(const zookeeper::Session& session, bool may_hold);
  void Discard() { supervisor_.reset(); }

  /// For a run under the locks of `session`: as Supervisor::Await().
  void FinishForks(const zookeeper::Session& session, TimePoint lease_end);
  /// For a run under reservations, or under locks that only ancestors hold.
  void FinishForksWithoutSession();
  /// After either of these.
  [[nodiscard]] process::Supervisor& supervisor() { return *supervisor_; }

 private:
  void Prepare(Duration session_timeout);
  void TryPrepare(Duration session_timeout);
  void ReportContainment() const;
  /// The grace that a session time-out of ours and the ancestors' leases allow.
  [[nodiscard]] Duration GraceWith(Duration session_timeout) const;
  [[nodiscard]] process::CommandSpec Spec(Duration grace) const;

  RunContext& context_;
  const std::string executable_;
  SharedSession shared_;
  bool has_searched_ = false;
  std::string cgroup_parent_;                   // empty: the command gets no cgroup
  std::optional<process::NoCgroup> no_cgroup_;  // why, if --contain is not off
  std::unique_ptr<process::Supervisor> supervisor_;
  bool is_early_ = false;  // no contender has been created yet, and the first may be the holder
};

}  // namespace zklock::commands
