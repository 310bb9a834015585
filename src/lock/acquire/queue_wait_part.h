#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "lock/acquire/attempt.h"
#include "lock/acquire/lookahead.h"
#include "lock/acquire/session_proof.h"
#include "lock/ahead/preemption.h"
#include "protocol/queue.h"
#include "protocol/queue_ahead.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// Waits in the queue until the predecessor is gone, or leaves the queue: for a `try`, or because
/// the queue is full.
class QueueWaitPart final : public WaitPart {
 public:
  QueueWaitPart(Attempt& attempt, SessionProof& proof);

  void LookIfFree() override;
  void WaitFor(const std::string& predecessor, const QueueList& list, bool is_rival) override;
  void OnLockData(const zookeeper::GetReply& reply) override;
  void CheckPredecessor() override;
  [[nodiscard]] const protocol::QueueAhead& ahead() const override { return predecessor_.ahead; }

  [[nodiscard]] bool HasSearched() const override { return lookahead_.HasSearched(); }

  void OnWatch(const std::string& path, zookeeper::Change change) override;
  void FinishBlocked(Busy::Why why) override;
  [[nodiscard]] TimePoint end() const override;
  [[nodiscard]] TimePoint due() const override;
  void OnDue() override;
  void OnDisconnected() override;
  void OnPlaceLost() override;

  void Leave() override;
  [[nodiscard]] bool IsWaiting() const override { return state_ == State::kWaiting; }

 private:
  enum class State {
    kNotAtWork,
    kLooking,      ///< is the lock free, or the queue full? Nothing has been created yet
    kWaiting,      ///< the predecessor is watched
    kLeavingFull,  ///< the maximum number of contenders already wait
  };

  /// The contender that we wait for, or waited for last.
  struct Predecessor {
    std::string name;
    std::string data{};
    std::optional<Reserved> reserved{};  ///< set if it is a reservation
    bool readable = true;
    protocol::QueueAhead ahead{};  ///< computed from the list that made it the predecessor
    bool is_rival = false;  ///< it does not exclude our contender, but has our ID (--reserve)
    bool holds = false;     ///< it was the first in the list, or has a permit
    bool is_only = false;   ///< no other contender was ahead of us, or would have been
  };

  void Enter(State state, const std::string& predecessor);
  void JoinOrLeave(const QueueList& list);
  [[nodiscard]] bool Holds(const QueueList& list, std::string_view contender) const;
  void BeginPreemption(const QueueList& list);
  void WatchPredecessor(const std::string& name);
  void ReadPredecessor();
  void OnPredecessor(const zookeeper::GetReply& reply);
  [[nodiscard]] bool TakeReservation(const Reserved& reserved);
  void WatchChildren();
  void OnPredecessorGone();
  void ListPermits();
  void FindReservationIn(const protocol::Contenders& contenders);
  [[nodiscard]] bool OnlyPasses() const;
  void CountPermits(std::size_t ahead);
  void AwaitPermits();
  void ReadPermitNumber(const std::shared_ptr<std::size_t>& taken);
  void LeaveFull(const QueueList& list);
  [[nodiscard]] bool LeavesAtOnce() const;
  void LeaveAfterLookahead();
  void LeaveUnlessWithdrawn();

  Attempt& attempt_;
  SessionProof& proof_;
  State state_ = State::kNotAtWork;
  Predecessor predecessor_;
  Lookahead lookahead_;
  std::unique_ptr<Preemption> preemption_;  // lasts as long as a connection

  // These last as long as our place in the queue.
  bool ranked_ = false;     // fewer than `max_queue` waited ahead of us
  bool preempted_ = false;  // the contenders ahead of us were asked to leave
  // In a turnstile: another number of permits may be in use, so the permits are watched.
  bool watches_permits_ = false;

  // If OnlyPasses():
  std::size_t ahead_ = 0;           // contenders ahead of us in the turnstile's last list
  bool permits_are_taken_ = false;  // our contender leaves for this reason
  // For AcquireRequest::looks_again.
  bool looks_elsewhere_ = false;     // the other queues are being listed, or will be again
  TimePoint withdrawn_by_ = kNever;  // the latest time to leave
  TimePoint look_again_at_ = kNever;
  Duration look_again_after_ = std::chrono::milliseconds(10);
  // The czxid of a reservation for our ID that made us list the queue again. If the reservation is
  // still in the way after that, it does not hold the lock.
  std::int64_t listed_for_ = 0;
};

}  // namespace zklock::lock
