#include "lock/release_reservation.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "protocol/lock_path.h"
#include "protocol/queue.h"
#include "protocol/release_record.h"

namespace zklock::lock {
namespace {

using zookeeper::Error;
using zookeeper::GetReply;
using zookeeper::ListReply;
using zookeeper::Reply;
using zookeeper::SetReply;
using zookeeper::Watch;

// Of what a reservation must not be kept for: writes that lose the connection, or that other
// holders of a busy semaphore precede again and again.
constexpr int kMostLosses = 3;
constexpr int kMostConflicts = 100;

// Of a znode in LOCK that is never seen, for the servers' clock. Who may release has the rights in
// LOCK, rather than those in last-run.
constexpr char kStampName[] = "zklock-clock";

bool MayNotWrite(Error error) {
  return zookeeper::IsRefusal(error) || error == Error::kQuotaExceeded;
}

}  // namespace

ReleaseReservation::ReleaseReservation(zookeeper::Store& store, const Clock& clock, LockName lock,
                                       std::string path, std::string id, Duration connect_timeout)
    : ServerOperation(store, clock, connect_timeout),
      lock_(std::move(lock)),
      path_(std::move(path)),
      id_(std::move(id)) {
  Start();
}

std::string ReleaseReservation::LastRunPath() const {
  return protocol::ChildPath(lock_.path, protocol::kLastRunChild);
}

void ReleaseReservation::Begin() {
  if (std::exchange(is_entering_, false) && ++losses_ >= kMostLosses) {
    DoWithoutHistory(Error::kConnectionLoss);
  }
  store().Get(path_, Watch::kNo, OnReply([this](const GetReply& reply) { OnReservation(reply); }));
}

void ReleaseReservation::OnReservation(const GetReply& reply) {
  if (reply.error != Error::kNone && reply.error != Error::kNoNode) {
    return FailBecause(reply.error, "read a contender in", lock_.display_path(), "READ",
                       lock_.DisplayPath(path_));
  }
  const auto reserved = reply.error == Error::kNone
                            ? FindReservation(protocol::BaseOf(path_), reply.data, reply.stat)
                            : std::nullopt;
  if (!reserved || reserved->reservation.id != id_) {
    has_released_ = may_be_done_;
    return Succeed();
  }
  reserved_ = *reserved;
  record_.reset();
  history_.reset();
  // A semaphore has no record.
  if (protocol::ParentOf(path_) == lock_.path) {
    store().List(lock_.path, Watch::kNo, OnReply([this](const ListReply& list) {
                   const protocol::Contenders contenders(list.children);
                   const auto* const first = contenders.First();
                   was_first_ = first != nullptr && first->full == protocol::BaseOf(path_);
                 }));
    store().Get(lock_.path, Watch::kNo, OnReply([this](const GetReply& lock) { OnLock(lock); }));
  }
  store().Get(LastRunPath(), Watch::kNo,
              OnReply([this](const GetReply& last_run) { OnLastRun(last_run); }));
}

void ReleaseReservation::OnLock(const GetReply& reply) {
  const bool is_ours = reply.error == Error::kNone && protocol::ParseLockData(reply.data);
  if (!keeps_record_ || !is_ours || !LeavesRecord(reserved_, was_first_)) return;
  record_ = {lock_.path, protocol::FormatLockData({RecordOf(protocol::BaseOf(path_), reserved_)}),
             reply.stat.version};
}

void ReleaseReservation::OnLastRun(const GetReply& reply) {
  auto history =
      reply.error == Error::kNone ? RunHistory::Parse(reply.data) : std::optional<RunHistory>();
  const RunRecord* const entry = history ? history->Find(reserved_.reservation.token) : nullptr;
  const bool is_open = entry != nullptr && entry->end == RunRecord::End::kNone &&
                       entry->contender == protocol::BaseOf(path_);
  if (!keeps_history_ || !is_open) return Delete();
  AskForTime(*std::move(history), reply.stat.version);
}

/// How long it was reserved, by the servers' clock.
void ReleaseReservation::AskForTime(RunHistory history, std::int32_t version) {
  is_entering_ = true;
  store().Stamp(protocol::ChildPath(lock_.path, kStampName),
                OnReply([this, history = std::move(history), version](const SetReply& reply) {
                  if (reply.error != Error::kNone) {
                    DoWithoutHistory(reply.error);
                    return Delete();
                  }
                  RunHistory ended = history;
                  const std::chrono::milliseconds now(reply.stat.modified_ms);
                  ended.EnterEnd(reserved_.reservation.token, now - reserved_.since);
                  history_ = {LastRunPath(), ended.Format(kMostRuns), version};
                  Delete();
                }));
}

void ReleaseReservation::DoWithoutHistory(Error why) {
  is_entering_ = false;
  keeps_history_ = false;
  history_.reset();
  unkept_ = why;
}

void ReleaseReservation::Delete() {
  const bool was_sent = std::exchange(may_be_done_, true);
  const auto on_deleted =
      OnReply([this, was_sent](const Reply& reply) { OnDeleted(reply, was_sent); });
  std::vector<zookeeper::DataWrite> writes;
  if (record_) writes.push_back(*record_);
  if (history_) writes.push_back(*history_);
  if (writes.empty()) return store().Delete(path_, reserved_.version, on_deleted);
  store().WriteAndDelete(writes, path_, reserved_.version, on_deleted);
}

void ReleaseReservation::OnDeleted(const Reply& reply, bool may_have_been_done) {
  is_entering_ = false;
  if (reply.error == Error::kNone) {
    has_released_ = true;
    return Succeed();
  }
  may_be_done_ = may_have_been_done;
  if (reply.error == Error::kNoNode || reply.error == Error::kBadVersion) {
    if (history_ && ++conflicts_ >= kMostConflicts) DoWithoutHistory(reply.error);
    return Begin();  // read what is there now
  }
  if (history_) {
    DoWithoutHistory(reply.error);
    return Delete();
  }
  if (record_ && MayNotWrite(reply.error)) {
    keeps_record_ = false;
    record_.reset();
    return Delete();
  }
  FailBecause(reply.error, "delete a contender in", lock_.display_path(), "DELETE",
              lock_.DisplayPath(protocol::ParentOf(path_)));
}

}  // namespace zklock::lock
