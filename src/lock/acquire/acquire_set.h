#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lock/acquire/acquire.h"
#include "lock/ahead/holder_search.h"

namespace zklock::lock {

/// Acquires several LOCKs, all of them or none: one after the other, in the given order. The order
/// is the same for all callers (by path), so that no two of them can wait for each other.
///
/// All contenders belong to one session. The LOCKs acquired so far are proven again with each that
/// follows. If the session expires on the way, they are lost, and it starts again with the first.
/// One wait counts for the whole set. A `try` lists all queues before it joins the first.
///
/// A LOCK that is reserved for our ID already (AcquireRequest::reserve) is not queued for.
///
/// A LOCK that is a semaphore has two requests, one for its turnstile and the next for its permits.
///
/// Passive, like Acquire, which does the work for each LOCK.
class AcquireSet final : public EventSource, public zookeeper::StoreListener {
 public:
  /// `requests`: at least one; `wait` and `try_only` are the same in all.
  AcquireSet(zookeeper::Store& store, const Clock& clock, std::vector<AcquireRequest> requests,
             std::function<std::string()> make_uuid, AcquireObserver& observer);
  ~AcquireSet() override;
  AcquireSet(const AcquireSet&) = delete;
  AcquireSet& operator=(const AcquireSet&) = delete;

  /// Set once, when it is over: Acquired or ReservedLock if all are held or reserved, else the
  /// outcome for lock().
  [[nodiscard]] const std::optional<AcquireOutcome>& outcome() const { return outcome_; }
  /// A LOCK is held already, or our turn is near at the first (Acquire::IsNearTurn): if this
  /// process were killed, others would wait for the session's end.
  [[nodiscard]] bool IsNearTurn() const;
  /// No LOCK is held, and our turn at the first is far (Acquire::IsFarFromTurn).
  [[nodiscard]] bool IsFarFromTurn() const;
  /// The contenders that hold, in the order of the requests, without those in turnstiles.
  [[nodiscard]] std::vector<Ticket> tickets() const;
  /// What was reserved already, in the same order.
  [[nodiscard]] const std::vector<ReservedLock>& reserved() const { return reserved_; }
  /// Contenders in turnstiles that have been passed, to be deleted.
  [[nodiscard]] std::vector<std::string> passed() const;
  /// When the wait for all LOCKs is over; kNever before the first has been joined, or without one.
  [[nodiscard]] TimePoint wait_end() const {
    return std::min(wait_end_, acquire_->wait_deadline());
  }
  /// The LOCK that is being acquired, or was when it ended.
  [[nodiscard]] const LockName& lock() const { return requests_[current_].lock; }

  Interest GetInterest() override;
  void OnReady(short revents) override;

  void OnConnected(bool fresh) override;
  void OnDisconnected() override;
  void OnExpired() override;
  void OnRefused(zookeeper::Error why) override;
  void OnWatch(const std::string& path, zookeeper::Change change) override;

 private:
  void Start(std::size_t index);
  /// Once the current LOCK has its outcome: starts the next, or finishes.
  void Advance();
  void CheckAllFree();
  /// Whether a LOCK with these contenders would have to be waited for.
  [[nodiscard]] bool IsBusy(std::size_t index, const protocol::Contenders& contenders) const;
  void LeaveSemaphore(std::size_t index, const protocol::Children& children);
  void LeaveTaken(std::size_t index, const protocol::Children& children);
  void OnSearchProgress();
  void ExpectAnswer();
  void Finish(AcquireOutcome outcome);

  zookeeper::Store& store_;
  const Clock& clock_;
  const std::vector<AcquireRequest> requests_;
  std::function<std::string()> make_uuid_;
  AcquireObserver& observer_;

  std::size_t current_ = 0;
  std::unique_ptr<Acquire> acquire_;  // for the current LOCK
  struct Won {
    std::size_t request;
    Ticket ticket;
  };
  std::vector<Won> won_;
  std::vector<ReservedLock> reserved_;
  TimePoint wait_end_ = kNever;         // known once the first contender has joined
  bool checking_free_ = false;          // a `try`, before the first queue is joined
  std::size_t lists_pending_ = 0;       // while it checks that all are free
  TimePoint answer_deadline_ = kNever;  // likewise: then the server is given up
  std::optional<HolderSearch> search_;  // in the LOCK that is busy
  std::optional<AcquireOutcome> outcome_;
  CallbackScope scope_;
};

}  // namespace zklock::lock
