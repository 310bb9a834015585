#include "lock/ownership_check.h"

#include <utility>

#include "lock/contender_check.h"

namespace zklock::lock {

using zookeeper::Error;

OwnershipCheck::OwnershipCheck(zookeeper::Store& store, const Clock& clock, LockName lock,
                               std::vector<ContenderId> contenders, Duration connect_timeout)
    : ServerOperation(store, clock, connect_timeout),
      lock_(std::move(lock)),
      contenders_(std::move(contenders)) {
  Start();
}

void OwnershipCheck::Begin() {
  CheckContenders(store(), contenders_, OnReply([this](const zookeeper::Reply& reply) {
                    is_held_ = reply.error == Error::kNone;
                    if (is_held_ || reply.error == Error::kNoNode) return Succeed();
                    FailBecause(reply.error, "check a contender in", lock_.display_path(), "READ",
                                lock_.DisplayPath(contenders_.front().path));
                  }));
}

}  // namespace zklock::lock
