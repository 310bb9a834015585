#include "commands/preforked_command.h"

#include <algorithm>
#include <system_error>

#include "protocol/lease.h"

namespace zklock::commands {
namespace {

using namespace std::chrono_literals;

// What the forks may take once the session is there; it costs that much of its lease.
constexpr Duration kForkTime = 1s;

}  // namespace

void PreforkedCommand::PrepareEarly(const zookeeper::Session& session) {
  shared_.Clear();
  is_early_ = true;
  OnProgress(false, session);
}

void PreforkedCommand::OnProgress(bool is_about_to_hold, const zookeeper::Session& session) {
  if (is_about_to_hold) return TryPrepare(session.lease().timeout());
  if (!is_early_) return Discard();
  if (session.IsHandshaking()) TryPrepare(session.lease().timeout());
}

void PreforkedCommand::OnJoining(const zookeeper::Session& session) {
  is_early_ = false;
  shared_.Set(session);
  // Refused or too slow: it is tried again, when the lock may be ours.
  if (supervisor_ && !supervisor_->AwaitForks(kForkTime)) Discard();
}

void PreforkedCommand::TryPrepare(Duration session_timeout) {
  if (supervisor_) return;
  try {
    Prepare(session_timeout);
  } catch (const std::system_error&) {
    // It counts when the lock is ours: then it is tried again.
  }
}

Duration PreforkedCommand::GraceWith(Duration session_timeout) const {
  return protocol::GraceFor(
      options_.kill_after,
      outer_.empty() ? session_timeout : std::min(session_timeout, outer_.session_timeout()));
}

process::CommandSpec PreforkedCommand::Spec(Duration grace) const {
  return {.executable = executable_,
          .arguments = options_.command,
          .stop_signal = options_.stop_signal,
          .kill_after = grace,
          .descendants = options_.descendants,
          .outlives_lease = options_.on_lost == cli::OnLost::kWarn,
          .kept_open = outer_.descriptors(),
          .when_orphaned = nullptr};
}

void PreforkedCommand::Prepare(Duration session_timeout) {
  process::CommandSpec spec = Spec(GraceWith(session_timeout));
  spec.when_orphaned = [this] { shared_.Close(); };
  supervisor_ = process::Supervisor::Prepare(spec, signals_);
}

void PreforkedCommand::Await(const zookeeper::Session& session, TimePoint lease_end) {
  const Duration timeout = session.lease().timeout();
  shared_.Set(session);
  try {
    if (supervisor_) return supervisor_->Await(lease_end, GraceWith(timeout));
  } catch (const std::system_error&) {
    // What was refused to it before the lock was ours may be granted by now.
  }
  Prepare(timeout);
  supervisor_->Await(lease_end, GraceWith(timeout));
}

void PreforkedCommand::AwaitNested() {
  const Duration grace = protocol::GraceFor(options_.kill_after, outer_.session_timeout());
  supervisor_ = process::Supervisor::Prepare(Spec(grace), signals_);
  supervisor_->Await(outer_.lease_end(), grace);
}

}  // namespace zklock::commands
