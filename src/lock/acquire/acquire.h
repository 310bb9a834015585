#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/event_source.h"
#include "lock/acquire/attempt.h"
#include "lock/acquire/decide_turn.h"
#include "lock/acquire/join_queue.h"
#include "lock/acquire/prove_turn.h"
#include "lock/acquire/session_proof.h"
#include "lock/data/acquire_request.h"
#include "lock/data/outcome.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// Acquires one LOCK: joins its queue, decides, waits for the predecessor, decides again, and
/// proves at its turn that its contender exists. Or finds that it is reserved for our ID already.
///
/// Each of these steps is a part with states of its own, and one of them is at work at a time:
///
///     JoinQueue     -> DecideTurn, or first WaitInQueue::LookIfFree() for a `try`
///     DecideTurn    -> WaitInQueue, ProveTurn
///     WaitInQueue   -> DecideTurn, ProveTurn
///     WaitForZnode  -> JoinQueue (Dialect::kSimple, in place of WaitInQueue)
///     ProveTurn     -> DecideTurn, if LOCK's data does not confirm the turn
///
/// A lost connection ends the work of each, and the next connection begins with JoinQueue. Any of
/// them may find that it is over.
///
/// Passive: driven by the store's callbacks and by OnReady() at its moments. The store's listener
/// while it lives. All znodes that it leaves behind are the session's: unless the outcome is
/// Acquired, the caller closes the session.
///
/// Follows zklock-protocol(7), section 3; ZooKeeper's lock recipe; Curator's LockInternals.
class Acquire final : public EventSource, public zookeeper::StoreListener, private AcquireSteps {
 public:
  /// `make_uuid`: as for OwnContender.
  Acquire(zookeeper::Store& store, const Clock& clock, AcquireRequest request,
          std::function<std::string()> make_uuid, AcquireObserver& observer);
  ~Acquire() override;
  Acquire(const Acquire&) = delete;
  Acquire& operator=(const Acquire&) = delete;

  /// Null until it is over.
  [[nodiscard]] const AcquireOutcome* outcome() const;
  /// Our turn may come within milliseconds: the answer to a commit that is under way may make us
  /// the holder, or has just done so; or we are next in line, or few contenders were before us.
  [[nodiscard]] bool IsNearTurn() const;
  /// We wait, and our contender is not in the queue or has many others before it.
  [[nodiscard]] bool IsFarFromTurn() const;
  /// When the wait is over; kNever before the queue has been joined, or without a `wait`.
  [[nodiscard]] TimePoint wait_deadline() const { return attempt_.wait_deadline; }
  /// How long a server that has accepted the session may take for an answer.
  [[nodiscard]] Duration AnswerTime() const { return attempt_.AnswerTime(); }

  Interest GetInterest() override;
  void OnReady(short revents) override;

  void OnConnected(bool fresh) override;
  void OnDisconnected() override;
  void OnExpired() override;
  void OnRefused(zookeeper::Error why) override;
  void OnWatch(const std::string& path, zookeeper::Change change) override;

 private:
  void Join() override { join_.Join(); }
  void Adopt(const std::string& name, const zookeeper::GetReply& reply) override {
    join_.Adopt(name, reply);
  }
  void LookIfFree() override { wait_->LookIfFree(); }
  void ListAgain() override { decide_.ListAgain(); }
  void CheckOwn() override { decide_.CheckOwn(); }
  void DecideByNextList(Proof proof) override { decide_.DecideByNextList(proof); }
  void Decide(const protocol::Children& children) override { decide_.Decide(children); }
  void WaitFor(const std::string& predecessor, const QueueList& list, bool is_rival) override {
    wait_->WaitFor(predecessor, list, is_rival);
  }
  void Confirm(const std::string& record_of) override { prove_.Confirm(record_of); }
  void TakeTurn() override { prove_.TakeTurn(); }
  void OnLockData(const zookeeper::GetReply& reply) override { wait_->OnLockData(reply); }
  [[nodiscard]] const protocol::QueueAhead& ahead() const override { return wait_->ahead(); }

  [[nodiscard]] TimePoint UnreachableAt() const;

  Attempt attempt_;
  SessionProof proof_;
  JoinQueue join_;
  DecideTurn decide_;
  const std::unique_ptr<AcquireWait> wait_;
  ProveTurn prove_;
};

}  // namespace zklock::lock
