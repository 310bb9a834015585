#include "lock/release_reservation.h"

#include <optional>
#include <string_view>
#include <utility>

#include "lock/reserved.h"
#include "protocol/lock_path.h"
#include "protocol/release_record.h"

namespace zklock::lock {

using zookeeper::Error;
using zookeeper::GetReply;
using zookeeper::Reply;
using zookeeper::Watch;

ReleaseReservation::ReleaseReservation(zookeeper::Store& store, const Clock& clock, LockName lock,
                                       std::string path, std::string id, Duration connect_timeout)
    : ServerOperation(store, clock, connect_timeout),
      lock_(std::move(lock)),
      path_(std::move(path)),
      id_(std::move(id)) {
  Start();
}

void ReleaseReservation::Begin() {
  store().Get(path_, Watch::kNo, OnReply([this](const GetReply& reply) { OnReservation(reply); }));
}

void ReleaseReservation::OnReservation(const GetReply& reply) {
  if (reply.error != Error::kNone && reply.error != Error::kNoNode) {
    return FailBecause(reply.error, "read a contender in", lock_.display_path(), "READ",
                       lock_.DisplayPath(path_));
  }
  const std::string_view name = protocol::BaseOf(path_);
  const auto reserved =
      reply.error == Error::kNone ? FindReservation(name, reply.data, reply.stat) : std::nullopt;
  if (!reserved || reserved->reservation.id != id_) {
    has_released_ = may_be_done_;
    return Succeed();
  }
  version_ = reply.stat.version;
  // A semaphore has no record.
  if (protocol::ParentOf(path_) != lock_.path) return DeleteAlone();
  const std::string record = protocol::FormatLockData({RecordOf(name, *reserved)});
  store().Get(lock_.path, Watch::kNo,
              OnReply([this, record](const GetReply& lock) { OnLock(record, lock); }));
}

void ReleaseReservation::OnLock(const std::string& record, const GetReply& reply) {
  const bool is_ours = reply.error == Error::kNone && protocol::ParseLockData(reply.data);
  is_ours ? DeleteWith(record, reply.stat.version) : DeleteAlone();
}

void ReleaseReservation::DeleteWith(const std::string& record, std::int32_t lock_version) {
  const bool was_sent = std::exchange(may_be_done_, true);
  store().WriteAndDelete({{lock_.path, record, lock_version}}, path_, version_,
                         OnReply([this, was_sent](const Reply& reply) {
                           // Without WRITE on LOCK it can still be deleted.
                           if (zookeeper::IsRefusal(reply.error)) {
                             may_be_done_ = was_sent;
                             return DeleteAlone();
                           }
                           OnDeleted(reply, was_sent);
                         }));
}

void ReleaseReservation::DeleteAlone() {
  const bool was_sent = std::exchange(may_be_done_, true);
  store().Delete(path_, version_,
                 OnReply([this, was_sent](const Reply& reply) { OnDeleted(reply, was_sent); }));
}

void ReleaseReservation::OnDeleted(const Reply& reply, bool may_have_been_done) {
  switch (reply.error) {
    case Error::kNone:
      has_released_ = true;
      return Succeed();
    case Error::kNoNode:
    case Error::kBadVersion:
      may_be_done_ = may_have_been_done;
      return Begin();  // read what is there now
    default:
      return FailBecause(reply.error, "delete a contender in", lock_.display_path(), "DELETE",
                         lock_.DisplayPath(protocol::ParentOf(path_)));
  }
}

}  // namespace zklock::lock
