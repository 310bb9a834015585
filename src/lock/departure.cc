#include "lock/departure.h"

#include <utility>

namespace zklock::lock {

using zookeeper::Error;

Departure::Departure(zookeeper::Store& store, const Clock& clock, LockName lock,
                     const std::string& contender, Duration connect_timeout)
    : Errand(store, clock, connect_timeout),
      lock_(std::move(lock)),
      path_(lock_.path + "/" + contender) {
  Start();
}

void Departure::Begin() {
  // A get, not an exists: exists would leave a watch behind on what has gone.
  store().Get(path_, zookeeper::Watch::kYes, OnReply([this](const zookeeper::GetReply& reply) {
                if (reply.error == Error::kNone) return Rest();
                if (reply.error == Error::kNoNode) return Succeed();
                FailBecause(reply.error, "read a contender in", lock_.shown(), "READ",
                            lock_.Shown(path_));
              }));
}

void Departure::OnWatch(const std::string& path) {
  if (!IsOver() && path == path_) Begin();
}

}  // namespace zklock::lock
