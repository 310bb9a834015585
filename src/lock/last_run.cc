#include "lock/last_run.h"

#include <utility>

#include "protocol/release_record.h"

namespace zklock::lock {
namespace {

using zookeeper::Error;
using zookeeper::NodeKind;
using zookeeper::Watch;

std::string PathOf(const Ticket& ticket) {
  return ticket.lock.path + "/" + std::string(protocol::kLastRunChild);
}

}  // namespace

LastRun::LastRun(zookeeper::Store& store, std::vector<Ticket> tickets)
    : store_(store), tickets_(std::move(tickets)) {}

EventSource::Interest LastRun::GetInterest() {
  // Whoever waits for a server is woken by it.
  if (IsDone() || under_way_ || !store_.IsConnected()) return {};
  return {.wake = TimePoint{}};
}

void LastRun::OnReady(short /*revents*/) {
  if (IsDone() || under_way_ || !store_.IsConnected()) return;
  under_way_ = true;
  const Ticket& ticket = tickets_[next_];
  recording_ ? Write(ticket) : Ask(ticket);
}

void LastRun::Advance() {
  under_way_ = false;
  ++next_;
}

void LastRun::Ask(const Ticket& ticket) {
  kept_.reset();
  store_.Get(PathOf(ticket), Watch::kNo, scope_.Wrap([this](const zookeeper::GetReply& reply) {
    if (reply.error == Error::kNone) kept_ = protocol::ParseLastSuccess(reply.data);
  }));
  // Replies keep the order: with this one both are known, or both lost.
  store_.Get(
      ticket.lock.path, Watch::kNo,
      scope_.Wrap([this, &ticket](const zookeeper::GetReply& reply) { OnAsked(ticket, reply); }));
}

void LastRun::OnAsked(const Ticket& ticket, const zookeeper::GetReply& lock) {
  if (IsLost(lock.error)) {
    under_way_ = false;
    return;
  }
  std::optional<protocol::ReleaseRecord> record;
  if (lock.error == Error::kNone) {
    if (const auto data = protocol::ParseLockData(lock.data)) record = data->last_release;
  }
  const auto success =
      protocol::NewestSuccess(kept_, record, protocol::ServerTime(lock.stat.modified_ms));
  if (success && (!newest_ || newest_->success.began < success->began)) {
    newest_ = Success{ticket.lock.shown(), *success};
  }
  Advance();
}

void LastRun::Record(TimePoint began, const std::string& host) {
  recording_ = true;
  began_ = began;
  host_ = host;
  next_ = 0;
}

void LastRun::Write(const Ticket& ticket) {
  const std::string data = protocol::FormatLastSuccess({ticket.ServerTimeAt(began_), host_});
  store_.Set(PathOf(ticket), data, zookeeper::kAnyVersion,
             scope_.Wrap([this, &ticket, data](const zookeeper::Reply& reply) {
               if (reply.error != Error::kNoNode) return OnWritten(ticket, reply.error);
               store_.Create(PathOf(ticket), data, NodeKind::kPersistent,
                             scope_.Wrap([this, &ticket](const zookeeper::CreateReply& created) {
                               OnWritten(ticket, created.error);
                             }));
             }));
}

void LastRun::OnWritten(const Ticket& ticket, Error error) {
  // Lost replies are asked for again; a create that was done meanwhile becomes a set.
  if (IsLost(error) || error == Error::kNodeExists) {
    under_way_ = false;
    return;
  }
  if (error != Error::kNone) refused_.push_back(ticket.lock.shown());
  Advance();
}

}  // namespace zklock::lock
