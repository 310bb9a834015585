#include "commands/run/preforked_command.h"

#include <algorithm>
#include <system_error>
#include <utility>
#include <variant>

#include "protocol/lease.h"

namespace zklock::commands {
namespace {

using namespace std::chrono_literals;

// The time for the forks once the session exists. It is part of the first lease.
constexpr Duration kForkTime = 1s;

}  // namespace

PreforkedCommand::~PreforkedCommand() {
  if (supervisor_ && context_.session_for_guard.is_set()) supervisor_->LeaveGuard();
}

void PreforkedCommand::RequireCgroup() {
  FindCgroup();
  if (!no_cgroup_) no_cgroup_ = process::Cgroup::Probe(cgroup_parent_);
  if (no_cgroup_) throw process::CgroupUnavailable(*no_cgroup_);
}

std::variant<process::OwnCgroup, process::NoCgroup> FindCgroupParent(cli::Contain contain) {
  auto found = process::FindOwnCgroup();
  const auto* const own = std::get_if<process::OwnCgroup>(&found);
  if (own == nullptr) return found;
  if (!own->is_delegated && contain == cli::Contain::kAuto) {
    return process::NoCgroup{process::NoCgroup::Why::kNotDelegated, own->directory};
  }
  if (const auto obstacle = process::FindObstacle(own->directory)) return *obstacle;
  return found;
}

void PreforkedCommand::FindCgroup() {
  const cli::Contain contain = context_.options.contain;
  if (contain == cli::Contain::kOff || std::exchange(has_searched_, true)) return;
  const auto found = FindCgroupParent(contain);
  if (const auto* none = std::get_if<process::NoCgroup>(&found)) {
    no_cgroup_ = *none;
    return;
  }
  const auto& own = std::get<process::OwnCgroup>(found);
  if (!own.is_delegated) context_.report.Undelegated(own.directory);
  cgroup_parent_ = own.directory;
  for (const std::string& parent : process::OrphanParents(cgroup_parent_)) {
    for (const auto& orphan : process::EndOrphans(parent)) context_.report.OrphanEnded(orphan);
  }
}

void PreforkedCommand::ReportContainment() const {
  const process::Containment& containment = supervisor_->containment();
  if (const auto* cgroup = std::get_if<std::string>(&containment)) {
    context_.report.Contained(*cgroup);
  } else if (const auto* none = std::get_if<process::NoCgroup>(&containment)) {
    context_.report.NotContained(*none);
  } else if (no_cgroup_) {
    context_.report.NotContained(*no_cgroup_);
  }
}

void PreforkedCommand::PrepareEarly(const zookeeper::Session& session) {
  is_early_ = true;
  if (session.IsHandshaking()) TryPrepare(session.lease().timeout());
}

void PreforkedCommand::OnProgress(const lock::Acquisition& acquire,
                                  const zookeeper::Session& session) {
  // Without a guard, nothing would close the session if zklock were killed as well.
  if (supervisor_ && !supervisor_->IsGuarded()) Discard();
  if (acquire.IsNearTurn() || (is_early_ && session.IsHandshaking())) {
    TryPrepare(session.lease().timeout());
  } else if (acquire.IsFarFromTurn()) {
    Discard();
  }
}

void PreforkedCommand::OnJoining(const zookeeper::Session& session) {
  is_early_ = false;
  if (supervisor_ && !supervisor_->IsIntact()) Discard();  // one of the two has been killed
  TryPrepare(session.lease().timeout());
  // Refused or too slow: try again when our turn is near.
  if (supervisor_ && !supervisor_->AwaitForks(kForkTime)) Discard();
}

void PreforkedCommand::TryPrepare(Duration session_timeout) {
  if (supervisor_) return;
  try {
    Prepare(session_timeout);
  } catch (const std::system_error&) {
    // FinishForks() tries again; only then does a failure count.
  }
}

Duration PreforkedCommand::GraceWith(Duration session_timeout) const {
  const Duration kill_after = context_.options.kill_after;
  return std::min(protocol::GraceFor(kill_after, session_timeout),
                  context_.ancestors.GraceFor(kill_after));
}

process::CommandSpec PreforkedCommand::Spec(Duration grace) const {
  const cli::RunOptions& options = context_.options;
  return {.executable = executable_,
          .arguments = options.command,
          .stop_signal = options.stop_signal,
          .kill_after = grace,
          .max_run = options.max_run.value_or(Duration::max()),
          .descendants = options.descendants,
          .outlives_lease = options.on_lost == cli::OnLost::kWarn,
          .cgroup_parent = cgroup_parent_,
          .requires_cgroup = options.contain == cli::Contain::kRequire,
          .kept_open = context_.ancestors.descriptors(),
          .when_orphaned = nullptr};
}

void PreforkedCommand::Prepare(Duration session_timeout) {
  process::CommandSpec spec = Spec(GraceWith(session_timeout));
  spec.when_orphaned = [this] { context_.session_for_guard.Close(); };
  supervisor_ = process::Supervisor::Prepare(spec, context_.signals);
}

void PreforkedCommand::FinishForks(const zookeeper::Session& session, TimePoint lease_end) {
  const Duration timeout = session.lease().timeout();
  context_.session_for_guard.Set(session);
  // The run may have waited long since the forks, and the guard or the command may have been
  // killed: that must not end the run.
  if (supervisor_ && !supervisor_->IsIntact()) Discard();
  try {
    if (supervisor_) {
      supervisor_->Await(lease_end, GraceWith(timeout));
      return ReportContainment();
    }
  } catch (const std::system_error&) {
    // The system may now grant what it refused before we held the lock.
  }
  Prepare(timeout);
  supervisor_->Await(lease_end, GraceWith(timeout));
  ReportContainment();
}

void PreforkedCommand::FinishForksWithoutSession() {
  FindCgroup();
  const Duration grace = context_.ancestors.GraceFor(context_.options.kill_after);
  // A run that reserves has already forked both processes. Its guard stays, since the session may
  // still be open.
  if (supervisor_ && !supervisor_->IsIntact()) Discard();
  if (!supervisor_) supervisor_ = process::Supervisor::Prepare(Spec(grace), context_.signals);
  supervisor_->Await(context_.ancestors.lease_end(), grace);
  ReportContainment();
}

void PreforkedCommand::Begin(const std::vector<std::string>& environment) {
  if (!context_.ancestors.empty()) {
    // If the command has already been killed, the ancestors need not wait for it.
    const auto command = process::ReadProcessStat(supervisor_->command_pid());
    if (command) context_.ancestors.NameCommand(command->id);
  }
  // execve(2): MAX_ARG_STRLEN, which includes the final NUL.
  const auto most = static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) * 32;
  for (const std::string& variable : environment) {
    if (variable.size() >= most) long_variable_ = variable.substr(0, variable.find('='));
  }
  supervisor_->Begin(environment);
}

}  // namespace zklock::commands
