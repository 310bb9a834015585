#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/event_source.h"
#include "lock/acquire/attempt.h"
#include "lock/acquire/decision_part.h"
#include "lock/acquire/join_part.h"
#include "lock/acquire/proof_part.h"
#include "lock/acquire/session_proof.h"
#include "lock/data/acquire_request.h"
#include "lock/data/event.h"
#include "lock/data/outcome.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// Acquires one LOCK: joins its queue, decides, waits for the predecessor, decides again, and, when
/// its turn comes, proves that its contender exists. It can also find that the LOCK is already
/// reserved for our ID.
///
/// Each step is carried out by a part. Only one part at a time is active, in a state of its own:
///
///     JoinPart       -> DecisionPart; or first, for a `try`, a WaitPart's LookIfFree();
///                       ZnodeWaitPart, if the znode is taken (Dialect::kSimple)
///     DecisionPart   -> QueueWaitPart, ProofPart
///     QueueWaitPart  -> DecisionPart, ProofPart; JoinPart, if the lock was free for a `try`
///     ZnodeWaitPart  -> JoinPart; DecisionPart, if the znode is ours (Dialect::kSimple)
///     ProofPart      -> DecisionPart, if LOCK's data does not confirm the turn, or LOCK is gone
///
/// DecisionPart can also use a list that another part has requested; that part then stays active
/// until the decision. A lost connection stops the active part, and the next connection begins with
/// JoinPart. Any part can finish the acquisition.
///
/// Passive: driven by the store's callbacks, and by OnReady() at the times in its Interest. It is
/// the store's listener while it exists. All znodes that it leaves behind belong to the session:
/// unless the outcome is Acquired, the caller closes the session.
///
/// Follows zklock-protocol(7), The turn; ZooKeeper's lock recipe; Curator's LockInternals.
class Acquire final : public EventSource, public zookeeper::StoreListener, private AcquireSteps {
 public:
  /// `make_uuid`: as for OwnContender.
  Acquire(zookeeper::Store& store, const Clock& clock, AcquireRequest request,
          std::function<std::string()> make_uuid, AcquireEventSink publish);
  ~Acquire() override;

  /// Returns null until the acquisition is over.
  [[nodiscard]] const AcquireOutcome* outcome() const;
  /// Returns whether our turn may be milliseconds away: a commit in flight may make us the holder,
  /// or has just done so; or we are next in line, or had few contenders ahead of us.
  [[nodiscard]] bool IsNearTurn() const;
  /// Returns whether we wait, and our contender is not in the queue or had many others ahead of it.
  [[nodiscard]] bool IsFarFromTurn() const;
  /// Returns whether we wait for another contender rather than for an answer.
  [[nodiscard]] bool IsWaiting() const { return wait_->IsWaiting(); }
  /// Returns whether the queue has been examined: the LOCK can be used, and no contender holds it
  /// on our behalf. Also true once the acquisition is over.
  [[nodiscard]] bool HasDecided() const;
  /// With --reserve: returns whether a run with our ID that takes any of several LOCKs, including
  /// `lock`, is ahead of us in the part of the queue that was read.
  [[nodiscard]] bool HasRivalFor(const std::string& lock) const;
  /// With --reserve: returns whether a reservation for our ID exists but was not used: another
  /// contender precedes it in the latest list, or it may have ended by the servers' clock.
  [[nodiscard]] bool MayBeReserved() const { return attempt_.may_be_reserved; }
  /// Returns our contender; null if it is not known to have been created.
  [[nodiscard]] const Ticket* contender() const;
  /// Returns when the wait ends; kNever before the queue has been joined, or without a `wait`.
  [[nodiscard]] TimePoint wait_deadline() const { return attempt_.wait_deadline; }

  Interest GetInterest() override;
  void OnReady(short revents) override;

  void OnConnected(bool fresh) override;
  void OnDisconnected() override;
  void OnExpired() override;
  void OnRefused(zookeeper::Error why) override;
  void OnWatch(const std::string& path, zookeeper::Change change) override;

 private:
  void Join() override { join_.Join(); }
  void AdoptOrJoin(const std::vector<std::string>& names,
                   const zookeeper::GetReply& reply) override {
    join_.AdoptOrJoin(names, reply);
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
  void CheckPredecessor() override { wait_->CheckPredecessor(); }
  [[nodiscard]] const protocol::QueueAhead& ahead() const override { return wait_->ahead(); }

  [[nodiscard]] TimePoint UnreachableAt() const;

  Attempt attempt_;
  SessionProof proof_;
  JoinPart join_;
  DecisionPart decide_;
  const std::unique_ptr<WaitPart> wait_;
  ProofPart prove_;
};

}  // namespace zklock::lock
