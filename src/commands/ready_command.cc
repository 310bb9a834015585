#include "commands/ready_command.h"

#include <algorithm>
#include <system_error>

#include "protocol/lease.h"
#include "zookeeper/close_session.h"

namespace zklock::commands {

void ReadyCommand::OnProgress(bool is_about_to_hold, const zookeeper::Session& session) {
  if (!is_about_to_hold) return Discard();
  if (supervisor_) return;
  try {
    Prepare(session);
  } catch (const std::system_error&) {
    // It counts when the lock is ours: then it is tried again.
  }
}

process::CommandSpec ReadyCommand::Spec(Duration session_timeout) const {
  return {.executable = executable_,
          .arguments = options_.command,
          .stop_signal = options_.stop_signal,
          .kill_after = protocol::GraceFor(options_.kill_after, session_timeout),
          .descendants = options_.descendants,
          .outlives_lease = options_.on_lost == cli::OnLost::kWarn,
          .kept_open = outer_.descriptors(),
          .when_orphaned = nullptr};
}

void ReadyCommand::Prepare(const zookeeper::Session& session) {
  const Duration timeout = session.lease().timeout();
  process::CommandSpec spec =
      Spec(outer_.empty() ? timeout : std::min(timeout, outer_.session_timeout()));
  spec.when_orphaned = [credentials = *session.credentials(), endpoints = session.endpoints(),
                        access = options_.server.access, timeout] {
    zookeeper::CloseSession(credentials, endpoints, timeout, access);
  };
  supervisor_ = process::Supervisor::Prepare(spec, signals_);
  session_ = session.session_id();
  timeout_ = timeout;
}

void ReadyCommand::Await(const zookeeper::Session& session, TimePoint lease_end) {
  // The guard would close another session, or count with another grace.
  if (session_ != session.session_id() || timeout_ != session.lease().timeout()) Discard();
  try {
    if (supervisor_) return supervisor_->Await(lease_end);
  } catch (const std::system_error&) {
    // What was refused to it before the lock was ours may be granted by now.
  }
  Prepare(session);
  supervisor_->Await(lease_end);
}

void ReadyCommand::AwaitNested() {
  supervisor_ = process::Supervisor::Prepare(Spec(outer_.session_timeout()), signals_);
  supervisor_->Await(outer_.lease_end());
}

}  // namespace zklock::commands
