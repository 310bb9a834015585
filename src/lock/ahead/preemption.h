#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "lock/data/acquire_request.h"
#include "lock/data/callback_scope.h"
#include "lock/data/event.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// Asks the contenders ahead of us to leave, with release requests: one by one, the last one first,
/// so that none of them gets the lock because another one has left. A contender that has already
/// been asked is not asked again, unless that request was for waiters only and ours is not.
///
/// Passive. It uses the waiter's session and serves one connection only: after a lost reply nothing
/// more happens, and the next connection needs a new Preemption.
class Preemption {
 public:
  /// `queue`: the znode whose children are the contenders. `names`: in queue order. `now`: no later
  /// than the servers' time. `done`: called once, perhaps before Begin() returns. `store` and
  /// `request` must outlive this.
  Preemption(zookeeper::Store& store, const AcquireRequest& request, std::string queue,
             std::vector<std::string> names, std::chrono::milliseconds now,
             std::function<void(const Preempted&)> done)
      : store_(store),
        request_(request),
        queue_(std::move(queue)),
        names_(std::move(names)),
        now_(now),
        done_(std::move(done)) {}

  void Begin();

 private:
  void JudgeLastRuns(const std::string& lock);
  void JudgeConversion(const std::string& parent);
  void AskNobody();
  void AskNext();
  void OnRead(const std::string& name, const zookeeper::GetReply& reply);
  void Ask(const std::string& name, const zookeeper::GetReply& read);
  void LeaveAlone(const std::string& name, Preempted::Why why);

  zookeeper::Store& store_;
  const AcquireRequest& request_;
  const std::string queue_;
  std::vector<std::string> names_;  ///< still to be asked
  const std::chrono::milliseconds now_;
  const std::function<void(const Preempted&)> done_;
  Preempted result_;
  CallbackScope scope_;
};

}  // namespace zklock::lock
