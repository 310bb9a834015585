#include "commands/event_broadcaster.h"

namespace zklock::commands {
namespace {

cli::Connected ConnectedTo(const zookeeper::Session& session) {
  return {.server = session.connected_server(),
          .granted = session.granted_timeout(),
          .effective = session.lease().timeout(),
          .before = session.timeout_before()};
}

}  // namespace

void EventBroadcaster::Publish(const cli::Step& step) {
  for (cli::StepListener* listener : listeners_) listener->OnStep(step);
}

void QueueSteps::OnConnected() { steps_.Publish(ConnectedTo(session_)); }

void QueueSteps::OnQueued(const lock::Ticket& ticket) { steps_.Publish(cli::Queued{ticket}); }

void QueueSteps::OnWaiting(const lock::LockName& lock, const std::string& predecessor,
                           std::size_t ahead) {
  waits_for_ = lock.display_path();
  steps_.Publish(cli::Waiting{lock.display_path(), predecessor, ahead});
}

void QueueSteps::OnPlaceLost(const lock::LockName& lock) {
  steps_.Publish(cli::PlaceLost{lock.display_path()});
}

void QueueSteps::OnIncompatible(const lock::LockName& lock,
                                const protocol::IncompatibleContender& incompatible) {
  steps_.Publish(cli::IncompatibleArrived{lock.display_path(), incompatible});
}

void HoldSteps::OnLease(TimePoint lease_end, Duration grace) {
  if (supervisor_ != nullptr) supervisor_->SetLease(lease_end, grace);
}

void HoldSteps::OnConnected() { steps_.Publish(ConnectedTo(session_)); }

void HoldSteps::OnSuspect() { steps_.Publish(cli::Suspect{locks_}); }

void HoldSteps::OnConfirmed() { steps_.Publish(cli::Confirmed{locks_}); }

void QueueSteps::OnOwnData(const std::string& data) { revocation_ = cli::FindRevocation(data); }

void HoldSteps::OnOwnData(const std::string& data) { revocation_ = cli::FindRevocation(data); }

}  // namespace zklock::commands
