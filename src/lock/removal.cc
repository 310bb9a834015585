#include "lock/removal.h"

#include <utility>

namespace zklock::lock {

using zookeeper::Error;

Removal::Removal(zookeeper::Store& store, const Clock& clock, LockName lock, std::string contender,
                 Duration connect_timeout)
    : Errand(store, clock, connect_timeout),
      lock_(std::move(lock)),
      contender_(std::move(contender)) {
  Start();
}

void Removal::Begin() {
  const bool may_be_done = std::exchange(may_be_done_, true);
  const auto on_reply = [this, may_be_done](const zookeeper::Reply& reply) {
    if (reply.error == Error::kNone || reply.error == Error::kNoNode) {
      has_removed_ = reply.error == Error::kNone || may_be_done;
      return Succeed();
    }
    FailBecause(reply.error, "delete a contender in", lock_.shown(), "DELETE", lock_.shown());
  };
  store().Delete(lock_.path + "/" + contender_, OnReply(on_reply));
}

}  // namespace zklock::lock
