#include "lock/contender_operations.h"

#include <utility>

#include "lock/contender_check.h"

namespace zklock::lock {

using zookeeper::Error;
using zookeeper::GetReply;
using zookeeper::Reply;
using zookeeper::Watch;

ContenderOperation::ContenderOperation(zookeeper::Store& store, const Clock& clock, LockName lock,
                                       ContenderId contender, Duration connect_timeout)
    : ServerOperation(store, clock, connect_timeout),
      lock_(std::move(lock)),
      contender_(std::move(contender)) {}

void ContenderOperation::FailToRead(Error why) {
  FailBecause(why, "read a contender in", lock_.display_path(), "READ",
              lock_.DisplayPath(contender_.path));
}

void ContenderOperation::FailToWrite(Error why) {
  FailBecause(why, "write to a contender in", lock_.display_path(), "WRITE",
              lock_.DisplayPath(contender_.path));
}

void ContenderOperation::FailToDelete(Error why) {
  FailBecause(why, "delete a contender in", lock_.display_path(), "DELETE", lock_.display_path());
}

// ---- DeleteContender --------------------------------------------------------------------------

DeleteContender::DeleteContender(zookeeper::Store& store, const Clock& clock, LockName lock,
                                 ContenderId contender, Duration connect_timeout)
    : ContenderOperation(store, clock, std::move(lock), std::move(contender), connect_timeout) {
  Start();
}

void DeleteContender::Begin() {
  if (!contender().has_reused_name()) return Delete(zookeeper::kAnyVersion);
  store().Get(contender().path, Watch::kNo, OnReply([this](const GetReply& read) {
                if (IsGone(contender(), read)) return SucceedAsGone();
                if (read.error != Error::kNone) return FailToRead(read.error);
                Delete(read.stat.version);
              }));
}

void DeleteContender::Delete(std::int32_t version) {
  const bool was_asked = std::exchange(may_be_done_, true);
  store().Delete(contender().path, version, OnReply([this, was_asked](const Reply& reply) {
                   switch (reply.error) {
                     case Error::kNone:
                       has_removed_ = true;
                       return Succeed();
                     case Error::kNoNode:
                       may_be_done_ = was_asked;
                       return SucceedAsGone();
                     case Error::kBadVersion:
                       may_be_done_ = was_asked;
                       return Begin();  // read what is there now
                     default:
                       return FailToDelete(reply.error);
                   }
                 }));
}

void DeleteContender::SucceedAsGone() {
  has_removed_ = may_be_done_;
  Succeed();
}

// ---- RequestRelease ---------------------------------------------------------------------------

RequestRelease::RequestRelease(zookeeper::Store& store, const Clock& clock, LockName lock,
                               ContenderId contender,
                               std::function<std::string(const std::string&)> edit,
                               Duration connect_timeout)
    : ContenderOperation(store, clock, std::move(lock), std::move(contender), connect_timeout),
      edit_(std::move(edit)) {
  Start();
}

void RequestRelease::Begin() {
  store().Get(contender().path, Watch::kNo, OnReply([this](const GetReply& reply) {
                if (IsGone(contender(), reply)) return Succeed();
                if (reply.error != Error::kNone) return FailToRead(reply.error);
                Write(reply);
              }));
}

void RequestRelease::Write(const GetReply& read) {
  store().Set(contender().path, edit_(read.data), read.stat.version,
              OnReply([this](const Reply& reply) {
                if (reply.error == Error::kBadVersion) return Begin();  // edit what is there now
                has_asked_ = reply.error == Error::kNone;
                if (has_asked_ || reply.error == Error::kNoNode) return Succeed();
                FailToWrite(reply.error);
              }));
}

// ---- WaitUntilGone ----------------------------------------------------------------------------

WaitUntilGone::WaitUntilGone(zookeeper::Store& store, const Clock& clock, LockName lock,
                             ContenderId contender, Duration connect_timeout)
    : ContenderOperation(store, clock, std::move(lock), std::move(contender), connect_timeout) {
  Start();
}

void WaitUntilGone::Begin() {
  // Get, not exists, which would leave a watch on a znode that is already gone.
  store().Get(contender().path, Watch::kYes, OnReply([this](const GetReply& reply) {
                if (IsGone(contender(), reply)) return Succeed();
                if (reply.error != Error::kNone) return FailToRead(reply.error);
                Rest();
              }));
}

void WaitUntilGone::OnWatch(const std::string& path, zookeeper::Change /*change*/) {
  if (!IsOver() && path == contender().path) Begin();
}

// ---- OwnershipCheck ---------------------------------------------------------------------------

OwnershipCheck::OwnershipCheck(zookeeper::Store& store, const Clock& clock, LockName lock,
                               std::vector<ContenderId> contenders, Duration connect_timeout)
    : ServerOperation(store, clock, connect_timeout),
      lock_(std::move(lock)),
      contenders_(std::move(contenders)) {
  Start();
}

void OwnershipCheck::Begin() {
  CheckContenders(store(), contenders_, OnReply([this](const Reply& reply) {
                    is_held_ = reply.error == Error::kNone;
                    if (is_held_ || reply.error == Error::kNoNode) return Succeed();
                    FailBecause(reply.error, "check a contender in", lock_.display_path(), "READ",
                                lock_.DisplayPath(contenders_.front().path));
                  }));
}

}  // namespace zklock::lock
