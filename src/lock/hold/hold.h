#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/end_cause.h"
#include "base/event_source.h"
#include "lock/data/callback_scope.h"
#include "lock/data/event.h"
#include "lock/data/ticket.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// How a run ended, for the release record and the history.
struct FinishedRun {
  Duration duration{};  ///< how long the command ran
  int status = 0;       ///< zklock's status: the command's own if it ended by itself
  std::string host{};   ///< on which it ran
  /// For the history: what ended it, who requested that, and why; empty if it ended by itself.
  std::string cause{};
  std::string asked_by{};
  std::string asked_reason{};
  bool has_status = true;  ///< false (no record) with --hold, unless --max-run ended it
};

/// Keeps proving that the tickets are held: commits one heartbeat for all of them every T/8,
/// through another server if the current one is too slow (zklock-protocol(7), The lease).
///
/// The first heartbeat is due T/8 after the last commit; if the lock was acquired with a lease in
/// hand, that is at once.
///
/// Passive, like Acquire, which it replaces as the store's listener. Construct it right after
/// Acquired, while the session is connected and the lease is proven.
class Hold final : public EventSource, public zookeeper::StoreListener {
 public:
  /// `kill_after`: the requested time between the stop signal and KILL. All tickets belong to one
  /// session. `passed`: our own contenders that are no longer needed; the Hold deletes them, and
  /// repeats a delete after a lost reply.
  Hold(zookeeper::Store& store, const Clock& clock, std::vector<Ticket> tickets,
       Duration kill_after, HoldEventSink publish, std::vector<std::string> passed = {});
  ~Hold() override;

  [[nodiscard]] TimePoint lease_end() const { return lease_end_; }
  /// Returns the time between the stop signal and KILL: as requested, or as much as the lease
  /// allows.
  [[nodiscard]] Duration grace() const;
  /// Returns whether a command may start: as far as is known, the contenders exist, and enough of
  /// the lease is left. Also takes into account extensions of the lease by commits other than
  /// heartbeats.
  [[nodiscard]] bool SufficesToStart();
  /// Set when the lock is lost, to kRemoved, kExpired, kUnproven or kShortSession; does not change
  /// after that.
  [[nodiscard]] const std::optional<EndCause>& loss() const { return loss_; }
  /// Returns the time since the last answered commit, usually a heartbeat, was sent.
  [[nodiscard]] Duration Unconfirmed() const;
  /// Returns how long this process was paused after the last answered commit, because it was
  /// stopped or the host was suspended; none if it was not, or not long enough to matter.
  [[nodiscard]] const std::optional<Duration>& paused() const { return paused_; }

  /// Releases the locks, and leaves a record in each LOCK that zklock created. Does nothing if the
  /// lock is lost. Does not wait for answers: the caller closes the session next, which releases
  /// whatever this did not. Returns the number of requests that release everything if all of them
  /// succeed, or 0 if only the close will release everything.
  std::size_t Release(const FinishedRun& run);
  /// Releases the ticket with this path as Release() does, and writes `history` in the same
  /// transaction; if the name can be reused, only writes `history`. Calls `done` with the answer;
  /// if that is a refusal, nothing was done. From the first call on, the lock is no longer proven:
  /// the caller must soon call Release() for whatever is not released yet.
  void ReleaseWith(const zookeeper::DataWrite& history, const std::string& path,
                   const FinishedRun& run, zookeeper::Done<zookeeper::Reply> done);

  Interest GetInterest() override;
  void OnReady(short revents) override;

  void OnConnected(bool fresh) override;
  void OnDisconnected() override;
  void OnExpired() override;
  void OnRefused(zookeeper::Error why) override;
  void OnWatch(const std::string& path, zookeeper::Change change) override;

 private:
  /// kProven        the last heartbeat was answered. -> kAsking, kDisconnected
  /// kAsking        a heartbeat is pending. -> kProven, kDisconnected
  /// kDisconnected  -> kAsking
  /// kLost          final. From every other state.
  enum class State { kProven, kAsking, kDisconnected, kLost };

  void Resume(bool fresh);
  void SendHeartbeat();
  void OnHeartbeat(const zookeeper::Reply& reply);
  void WatchTickets();
  void DeletePassed();
  void DeletePassedSingly();
  void WatchContender(const ContenderId& contender);
  void ReadLockVersion(Ticket& ticket);
  [[nodiscard]] std::vector<zookeeper::DataWrite> WritesFor(const Ticket& ticket,
                                                            const FinishedRun& run) const;
  void TakeLease();
  void Suspect();
  void Lose(EndCause loss);

  zookeeper::Store& store_;
  const Clock& clock_;
  std::vector<Ticket> tickets_;
  std::vector<std::string> passed_;
  const Duration kill_after_;
  const HoldEventSink publish_;

  State state_ = State::kProven;
  bool suspect_ = false;
  std::optional<EndCause> loss_;
  TimePoint lease_end_;
  TimePoint stop_time_;
  TimePoint next_heartbeat_;
  TimePoint answer_deadline_ = kNever;
  TimePoint due_ = kNever;  // the wake time that was requested last
  std::optional<Duration> paused_;
  bool watched_ = false;  // WatchTickets() was called; the command starts without waiting for it

  CallbackScope scope_;
};

}  // namespace zklock::lock
