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
                  switch (reply.error) {
                    case Error::kNone:
                    case Error::kNoNode:
                      is_held_ = reply.error == Error::kNone;
                      return Succeed();
                    case Error::kNoAuth:
                    case Error::kAuthFailed:
                    case Error::kAuthRequired:
                      return Fail(Refused{"check a contender in", lock_.shown(), reply.error,
                                          "READ", lock_.Shown(node_)});
                    default:
                      return Fail(Defect{"checking a contender in " + lock_.shown() + ": " +
                                         std::string(zookeeper::ErrorText(reply.error))});
                  }
                }));
}

}  // namespace zklock::lock
