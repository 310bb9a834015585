#include "lock/held_check.h"

#include <utility>

namespace zklock::lock {

using zookeeper::Error;

HeldCheck::HeldCheck(zookeeper::Store& store, const Clock& clock, LockName lock, std::string node,
                     Duration connect_timeout)
    : Errand(store, clock, connect_timeout), lock_(std::move(lock)), node_(std::move(node)) {
  Start();
}

void HeldCheck::Begin() {
  store().Check({node_}, OnReply([this](const zookeeper::Reply& reply) {
                  is_held_ = reply.error == Error::kNone;
                  if (is_held_ || reply.error == Error::kNoNode) return Succeed();
                  FailBecause(reply.error, "check a contender in", lock_.shown(), "READ",
                              lock_.Shown(node_));
                }));
}

}  // namespace zklock::lock
