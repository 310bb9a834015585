#include <string>

#include "lock/acquire.h"
#include "lock/contender_check.h"
#include "protocol/contender_name.h"
#include "protocol/release_record.h"

// The turn: the predecessor has gone, and the lock is ours once that and the session are proven.

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using zookeeper::Error;
using zookeeper::Watch;

}  // namespace

void Acquire::OnPredecessorEvent() {
  if (IsSimple()) return Join();  // who is first to create it has it
  // Our possible predecessors were all in our first list, and only go. If this one let go while it
  // held, and excluded others, those before it had gone, and between it and us there are none but,
  // for a reader, readers. Readers let go beside others; where LOCK is not zklock's nobody leaves a
  // record.
  const auto predecessor = protocol::ParseContenderName(predecessor_);
  const bool excludes = predecessor && !predecessor->reads();
  if (excludes && ticket_->lock_version) return Confirm(Turn::kByRecord);
  List();
}

std::optional<protocol::ReleaseRecord> Acquire::TakeLockData(const zookeeper::GetReply& reply) {
  std::optional<protocol::LockData> data;
  if (reply.error == Error::kNone) data = protocol::ParseLockData(reply.data);
  if (request_.permits) TakePermits(reply);
  ticket_->lock_version.reset();
  if (!data) return std::nullopt;
  ticket_->lock_version = reply.stat.version;
  return data->last_release;
}

void Acquire::Confirm(Turn turn) {
  BeginStep(State::kConfirming);
  heartbeat_answered_ = false;
  CheckContenders(store_, AllOurs(), InStep([this](const zookeeper::Reply& reply) {
                    if (reply.error == Error::kNoNode)
                      return Finish(Busy{Busy::Why::kRemoved, "", ""});
                    if (reply.error != Error::kNone) {
                      return OnUnexpected("check our own contender in", reply.error, "READ",
                                          ticket_->path);
                    }
                    heartbeat_answered_ = true;
                  }));
  // In the same write, and answered after it: not from a past that the heartbeat has not seen.
  store_.Get(request_.QueuePath(), Watch::kNo,
             InStep([this, turn](const zookeeper::GetReply& reply) { OnConfirmed(turn, reply); }));
}

void Acquire::OnConfirmed(Turn turn, const zookeeper::GetReply& lock) {
  // An answer to the heartbeat that was lost is told of by the store.
  if (!heartbeat_answered_ || IsLost(lock.error)) return;
  const auto record = TakeLockData(lock);
  if (state_ == State::kDone) return;  // may not be read
  const bool settled = turn == Turn::kOurs || (record && record->contender == predecessor_);
  // Read behind the proof of our place in the turnstile: whoever comes after us finds our number.
  const bool agrees =
      !request_.permits || (permits_data_ && permits_data_->number == request_.permits);
  if (!settled || !agrees) return List();
  if (request_.supersede) return LookForNewer();
  TakeTurn();
}

void Acquire::LookForNewer() {
  // Whoever joined before this list is newer than a command that has not begun.
  store_.List(request_.QueuePath(), Watch::kNo, InStep([this](const zookeeper::ListReply& reply) {
                if (reply.error == Error::kNoNode) return CheckOwn();
                if (reply.error != Error::kNone) return OnUnexpected("list", reply.error);
                if (!LeaveIfSuperseded(reply.children)) TakeTurn();
              }));
}

void Acquire::TakeTurn() {
  const TimePoint now = clock_.Now();
  const Duration timeout = store_.lease().timeout();
  const auto lease_end = store_.lease().End();
  if (lease_end && *lease_end - now > timeout / 3) return Finish(Acquired{*ticket_});
  // Alive, but not proven for long enough to start anything (this process was stopped, say): an
  // answered read, a ping of leader and follower later than that, and once more.
  BeginStep(State::kConfirming);
  answer_deadline_ = kNever;
  ReadOwn();
  confirm_again_ = now + timeout / 4 + 1ms;
}

}  // namespace zklock::lock
