#include "lock/hold/success_record.h"

#include <utility>

#include "protocol/lock_path.h"
#include "protocol/release_record.h"

namespace zklock::lock {
namespace {

using zookeeper::Error;
using zookeeper::NodeKind;
using zookeeper::Watch;

std::string PathOf(const Ticket& ticket) {
  return protocol::ChildPath(ticket.lock.path, protocol::kLastRunChild);
}

}  // namespace

SuccessRecord::SuccessRecord(zookeeper::Store& store, std::vector<Ticket> tickets)
    : store_(store), tickets_(std::move(tickets)), below_(tickets_.size()) {}

EventSource::Interest SuccessRecord::GetInterest() {
  // The session wakes the loop when it is connected.
  if (IsDone() || under_way_ || !store_.IsConnected()) return {};
  return {.wake = TimePoint{}};
}

void SuccessRecord::OnReady(short /*revents*/) {
  if (IsDone() || under_way_ || !store_.IsConnected()) return;
  under_way_ = true;
  const Ticket& ticket = tickets_[next_];
  recording_ ? Write(ticket) : Ask(ticket);
}

void SuccessRecord::Advance() {
  under_way_ = false;
  ++next_;
}

void SuccessRecord::Ask(const Ticket& ticket) {
  kept_.reset();
  below_[next_].clear();
  store_.Get(
      PathOf(ticket), Watch::kNo,
      scope_.Wrap([this, &ticket](const zookeeper::GetReply& reply) { OnKept(ticket, reply); }));
  // Replies arrive in order: with this one, both are known or both are lost.
  store_.Get(
      ticket.lock.path, Watch::kNo,
      scope_.Wrap([this, &ticket](const zookeeper::GetReply& reply) { OnAsked(ticket, reply); }));
}

void SuccessRecord::OnKept(const Ticket& ticket, const zookeeper::GetReply& kept) {
  if (kept.error == Error::kNoNode || IsLost(kept.error)) return;
  if (kept.error != Error::kNone) return GiveUp(ticket, PathOf(ticket), kept.error);
  // An administrator may have created it, empty, for its ACL.
  if (const auto data = protocol::ParseLastRunData(kept.data)) {
    kept_ = data->success;
    below_[next_] = data->below;
    return;
  }
  unknown_ =
      Unusable{.why = Unusable::Why::kRecordUnknown, .child = std::string(protocol::kLastRunChild)};
}

void SuccessRecord::GiveUp(const Ticket& ticket, const std::string& path, Error error) {
  unknown_ = FailureOf(error, "read the last run under", ticket.lock.display_path(), "READ",
                       ticket.lock.DisplayPath(path));
}

void SuccessRecord::OnAsked(const Ticket& ticket, const zookeeper::GetReply& lock) {
  if (IsLost(lock.error)) {
    under_way_ = false;
    return;
  }
  if (unknown_) return;
  if (lock.error == Error::kNoNode) return;  // our contender is gone too: the Hold notices
  if (lock.error != Error::kNone) return GiveUp(ticket, ticket.lock.path, lock.error);
  std::optional<protocol::ReleaseRecord> record;
  if (const auto data = protocol::ParseLockData(lock.data)) record = data->last_release;
  const auto success =
      protocol::NewestSuccess(kept_, record, protocol::ServerTime(lock.stat.modified_ms));
  if (success && (!newest_ || newest_->success.began < success->began)) {
    newest_ = Success{ticket.lock.display_path(), *success};
  }
  Advance();
}

void SuccessRecord::Record(TimePoint began, const std::string& host,
                           std::vector<std::optional<zookeeper::DataWrite>> data) {
  recording_ = true;
  data_ = std::move(data);
  began_ = began;
  host_ = host;
  next_ = 0;
}

void SuccessRecord::Write(const Ticket& ticket) {
  const bool is_given = next_ < data_.size() && data_[next_];
  const std::string data =
      is_given
          ? data_[next_]->data
          : protocol::FormatLastSuccess({ticket.LatestServerTimeAt(began_), host_}) + below_[next_];
  store_.Set(PathOf(ticket), data, zookeeper::kAnyVersion,
             scope_.Wrap([this, &ticket, data](const zookeeper::Reply& reply) {
               if (reply.error != Error::kNoNode) return OnWritten(ticket, reply.error);
               store_.Create(PathOf(ticket), data, NodeKind::kPersistent,
                             scope_.Wrap([this, &ticket](const zookeeper::CreateReply& created) {
                               OnWritten(ticket, created.error);
                             }));
             }));
}

void SuccessRecord::OnWritten(const Ticket& ticket, Error error) {
  // Send again after a lost reply. If the znode was created meanwhile, that is a set.
  if (IsLost(error) || error == Error::kNodeExists) {
    under_way_ = false;
    return;
  }
  if (error != Error::kNone) refused_.push_back(ticket.lock.display_path());
  Advance();
}

}  // namespace zklock::lock
