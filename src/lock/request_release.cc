#include "lock/request_release.h"

#include <utility>

#include "lock/contender_check.h"

namespace zklock::lock {

using zookeeper::Error;

RequestRelease::RequestRelease(zookeeper::Store& store, const Clock& clock, LockName lock,
                               ContenderId contender,
                               std::function<std::string(const std::string&)> edit,
                               Duration connect_timeout)
    : ServerOperation(store, clock, connect_timeout),
      lock_(std::move(lock)),
      contender_(std::move(contender)),
      edit_(std::move(edit)) {
  Start();
}

void RequestRelease::Begin() {
  store().Get(contender_.path, zookeeper::Watch::kNo,
              OnReply([this](const zookeeper::GetReply& reply) {
                if (IsGone(contender_, reply)) return Succeed();
                if (reply.error != Error::kNone) return Settle("read", reply.error);
                Write(reply);
              }));
}

void RequestRelease::Write(const zookeeper::GetReply& read) {
  store().Set(contender_.path, edit_(read.data), read.stat.version,
              OnReply([this](const zookeeper::Reply& reply) {
                if (reply.error == Error::kBadVersion) return Begin();  // edit what is there now
                has_asked_ = reply.error == Error::kNone;
                if (has_asked_) return Succeed();
                Settle("write to", reply.error);
              }));
}

void RequestRelease::Settle(const std::string& operation, Error error) {
  if (error == Error::kNoNode) return Succeed();
  FailBecause(error, operation + " a contender in", lock_.display_path(),
              operation == "read" ? "READ" : "WRITE", lock_.DisplayPath(contender_.path));
}

}  // namespace zklock::lock
