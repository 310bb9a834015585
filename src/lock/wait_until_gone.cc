#include "lock/wait_until_gone.h"

#include <utility>

#include "lock/contender_check.h"

namespace zklock::lock {

using zookeeper::Error;

WaitUntilGone::WaitUntilGone(zookeeper::Store& store, const Clock& clock, LockName lock,
                             ContenderId contender, Duration connect_timeout)
    : ServerOperation(store, clock, connect_timeout),
      lock_(std::move(lock)),
      contender_(std::move(contender)) {
  Start();
}

void WaitUntilGone::Begin() {
  // Get, not exists, which would leave a watch on a znode that is already gone.
  store().Get(contender_.path, zookeeper::Watch::kYes,
              OnReply([this](const zookeeper::GetReply& reply) {
                if (IsGone(contender_, reply)) return Succeed();
                if (reply.error == Error::kNone) return Rest();
                FailBecause(reply.error, "read a contender in", lock_.display_path(), "READ",
                            lock_.DisplayPath(contender_.path));
              }));
}

void WaitUntilGone::OnWatch(const std::string& path) {
  if (!IsOver() && path == contender_.path) Begin();
}

}  // namespace zklock::lock
