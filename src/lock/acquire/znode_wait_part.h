#pragma once

#include <optional>
#include <string>

#include "lock/acquire/attempt.h"
#include "lock/acquire/session_proof.h"
#include "lock/ahead/holder_search.h"
#include "protocol/queue_ahead.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// Dialect::kSimple: waits for the one znode that is the lock. There is no queue: once it is
/// deleted, the first client to create it again holds the lock.
class ZnodeWaitPart final : public WaitPart {
 public:
  ZnodeWaitPart(Attempt& attempt, SessionProof& proof) : attempt_(attempt), proof_(proof) {}

  void LookIfFree() override;
  void WaitFor(const std::string& predecessor, const QueueList& list, bool is_rival) override;
  void OnLockData(const zookeeper::GetReply& /*reply*/) override {}
  void CheckPredecessor() override;
  [[nodiscard]] const protocol::QueueAhead& ahead() const override { return nothing_known_; }

  void OnWatch(const std::string& path, zookeeper::Change change) override;
  void FinishBlocked(Busy::Why why) override;
  [[nodiscard]] TimePoint end() const override;
  void OnPlaceLost() override { searched_ = false; }

  void Leave() override;
  [[nodiscard]] bool IsWaiting() const override { return is_waiting_; }

 private:
  void Read();
  void OnRead(const zookeeper::GetReply& reply);
  void WatchChildren();
  void SearchHolders(const protocol::Children& children);
  void LeaveIfSearched();

  Attempt& attempt_;
  SessionProof& proof_;
  const protocol::QueueAhead nothing_known_;
  bool is_waiting_ = false;
  std::string data_;  // of the znode
  bool readable_ = true;
  bool searched_ = false;  // SearchHolders() has completed its search
  std::optional<HolderSearch> search_;
};

}  // namespace zklock::lock
