#include "lock/delete_contender.h"

#include <utility>

#include "lock/contender_check.h"

namespace zklock::lock {

using zookeeper::Error;

DeleteContender::DeleteContender(zookeeper::Store& store, const Clock& clock, LockName lock,
                                 ContenderId contender, Duration connect_timeout)
    : ServerOperation(store, clock, connect_timeout),
      lock_(std::move(lock)),
      contender_(std::move(contender)) {
  Start();
}

void DeleteContender::Begin() {
  if (!contender_.has_reused_name()) return Delete(zookeeper::kAnyVersion);
  store().Get(contender_.path, zookeeper::Watch::kNo,
              OnReply([this](const zookeeper::GetReply& read) {
                if (IsGone(contender_, read)) return SucceedAsGone();
                if (read.error == Error::kNone) return Delete(read.stat.version);
                FailBecause(read.error, "read a contender in", lock_.display_path(), "READ",
                            lock_.DisplayPath(contender_.path));
              }));
}

void DeleteContender::Delete(std::int32_t version) {
  const bool was_asked = std::exchange(may_be_done_, true);
  store().Delete(contender_.path, version,
                 OnReply([this, was_asked](const zookeeper::Reply& reply) {
                   if (reply.error == Error::kBadVersion) {
                     may_be_done_ = was_asked;
                     return Begin();  // read what is there now
                   }
                   if (reply.error == Error::kNone) {
                     has_removed_ = true;
                     return Succeed();
                   }
                   if (reply.error == Error::kNoNode) {
                     may_be_done_ = was_asked;
                     return SucceedAsGone();
                   }
                   FailBecause(reply.error, "delete a contender in", lock_.display_path(), "DELETE",
                               lock_.display_path());
                 }));
}

void DeleteContender::SucceedAsGone() {
  has_removed_ = may_be_done_;
  Succeed();
}

}  // namespace zklock::lock
