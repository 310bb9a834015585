#include "lock/reservation_expiry.h"

#include <algorithm>
#include <utility>

#include "protocol/lock_path.h"
#include "protocol/release_record.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using zookeeper::Error;
using zookeeper::GetReply;
using zookeeper::Reply;
using zookeeper::SetReply;
using zookeeper::Watch;

// The servers' clock may be set forward while we wait.
constexpr std::chrono::milliseconds kLongestPause = 1h;
// It may also stand still, or be set back a little.
constexpr std::chrono::milliseconds kLeastPause = 50ms;

}  // namespace

ReservationExpiry::ReservationExpiry(zookeeper::Store& store, const Clock& clock, std::string queue,
                                     std::string name, Reserved reserved, bool was_first,
                                     Ticket own)
    : store_(store),
      clock_(clock),
      queue_(std::move(queue)),
      name_(std::move(name)),
      reserved_(std::move(reserved)),
      was_first_(was_first),
      own_(std::move(own)) {
  due_ = clock_.Now();
  if (!HadEnded()) Schedule(own_.LatestServerTimeAt(due_));
}

void ReservationExpiry::Schedule(std::chrono::milliseconds now) {
  due_ = clock_.Now() + std::clamp(*reserved_.until - now, kLeastPause, kLongestPause);
}

void ReservationExpiry::Run(std::function<void(Result)> done) {
  due_ = kNever;
  done_ = std::move(done);
  HadEnded() ? Delete() : AskForTime();
}

void ReservationExpiry::AskForTime() {
  store_.Get(own_.path, Watch::kNo, scope_.Wrap([this](const GetReply& read) {
    if (IsLost(read.error)) return;
    // Our contender is gone: its own watch says so.
    if (read.error != Error::kNone) return End(Result::kChanged);
    store_.Set(own_.path, read.data, read.stat.version, scope_.Wrap([this](const SetReply& reply) {
      if (IsLost(reply.error)) return;
      if (reply.error == Error::kNone) {
        return TakeTime(std::chrono::milliseconds(reply.stat.modified_ms));
      }
      // Asked to leave meanwhile, or deleted: look again.
      if (reply.error == Error::kBadVersion || reply.error == Error::kNoNode) {
        return End(Result::kChanged);
      }
      End(Result::kMayNot);
    }));
  }));
}

void ReservationExpiry::TakeTime(std::chrono::milliseconds now) {
  if (now >= *reserved_.until) return Delete();
  Schedule(now);
  End(Result::kNotYet);
}

void ReservationExpiry::Delete() {
  if (!LeavesRecord(reserved_, was_first_)) return DeleteWithoutRecord();
  store_.Get(queue_, Watch::kNo, scope_.Wrap([this](const GetReply& read) {
    if (IsLost(read.error)) return;
    // Not for a semaphore, nor in a LOCK that is not zklock's.
    if (read.error != Error::kNone || !protocol::ParseLockData(read.data)) {
      return DeleteWithoutRecord();
    }
    store_.WriteAndDelete(
        {{queue_, protocol::FormatLockData({RecordOf(name_, reserved_)}), read.stat.version}},
        protocol::ChildPath(queue_, name_), reserved_.version,
        scope_.Wrap([this](const Reply& reply) {
          if (IsLost(reply.error)) return;
          const bool may_not_write = IsRefusal(reply.error) || reply.error == Error::kQuotaExceeded;
          may_not_write ? DeleteWithoutRecord() : OnDeleted(reply);
        }));
  }));
}

void ReservationExpiry::DeleteWithoutRecord() {
  store_.Delete(protocol::ChildPath(queue_, name_), reserved_.version,
                scope_.Wrap([this](const Reply& reply) {
                  if (!IsLost(reply.error)) OnDeleted(reply);
                }));
}

void ReservationExpiry::OnDeleted(const Reply& reply) {
  switch (reply.error) {
    case Error::kNone:
      return End(Result::kDeleted);
    case Error::kNoNode:
    case Error::kBadVersion:
      return End(Result::kChanged);
    default:
      return End(Result::kMayNot);
  }
}

void ReservationExpiry::End(Result result) {
  const auto done = std::exchange(done_, nullptr);
  done(result);  // may destroy this
}

}  // namespace zklock::lock
