#include "lock/held_check.h"

#include <utility>

namespace zklock::lock {

using zookeeper::Error;

HeldCheck::HeldCheck(zookeeper::Store& store, const Clock& clock, LockName lock,
                     std::vector<std::string> nodes, Duration connect_timeout)
    : Errand(store, clock, connect_timeout), lock_(std::move(lock)), nodes_(std::move(nodes)) {
  Start();
}

void HeldCheck::Begin() {
  store().Check(nodes_, OnReply([this](const zookeeper::Reply& reply) {
                  if (reply.error == Error::kNone) return ReadToken();
                  if (reply.error == Error::kNoNode) return Succeed();
                  FailBecause(reply.error, "check a contender in", lock_.shown(), "READ",
                              lock_.Shown(nodes_.front()));
                }));
}

void HeldCheck::ReadToken() {
  store().Get(nodes_.front(), zookeeper::Watch::kNo,
              OnReply([this](const zookeeper::GetReply& reply) {
                is_held_ = reply.error == Error::kNone;
                token_ = reply.stat.created_zxid;
                if (is_held_ || reply.error == Error::kNoNode) return Succeed();
                FailBecause(reply.error, "read a contender in", lock_.shown(), "READ",
                            lock_.Shown(nodes_.front()));
              }));
}

}  // namespace zklock::lock
