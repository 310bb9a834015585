#include "lock/ahead/reservation_expiry.h"

#include "protocol/lock_path.h"
#include "protocol/release_record.h"

namespace zklock::lock {

using zookeeper::Error;
using zookeeper::GetReply;
using zookeeper::Reply;
using zookeeper::SetReply;
using zookeeper::Watch;

void ReservationExpiry::Run(std::function<void(Result)> done) {
  done_ = std::move(done);
  HadEnded(reserved_, own_) ? Delete() : AskForTime();
}

void ReservationExpiry::AskForTime() {
  store_.Get(own_.path, Watch::kNo, scope_.Wrap([this](const GetReply& read) {
    if (IsLost(read.error)) return;
    // Our contender is gone: its own watch reports that.
    if (read.error != Error::kNone) return End(Result::kChanged);
    store_.Set(own_.path, read.data, read.stat.version, scope_.Wrap([this](const SetReply& reply) {
      if (IsLost(reply.error)) return;
      if (reply.error == Error::kNone) {
        servers_time_ = {std::chrono::milliseconds(reply.stat.modified_ms), reply.sent};
        return servers_time_.shown >= *reserved_.end() ? Delete() : End(Result::kNotYet);
      }
      // Our contender was asked to leave, or deleted: look again.
      if (reply.error == Error::kBadVersion || reply.error == Error::kNoNode) {
        return End(Result::kChanged);
      }
      End(Result::kMayNot);
    }));
  }));
}

void ReservationExpiry::Delete() {
  if (!LeavesRecord(reserved_, was_first_)) return DeleteWithoutRecord();
  store_.Get(queue_, Watch::kNo, scope_.Wrap([this](const GetReply& read) {
    if (IsLost(read.error)) return;
    // There is no record for a semaphore, nor in a LOCK whose data is not zklock's.
    if (read.error != Error::kNone || !protocol::ParseLockData(read.data)) {
      return DeleteWithoutRecord();
    }
    store_.WriteAndDelete(
        {{queue_, protocol::FormatLockData({RecordOf(name_, reserved_)}), read.stat.version}},
        {protocol::ChildPath(queue_, name_)}, reserved_.version,
        scope_.Wrap([this](const Reply& reply) {
          if (IsLost(reply.error)) return;
          const bool may_not_write = IsRefusal(reply.error) || reply.error == Error::kQuotaExceeded;
          may_not_write ? DeleteWithoutRecord() : OnDeleted(reply);
        }));
  }));
}

void ReservationExpiry::DeleteWithoutRecord() {
  const auto done = scope_.Wrap([this](const Reply& reply) {
    if (!IsLost(reply.error)) OnDeleted(reply);
  });
  std::vector<std::string> paths{protocol::ChildPath(queue_, name_)};
  if (more_.empty()) return store_.Delete(paths.front(), reserved_.version, done);
  for (const std::string& name : more_) paths.push_back(protocol::ChildPath(queue_, name));
  store_.WriteAndDelete({}, paths, reserved_.version, done);
}

void ReservationExpiry::OnDeleted(const Reply& reply) {
  switch (reply.error) {
    case Error::kNone:
      return End(Result::kDeleted);
    case Error::kNoNode:
    case Error::kBadVersion:
      return End(Result::kChanged);
    default:
      lacks_right_ = IsRefusal(reply.error);
      return End(Result::kMayNot);
  }
}

void ReservationExpiry::End(Result result) {
  const auto done = std::exchange(done_, nullptr);
  done(result);  // may destroy this
}

}  // namespace zklock::lock
