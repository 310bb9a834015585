#include "commands/preforked_command.h"

#include <algorithm>
#include <system_error>

#include "protocol/lease.h"

namespace zklock::commands {
namespace {

using namespace std::chrono_literals;

// The time for the forks once the session exists; it is lost from the first lease.
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

void PreforkedCommand::OnJoining(const zookeeper::Session& session, bool may_hold) {
  is_early_ = false;
  shared_.Set(session);
  if (may_hold) TryPrepare(session.lease().timeout());
  // Refused or too slow: we try again when we are about to hold.
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
          .descendants = options.descendants,
          .outlives_lease = options.on_lost == cli::OnLost::kWarn,
          .kept_open = context_.ancestors.descriptors(),
          .when_orphaned = nullptr};
}

void PreforkedCommand::Prepare(Duration session_timeout) {
  process::CommandSpec spec = Spec(GraceWith(session_timeout));
  spec.when_orphaned = [this] { shared_.Close(); };
  supervisor_ = process::Supervisor::Prepare(spec, context_.signals);
}

void PreforkedCommand::FinishForks(const zookeeper::Session& session, TimePoint lease_end) {
  const Duration timeout = session.lease().timeout();
  shared_.Set(session);
  try {
    if (supervisor_) return supervisor_->Await(lease_end, GraceWith(timeout));
  } catch (const std::system_error&) {
    // The system may grant by now what it refused before we held the lock.
  }
  Prepare(timeout);
  supervisor_->Await(lease_end, GraceWith(timeout));
}

void PreforkedCommand::FinishForksUnderAncestors() {
  const Duration grace = context_.ancestors.GraceFor(context_.options.kill_after);
  supervisor_ = process::Supervisor::Prepare(Spec(grace), context_.signals);
  supervisor_->Await(context_.ancestors.lease_end(), grace);
}

}  // namespace zklock::commands
