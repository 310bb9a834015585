#include "lock/make_reservations.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lock/reserved.h"
#include "protocol/lock_path.h"

namespace zklock::lock {

using zookeeper::Error;
using zookeeper::GetReply;
using zookeeper::Reply;
using zookeeper::Watch;

MakeReservations::MakeReservations(zookeeper::Store& store, const Clock& clock,
                                   std::vector<Held> held, std::vector<ReservedLock> also,
                                   protocol::ReservationRequest request, Duration connect_timeout)
    : ServerOperation(store, clock, connect_timeout),
      held_(std::move(held)),
      also_(std::move(also)),
      request_(std::move(request)) {
  Start();
}

void MakeReservations::OnExpired() {
  has_expired_ = true;
  ServerOperation::OnExpired();
}

void MakeReservations::Begin() {
  // A transaction whose reply was lost has been done by now, or never will be: the servers take no
  // more requests of the session over the old connection, and none of a session that has expired.
  store().Sync(held_.front().ticket.lock.path, OnReply([](const Reply&) {}));
  Read();
}

/// Reads all contenders: which are converted, and the version of the others. A request to leave
/// that was written to one of them must not be lost with it.
void MakeReservations::Read() {
  read_.assign(held_.size() + also_.size(), {});
  for (std::size_t i = 0; i < read_.size(); ++i) {
    const std::string& path =
        i < held_.size() ? held_[i].ticket.path : also_[i - held_.size()].path;
    store().Get(path, Watch::kNo, OnReply([this, i](const GetReply& reply) { OnRead(i, reply); }));
  }
}

void MakeReservations::OnRead(std::size_t index, const GetReply& reply) {
  read_[index] = reply;
  if (reply.error != Error::kNone && reply.error != Error::kNoNode) {
    const bool is_held = index < held_.size();
    const LockName& lock = is_held ? held_[index].ticket.lock : also_[index - held_.size()].lock;
    const std::string& path = is_held ? held_[index].ticket.path : also_[index - held_.size()].path;
    return FailBecause(reply.error, "read our own contender in", lock.display_path(), "READ",
                       lock.DisplayPath(path));
  }
  // Replies keep the order.
  if (index + 1 == read_.size()) Judge();
}

void MakeReservations::Judge() {
  may_be_made_ = false;
  made_.clear();
  std::size_t gone = 0;
  std::optional<Result> obstacle;
  const Result removed = has_expired_ ? Result::kExpired : Result::kRemoved;
  for (std::size_t i = 0; i < held_.size(); ++i) {
    const Ticket& ticket = held_[i].ticket;
    const GetReply& reply = read_[i];
    const bool is_gone = reply.error == Error::kNoNode;
    if (is_gone) ++gone;
    const auto reserved =
        is_gone ? std::nullopt
                : FindReservation(protocol::BaseOf(ticket.path), reply.data, reply.stat);
    const auto asked = is_gone ? std::nullopt : FindReleaseRequest(reply.data);
    if (reserved) {
      made_.push_back({ticket.lock, ticket.path, *reserved});
    } else if (asked && !obstacle) {
      release_request_ = *asked;
      obstacle = Result::kAskedToLeave;
    } else if (reply.stat.ephemeral_owner != store().session_id() && !obstacle) {
      obstacle = removed;
    }
  }
  if (made_.size() == held_.size()) return End(Result::kMade);
  if (was_sent_ && !made_.empty() && made_.size() + gone == held_.size()) return ReleaseRest();
  if (obstacle) return End(*obstacle);
  if (!made_.empty()) return End(Result::kRemoved);
  for (std::size_t i = held_.size(); i < read_.size(); ++i) {
    if (read_[i].error == Error::kNoNode) return End(Result::kRemoved);
  }
  Convert();
}

/// All of them were made, and one has been released since: all or none.
void MakeReservations::ReleaseRest() {
  may_be_made_ = true;
  for (const ReservedLock& one : made_) {
    const bool is_last = &one == &made_.back();
    store().Delete(one.path, one.reserved.version,
                   OnReply([this, lock = one.lock, is_last](const Reply& reply) {
                     const bool is_done = reply.error == Error::kNone ||
                                          reply.error == Error::kNoNode ||
                                          reply.error == Error::kBadVersion;
                     if (!is_done) {
                       return FailBecause(reply.error, "release", lock.display_path(), "DELETE",
                                          lock.display_path());
                     }
                     if (is_last) Read();  // what is there now?
                   }));
  }
}

void MakeReservations::Convert() {
  std::vector<zookeeper::Conversion> conversions;
  std::vector<std::string> checked;
  for (std::size_t i = 0; i < held_.size(); ++i) {
    const Ticket& ticket = held_[i].ticket;
    conversions.push_back({.path = ticket.path,
                           .version = read_[i].stat.version,
                           .data = FormatReservation(held_[i].data, request_, ticket.token)});
  }
  for (const ReservedLock& one : also_) checked.push_back(one.path);
  may_be_made_ = true;
  was_sent_ = true;
  store().MakePersistent(conversions, checked, OnReply([this](const Reply& reply) {
                           switch (reply.error) {
                             case Error::kNone:
                             case Error::kNoNode:
                             case Error::kBadVersion:
                               return Read();  // what is there now?
                             default: {
                               may_be_made_ = false;
                               const LockName& lock = held_.front().ticket.lock;
                               FailBecause(reply.error, "reserve", lock.display_path(), "DELETE",
                                           lock.display_path());
                             }
                           }
                         }));
}

void MakeReservations::End(Result result) {
  result_ = result;
  Succeed();
}

}  // namespace zklock::lock
