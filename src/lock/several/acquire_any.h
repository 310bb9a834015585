#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lock/acquire/acquire.h"
#include "lock/acquire/lock_creation.h"
#include "lock/data/event.h"
#include "lock/several/acquisition.h"

namespace zklock::lock {

/// Acquires one of several LOCKs: the one that becomes free first, or the first in the given order
/// if several are free.
///
/// One transaction creates a contender in each queue, so that two runs have the same order in every
/// queue that both are in. Each contender then waits as it would for a single LOCK (Acquire). The
/// first LOCK that is granted is taken, but only once every queue has been examined: a LOCK that
/// cannot be used ends the run. The caller must delete the other contenders (passed()); whatever
/// they are granted in the meantime is ignored.
///
/// A run that holds one LOCK waits for no other, so it cannot be part of a deadlock.
///
/// With --reserve, a reservation for our ID in any of the LOCKs suffices. Of two runs with the same
/// ID and the same LOCKs, the later one takes no LOCK while the earlier one is in any of the
/// queues: if the later one is granted a LOCK, it leaves that queue.
///
/// If the session expires, the run rejoins each queue at its tail. A run leaves a queue for
/// good if its contender there was deleted or asked to leave, or if the queue is full.
class AcquireAny final : public Acquisition {
 public:
  /// `requests`: at least two, none of them for a `try` or for a semaphore; `wait` and `reserve`
  /// are the same in all.
  AcquireAny(zookeeper::Store& store, const Clock& clock, std::vector<AcquireRequest> requests,
             std::function<std::string()> make_uuid, AcquireEventSink publish);
  ~AcquireAny() override;

  [[nodiscard]] bool IsNearTurn() const override;
  /// Always returns false: the contenders of a waiter that was killed without a guard would block
  /// each of the LOCKs until its session expires.
  [[nodiscard]] bool IsFarFromTurn() const override { return false; }
  /// Returns the contender for the LOCK that was taken.
  [[nodiscard]] std::vector<Ticket> tickets() const override;
  [[nodiscard]] std::vector<ReservedLock> reserved() const override;
  [[nodiscard]] std::vector<std::string> passed() const override;
  [[nodiscard]] bool MayBeReserved() const override;
  [[nodiscard]] TimePoint wait_end() const override;
  [[nodiscard]] const LockName& lock() const override { return requests_[decisive_].lock; }
  bool GiveUp(const std::string& contender) override;

  Interest GetInterest() override;
  void OnReady(short revents) override;

  void OnConnected(bool fresh) override;
  void OnDisconnected() override;
  void OnExpired() override;
  void OnRefused(zookeeper::Error why) override;
  void OnWatch(const std::string& path, zookeeper::Change change) override;

 private:
  /// The state of one request.
  struct Queue {
    Queue(zookeeper::Store& store, const AcquireRequest& request) : creation(store, request) {}
    LockCreation creation;
    std::unique_ptr<Acquire> acquire{};  ///< null before the queue is joined, and once it is left
    bool is_left = false;
    bool is_judged = false;     ///< the queue was examined before the grant had to be proven again
    bool grant_is_old = false;  ///< the grant had to wait for a connection or for another queue

    [[nodiscard]] bool IsGranted() const;
  };

  void Create();
  void OnCreated(const std::vector<std::size_t>& queues, const zookeeper::CreateAllReply& reply);
  void CreateLocks(const std::vector<std::size_t>& queues, std::size_t first);
  void FindLostCreate();
  void Start(std::size_t index, GivenContender contender);
  void Advance();
  /// Proves a grant that had to wait.
  void ProveAgain(std::size_t index);
  /// Leaves the queue for good. `why`: none if the waits in all queues end.
  void Leave(std::size_t index, std::optional<QueueLeftEvent::Why> why);
  void DeleteLeft();
  void Finish(std::size_t index, AcquireOutcome outcome);
  void FinishQuota(std::size_t index);
  void ExpectAnswer();

  [[nodiscard]] std::vector<std::size_t> Open() const;
  [[nodiscard]] TimePoint UnreachableAt() const;
  [[nodiscard]] bool MayTake() const;
  bool YieldToRival(std::size_t granted);
  [[nodiscard]] bool IsProvingAgain() const;
  [[nodiscard]] bool HasJoined() const;
  [[nodiscard]] bool HaveAllDecided() const;
  [[nodiscard]] std::string Prefix(std::size_t index) const;

  zookeeper::Store& store_;
  const Clock& clock_;
  const std::vector<AcquireRequest> requests_;
  std::function<std::string()> make_uuid_;
  const AcquireEventSink publish_;

  std::deque<Queue> queues_;       // one for each request; a deque, because a Queue cannot be moved
  std::string uuid_;               // of all contenders of this session
  bool create_sent_ = false;       // a create with uuid_ was sent and is not known to have failed
  TimePoint create_sent_at_{};     // when the first of these creates was sent
  std::size_t lists_pending_ = 0;  // during the search for the contenders of a lost create
  std::vector<std::string> left_;  // our contenders in queues that we have left, until they are
                                   // deleted
  /// The reason that will be reported, and the first queue that was left for it.
  struct Ended {
    std::size_t index;
    Busy busy;
  };
  std::optional<Ended> ended_;
  std::size_t decisive_ = 0;     // the request that was granted, or has ended the wait
  TimePoint wait_end_ = kNever;  // kept when a queue is left or the session expires
  TimePoint answer_deadline_ = kNever;
  std::optional<std::size_t> proven_again_;  // the last grant that had to be proven again
  std::optional<std::size_t> listed_for_;    // the last grant for which rivals were listed again
  /// No server has served us since then.
  std::optional<TimePoint> unserved_since_;
  CallbackScope scope_;  // replaced when the connection is lost
};

}  // namespace zklock::lock
