#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/event_source.h"
#include "lock/callback_scope.h"
#include "lock/ticket.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// How a lock that was held is no longer ours.
enum class Loss {
  kRemoved,       ///< somebody deleted our contender
  kExpired,       ///< the servers have ended the session
  kUnproven,      ///< the lease ended before it could be proven anew
  kShortSession,  ///< a server has granted a session time-out that is too short to prove it
  kOuter,         ///< the zklock that held it for us has released it, lost it or gone
};

/// What happens while the lock is held, for the guard, messages and events.
class HoldObserver {
 public:
  virtual ~HoldObserver() = default;
  /// The lease now ends at `lease_end`: later than before, or earlier where a server has granted a
  /// shorter session time-out. `grace`: what that leaves between the stop signal and KILL.
  virtual void OnLease(TimePoint lease_end, Duration grace) = 0;
  /// A server has taken the session on again.
  virtual void OnConnected() {}
  /// The server has gone or does not answer: the lease runs on unproven.
  virtual void OnSuspect() {}
  /// Proven again after OnSuspect.
  virtual void OnConfirmed() {}
  /// What is written in our own contender: now, and whenever somebody has written to it.
  virtual void OnOwnData(const std::string& /*data*/) {}
};

/// What came of the command, for the release record.
struct Run {
  Duration ran{};    ///< how long
  int status = 0;    ///< as a shell shows it
  std::string host;  ///< where
};

/// Keeps proving the held tickets: one committed heartbeat for all of them each T/8, at another
/// server when this one does not answer in time (protocol, section 4).
///
/// Passive, like Acquire, and the store's listener after it. Made right after Acquired, so that the
/// session is connected and the lease proven.
class Hold final : public EventSource, public zookeeper::StoreListener {
 public:
  /// `kill_after`: between the stop signal and KILL, as asked for. Tickets are of one session.
  /// `passed`: contenders of ours that are of no use any more, deleted until they have gone.
  Hold(zookeeper::Store& store, const Clock& clock, std::vector<Ticket> tickets,
       Duration kill_after, HoldObserver& observer, std::vector<std::string> passed = {});
  ~Hold() override;
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  [[nodiscard]] TimePoint lease_end() const { return lease_end_; }
  /// What lies between the stop signal and KILL: as asked for, or as much as the lease allows.
  [[nodiscard]] Duration grace() const;
  /// Set once, when the lock is no longer ours.
  [[nodiscard]] const std::optional<Loss>& loss() const { return loss_; }

  /// Lets go, and leaves a record of it in each LOCK that is zklock's. Nothing if the lock is no
  /// longer ours. No answer is waited for: the session's close follows, and lets go of what this
  /// did not. How many requests let go of everything, if they succeed; 0 where only the close does.
  std::size_t Release(const Run& run);

  Interest GetInterest() override;
  void OnReady(short revents) override;

  void OnConnected(bool fresh) override;
  void OnDisconnected() override;
  void OnExpired() override;
  void OnRefused(zookeeper::Error why) override;
  void OnWatch(const std::string& path) override;

 private:
  /// kProven   the last heartbeat was answered. -> kAsking
  /// kAsking   one is under way. -> kProven, kApart
  /// kApart    no server. -> kAsking
  /// kLost     the end. From each of the others.
  enum class State { kProven, kAsking, kApart, kLost };

  void SendHeartbeat();
  void OnHeartbeat(const zookeeper::Reply& reply);
  void WatchTickets();
  void DeletePassed();
  void WatchTicket(const Ticket& ticket);
  void TakeLease();
  void Suspect();
  void Lose(Loss loss);

  zookeeper::Store& store_;
  const Clock& clock_;
  const std::vector<Ticket> tickets_;
  std::vector<std::string> passed_;
  const Duration kill_after_;
  HoldObserver& observer_;

  State state_ = State::kProven;
  bool suspect_ = false;
  std::optional<Loss> loss_;
  TimePoint lease_end_;
  TimePoint stop_time_;
  TimePoint next_heartbeat_;
  TimePoint answer_deadline_ = kNever;
  bool watched_ = false;  // not before the command has begun, which need not wait for that

  CallbackScope scope_;
};

}  // namespace zklock::lock
