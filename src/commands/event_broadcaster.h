#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/contender_data.h"
#include "cli/step.h"
#include "lock/acquire.h"
#include "lock/hold.h"
#include "process/supervisor.h"
#include "zookeeper/session.h"

namespace zklock::commands {

/// Tells what happens, once, to all who listen.
class EventBroadcaster {
 public:
  /// Listeners outlive it, and are told in this order.
  explicit EventBroadcaster(std::vector<cli::StepListener*> listeners)
      : listeners_(std::move(listeners)) {}
  void Add(cli::StepListener& listener) { listeners_.push_back(&listener); }
  void Remove(cli::StepListener& listener) { std::erase(listeners_, &listener); }
  void Publish(const cli::Step& step);

 private:
  std::vector<cli::StepListener*> listeners_;
};

/// The steps of the way through the queue.
class QueueSteps final : public lock::AcquireObserver {
 public:
  /// `on_joining` may be empty.
  QueueSteps(EventBroadcaster& steps, const zookeeper::Session& session,
             std::function<void()> on_joining)
      : steps_(steps), session_(session), on_joining_(std::move(on_joining)) {}
  void OnConnected() override;
  void OnJoining() override {
    if (on_joining_) on_joining_();
  }
  void OnQueued(const lock::Ticket& ticket) override;
  void OnWaiting(const lock::LockName& lock, const std::string& predecessor,
                 std::size_t ahead) override;
  void OnPlaceLost(const lock::LockName& lock) override;
  void OnIncompatible(const lock::LockName& lock,
                      const protocol::IncompatibleContender& incompatible) override;
  void OnOwnData(const std::string& data) override;

  /// The LOCK that is waited for; empty while nothing is before us.
  [[nodiscard]] const std::string& waits_for() const { return waits_for_; }
  /// Somebody has asked our contender to leave.
  [[nodiscard]] const std::optional<cli::RevokeData>& revocation() const { return revocation_; }

 private:
  std::optional<cli::RevokeData> revocation_;
  std::string waits_for_;
  EventBroadcaster& steps_;
  const zookeeper::Session& session_;
  const std::function<void()> on_joining_;
};

/// The steps while the lock is held; carries the lease to the guard.
class HoldSteps final : public lock::HoldObserver {
 public:
  /// `locks`: all that are held, as messages name them.
  HoldSteps(EventBroadcaster& steps, const zookeeper::Session& session, std::string locks)
      : steps_(steps), session_(session), locks_(std::move(locks)) {}
  /// Whose lease the hold's is; it outlives the hold, or is taken away before.
  void SetSupervisor(process::Supervisor* supervisor) { supervisor_ = supervisor; }
  void OnLease(TimePoint lease_end, Duration grace) override;
  void OnConnected() override;
  void OnSuspect() override;
  void OnConfirmed() override;
  void OnOwnData(const std::string& data) override;

  /// Somebody has asked our contender to let go.
  [[nodiscard]] const std::optional<cli::RevokeData>& revocation() const { return revocation_; }

 private:
  std::optional<cli::RevokeData> revocation_;
  EventBroadcaster& steps_;
  const zookeeper::Session& session_;
  const std::string locks_;
  process::Supervisor* supervisor_ = nullptr;
};

}  // namespace zklock::commands
