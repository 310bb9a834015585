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
                switch (reply.error) {
                  case Error::kNone:
                    return Rest();
                  case Error::kNoNode:
                    return Succeed();
                  case Error::kNoAuth:
                  case Error::kAuthFailed:
                    return Fail(Refused{"read a contender in", lock_.shown(), reply.error, "READ",
                                        lock_.shown()});
                  default:
                    return Fail(Defect{"reading a contender in " + lock_.shown() + ": " +
                                       std::string(zookeeper::ErrorText(reply.error))});
                }
              }));
}

void Departure::OnWatch(const std::string& path) {
  if (!IsOver() && path == path_) Begin();
}

}  // namespace zklock::lock
