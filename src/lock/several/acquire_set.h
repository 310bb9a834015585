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
#include "lock/data/event.h"
#include "lock/several/acquisition.h"

namespace zklock::lock {

/// Acquires several LOCKs, either all or none of them: one by one, in the given order. The order is
/// the same for all callers (by path), so that no two of them can wait for each other.
///
/// All contenders belong to one session. The LOCKs acquired so far are proven again together with
/// each new one. If the session expires before all are acquired, they are lost, and the acquisition
/// starts over with the first LOCK. The whole set has a single `wait`. A `try` lists all queues
/// before it joins the first.
///
/// Does not queue for a LOCK that is already reserved for our ID (AcquireRequest::reserve).
///
/// A semaphore has two requests: one for its turnstile, and the next for its permits.
///
/// With Take::kFirstFree, a `try` takes only one LOCK, the first that is free: it joins the queues
/// one by one, in the given order, and leaves each queue in which it is not first.
///
/// Acquire does the work for each LOCK.
class AcquireSet final : public Acquisition {
 public:
  enum class Take { kAll, kFirstFree };
  /// `requests`: at least one; `wait` and `try_only` are the same in all.
  AcquireSet(zookeeper::Store& store, const Clock& clock, std::vector<AcquireRequest> requests,
             std::function<std::string()> make_uuid, AcquireEventSink publish,
             Take take = Take::kAll);
  ~AcquireSet() override;

  [[nodiscard]] bool IsNearTurn() const override;
  [[nodiscard]] bool IsFarFromTurn() const override;
  /// Returns the tickets that are not for turnstiles.
  [[nodiscard]] std::vector<Ticket> tickets() const override;
  [[nodiscard]] std::vector<ReservedLock> reserved() const override { return reserved_; }
  /// Returns our contenders in turnstiles that we have passed and in queues that a `try` has left.
  [[nodiscard]] std::vector<std::string> passed() const override;
  [[nodiscard]] TimePoint wait_end() const override {
    return std::min(wait_end_, acquire_->wait_deadline());
  }
  [[nodiscard]] const LockName& lock() const override { return requests_[current_].lock; }

  Interest GetInterest() override;
  void OnReady(short revents) override;

  void OnConnected(bool fresh) override;
  void OnDisconnected() override;
  void OnExpired() override;
  void OnRefused(zookeeper::Error why) override;
  void OnWatch(const std::string& path, zookeeper::Change change) override;

 private:
  void Start(std::size_t index);
  /// Once the current LOCK has its outcome, starts the next one or finishes.
  void Advance();
  void CheckAllFree();
  /// Returns whether a LOCK with these contenders would make us wait.
  [[nodiscard]] bool IsBusy(std::size_t index, const protocol::Contenders& contenders) const;
  void LeaveSemaphore(std::size_t index, const protocol::Children& children);
  void LeaveTaken(std::size_t index, const protocol::Children& children);
  void OnSearchProgress();
  void ExpectAnswer();
  void Finish(AcquireOutcome outcome);
  /// Take::kFirstFree: tries the next LOCK, because the current one is not free.
  void TryNext();
  /// Deletes our contender, and does so again over each new connection.
  void Leave(const Ticket& ticket);

  zookeeper::Store& store_;
  const Clock& clock_;
  const std::vector<AcquireRequest> requests_;
  std::function<std::string()> make_uuid_;
  const AcquireEventSink publish_;
  const Take take_;

  std::size_t current_ = 0;
  std::unique_ptr<Acquire> acquire_;  // for the current LOCK
  struct Won {
    std::size_t request;
    Ticket ticket;
  };
  std::vector<Won> won_;
  std::vector<std::string> left_;  // our contenders that are no longer needed
  std::vector<ReservedLock> reserved_;
  TimePoint wait_end_ = kNever;         // known once the first contender has joined
  bool checking_free_ = false;          // a `try`, before the first queue is joined
  std::size_t lists_pending_ = 0;       // during the check that all LOCKs are free
  TimePoint answer_deadline_ = kNever;  // when to give up on the server
  std::optional<HolderSearch> search_;  // in the LOCK that is busy
  CallbackScope scope_;
};

/// Returns the requests of an AcquireSet for permits of a semaphore, as Curator's
/// InterProcessSemaphoreV2 makes them: first for the turnstile, which one contender at a time
/// passes, then for the permits. `permit`: the request for the LOCK, with the number of permits in
/// `permits`.
[[nodiscard]] std::vector<AcquireRequest> RequestsForPermit(AcquireRequest permit);

}  // namespace zklock::lock
