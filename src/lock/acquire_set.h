#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lock/acquire.h"

namespace zklock::lock {

/// The way through the queues of several LOCKs: one after the other, in the order given, all of
/// them or none. The order is the same for all callers (by path), so that no two of them can wait
/// for each other.
///
/// All contenders are of one session. What has been taken is proven again with each that follows; a
/// session that expires on the way loses all of it, and the way begins anew. One wait counts for
/// the whole. A `try` looks at all of them before it joins the first queue.
///
/// A LOCK that is a semaphore has two requests, one for its turnstile and the next for its leases.
///
/// Passive, as Acquire is, which does the work for each LOCK.
class AcquireSet final : public EventSource, public zookeeper::StoreListener {
 public:
  /// `requests`: at least one; `wait` and `try_only` are the same in all.
  AcquireSet(zookeeper::Store& store, const Clock& clock, std::vector<AcquireRequest> requests,
             std::function<std::string()> make_uuid, AcquireObserver& observer);
  ~AcquireSet() override;
  AcquireSet(const AcquireSet&) = delete;
  AcquireSet& operator=(const AcquireSet&) = delete;

  /// Set once, when it is over: Acquired when all are ours, else what went wrong with lock().
  [[nodiscard]] const std::optional<AcquireOutcome>& outcome() const { return outcome_; }
  /// A commit is under way whose answer may make all of them ours, or has just done so.
  [[nodiscard]] bool IsAboutToHold() const;
  /// Those that have been taken, in the order of the requests, but for turnstiles.
  [[nodiscard]] std::vector<Ticket> tickets() const;
  /// Contenders in turnstiles that have been passed, to be let go of.
  [[nodiscard]] std::vector<std::string> passed() const;
  /// The LOCK whose turn it is, or was when it ended.
  [[nodiscard]] const LockName& lock() const { return requests_[current_].lock; }

  Interest GetInterest() override;
  void OnReady(short revents) override;

  void OnConnected(bool fresh) override;
  void OnDisconnected() override;
  void OnExpired() override;
  void OnRefused(zookeeper::Error why) override;
  void OnWatch(const std::string& path) override;

 private:
  void Start(std::size_t index);
  /// The current one has its outcome: on to the next, or the end.
  void Advance();
  void LookAtAll();
  /// Whether a LOCK with these would have to be waited for.
  [[nodiscard]] bool IsBusy(std::size_t index, const protocol::Contenders& contenders) const;
  void LeaveTaken(std::size_t index, const protocol::Children& children);
  void OnSearchTold();
  void ExpectAnswer();
  void Finish(AcquireOutcome outcome);

  zookeeper::Store& store_;
  const Clock& clock_;
  const std::vector<AcquireRequest> requests_;
  std::function<std::string()> make_uuid_;
  AcquireObserver& observer_;

  std::size_t current_ = 0;
  std::unique_ptr<Acquire> acquire_;  // of the current LOCK
  std::vector<Ticket> tickets_;
  TimePoint wait_end_ = kNever;         // from the first contender on
  bool looking_ = false;                // at all of them, before the first is joined
  std::size_t looks_pending_ = 0;       // lists that are not answered yet
  TimePoint answer_deadline_ = kNever;  // while we look: then the server is given up
  std::optional<HolderSearch> search_;  // in the one that is busy
  std::optional<AcquireOutcome> outcome_;
  CallbackScope scope_;
};

}  // namespace zklock::lock
