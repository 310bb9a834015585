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

/// Returns the cgroup in which a command's own cgroup would be created, as far as can be determined
/// without creating one, or why the command gets none. `contain`: not kOff.
[[nodiscard]] std::variant<process::OwnCgroup, process::NoCgroup> FindCgroupParent(
    cli::Contain contain);

/// The command of a run and its guard. Both are forked before the first contender is created, while
/// the servers create the session: if zklock is killed after that, the guard closes the session. By
/// then, the guard has left zklock's process group, which may be killed as a whole. A waiter whose
/// turn is far away ends both, and forks them again when its turn is near: a fork after its turn
/// has come would take as long as a commit.
class PreforkedCommand {
 public:
  /// `context` must outlive it. Call Discard() after adding to context.ancestors. `executable`:
  /// from FindExecutable().
  PreforkedCommand(RunContext& context, std::string executable)
      : context_(context), executable_(std::move(executable)) {}
  /// Leaves the guard running if the session may still be open (RunContext::session_for_guard).
  ~PreforkedCommand();
  PreforkedCommand(const PreforkedCommand&) = delete;
  PreforkedCommand& operator=(const PreforkedCommand&) = delete;

  /// For --contain require, before the wait: throws process::CgroupUnavailable if the command
  /// cannot have a cgroup.
  void RequireCgroup();
  /// Before a contender exists: finds where the command's cgroup can be created (--contain), and
  /// ends the processes that killed zklocks have left there. Later calls do nothing.
  void FindCgroup();
  /// Returns whether the command will run in a cgroup, according to FindCgroup().
  [[nodiscard]] bool HasCgroup() const { return !cgroup_parent_.empty(); }

  /// For a new session: forks both processes while a server works on the request for it.
  void PrepareEarly(const zookeeper::Session& session);
  /// After each event of the wait: forks both when our turn is near, and ends them when it is far
  /// away.
  void OnProgress(const lock::Acquisition& acquire, const zookeeper::Session& session);
  /// When a contender is about to be created: forks both unless already forked, and waits until the
  /// guard has left the process group.
  void OnJoining(const zookeeper::Session& session);
  void Discard() { supervisor_.reset(); }

  /// For a run under the locks of `session`: finishes the forks, like Supervisor::Await().
  void FinishForks(const zookeeper::Session& session, TimePoint lease_end);
  /// Likewise for a run under reservations, or under locks that only ancestors hold.
  void FinishForksWithoutSession();
  /// After either of these: begins the command, like Supervisor::Begin().
  void Begin(const std::vector<std::string>& environment);
  /// After Begin(): the name of a variable that is longer than Linux allows; empty if there is
  /// none.
  [[nodiscard]] const std::string& long_variable() const { return long_variable_; }
  [[nodiscard]] process::Supervisor& supervisor() { return *supervisor_; }

 private:
  void Prepare(Duration session_timeout);
  void TryPrepare(Duration session_timeout);
  void ReportContainment() const;
  /// Returns the grace that our session timeout and the ancestors' leases allow.
  [[nodiscard]] Duration GraceWith(Duration session_timeout) const;
  [[nodiscard]] process::CommandSpec Spec(Duration grace) const;

  RunContext& context_;
  const std::string executable_;
  std::string long_variable_;
  bool has_searched_ = false;
  std::string cgroup_parent_;                   // empty: the command gets no cgroup
  std::optional<process::NoCgroup> no_cgroup_;  // why not, unless --contain is off
  std::unique_ptr<process::Supervisor> supervisor_;
  bool is_early_ = false;  // no contender has been created yet
};

}  // namespace zklock::commands
