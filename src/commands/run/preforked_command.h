#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "commands/session/run_context.h"
#include "lock/several/acquisition.h"
#include "process/guard/supervisor.h"
#include "process/tree/cgroup.h"
#include "process/tree/command_spec.h"
#include "zookeeper/session.h"

namespace zklock::commands {

/// The cgroup in which that of a command is made, as far as can be seen without making one, by
/// --contain, which is not off; or why it gets none.
[[nodiscard]] std::variant<process::OwnCgroup, process::NoCgroup> FindCgroupParent(
    cli::Contain contain);

/// The command of a run and its guard, forked before the first contender is created, while the
/// servers make the session: if zklock is killed from then on, the guard closes the session. It has
/// left zklock's process group by then, which may be killed as a whole. A waiter whose turn is far
/// ends both again, until its turn is near: two forks take as long as a commit.
class PreforkedCommand {
 public:
  /// `context` outlives it; after an addition to its ancestors, call Discard(). `executable`: from
  /// FindExecutable.
  PreforkedCommand(RunContext& context, std::string executable)
      : context_(context), executable_(std::move(executable)) {}
  /// Leaves the guard running if the session may still be open (RunContext::session_for_guard).
  ~PreforkedCommand();
  PreforkedCommand(const PreforkedCommand&) = delete;
  PreforkedCommand& operator=(const PreforkedCommand&) = delete;

  /// --contain require, before the wait: throws process::CgroupUnavailable where the command cannot
  /// have a cgroup.
  void RequireCgroup();
  /// Before a contender exists: finds where the command's cgroup can be made (--contain), and ends
  /// what killed zklocks have left there. Does nothing if called again.
  void FindCgroup();
  /// Whether the command is to run in a cgroup, by what FindCgroup() has found.
  [[nodiscard]] bool HasCgroup() const { return !cgroup_parent_.empty(); }

  /// For a new session: forks the two while a server works on the request for it.
  void PrepareEarly(const zookeeper::Session& session);
  /// After each event of the wait: forks the two when our turn is near, and ends them when it is
  /// far.
  void OnProgress(const lock::Acquisition& acquire, const zookeeper::Session& session);
  /// When a contender is about to be created: forks the two unless that has been done, and waits
  /// until the guard has left the process group.
  void OnJoining(const zookeeper::Session& session);
  void Discard() { supervisor_.reset(); }

  /// For a run under the locks of `session`: as Supervisor::Await().
  void FinishForks(const zookeeper::Session& session, TimePoint lease_end);
  /// For a run under reservations, or under locks that only ancestors hold.
  void FinishForksWithoutSession();
  /// After either of these: as Supervisor::Begin().
  void Begin(const std::vector<std::string>& environment);
  [[nodiscard]] process::Supervisor& supervisor() { return *supervisor_; }

 private:
  void Prepare(Duration session_timeout);
  void TryPrepare(Duration session_timeout);
  void ReportContainment() const;
  /// The grace that a session timeout of ours and the ancestors' leases allow.
  [[nodiscard]] Duration GraceWith(Duration session_timeout) const;
  [[nodiscard]] process::CommandSpec Spec(Duration grace) const;

  RunContext& context_;
  const std::string executable_;
  bool has_searched_ = false;
  std::string cgroup_parent_;                   // empty: the command gets no cgroup
  std::optional<process::NoCgroup> no_cgroup_;  // why, if --contain is not off
  std::unique_ptr<process::Supervisor> supervisor_;
  bool is_early_ = false;  // no contender has been created yet
};

}  // namespace zklock::commands
