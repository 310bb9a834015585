#include "commands/steps.h"

namespace zklock::commands {
namespace {

cli::Connected ConnectedTo(const zookeeper::Session& session) {
  return {.server = session.connected_server(),
          .granted = session.granted_timeout(),
          .effective = session.lease().timeout(),
          .before = session.timeout_before()};
}

}  // namespace

void Steps::Tell(const cli::Step& step) {
  for (cli::StepListener* listener : listeners_) listener->OnStep(step);
}

void QueueSteps::OnConnected() { steps_.Tell(ConnectedTo(session_)); }

void QueueSteps::OnQueued(const lock::Ticket& ticket) { steps_.Tell(cli::Queued{ticket}); }

void QueueSteps::OnWaiting(const lock::LockName& lock, const std::string& predecessor,
                           std::size_t ahead) {
  waits_for_ = lock.shown();
  steps_.Tell(cli::Waiting{lock.shown(), predecessor, ahead});
}

void QueueSteps::OnPlaceLost(const lock::LockName& lock) {
  steps_.Tell(cli::PlaceLost{lock.shown()});
}

void QueueSteps::OnStranger(const lock::LockName& lock, const protocol::Stranger& stranger) {
  steps_.Tell(cli::StrangerCame{lock.shown(), stranger});
}

void HoldSteps::OnLease(TimePoint lease_end, Duration grace) {
  if (supervisor_ != nullptr) supervisor_->SetLease(lease_end, grace);
}

void HoldSteps::OnConnected() { steps_.Tell(ConnectedTo(session_)); }

void HoldSteps::OnSuspect() { steps_.Tell(cli::Suspect{locks_}); }

void HoldSteps::OnConfirmed() { steps_.Tell(cli::Confirmed{locks_}); }

void QueueSteps::OnOwnData(const std::string& data) { revocation_ = cli::FindRevocation(data); }

void HoldSteps::OnOwnData(const std::string& data) { revocation_ = cli::FindRevocation(data); }

}  // namespace zklock::commands
