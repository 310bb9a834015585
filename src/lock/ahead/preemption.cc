#include "lock/ahead/preemption.h"

#include <memory>
#include <optional>
#include <utility>

#include "lock/data/contender_data.h"
#include "lock/data/reserved.h"
#include "protocol/contender_name.h"
#include "protocol/lock_path.h"
#include "protocol/run_records.h"

namespace zklock::lock {

using zookeeper::Error;
using zookeeper::GetReply;
using Why = Preempted::Why;

void Preemption::Begin() {
  request_.preempt->intervals.IsEmpty() || names_.empty() ? AskNext() : ReadLastRuns();
}

/// Reads what keeps a run from beginning once it has the lock: nobody should end for a run that
/// then does not begin.
void Preemption::ReadLastRuns() {
  const std::string& lock = request_.lock.path;
  struct Replies {
    GetReply lock;
    GetReply last_run;
  };
  const auto replies = std::make_shared<Replies>();
  store_.Get(lock, zookeeper::Watch::kNo,
             scope_.Wrap([replies](const GetReply& reply) { replies->lock = reply; }));
  store_.Get(protocol::ChildPath(lock, protocol::kLastRunChild), zookeeper::Watch::kNo,
             scope_.Wrap([replies](const GetReply& reply) { replies->last_run = reply; }));
  store_.Get(protocol::ChildPath(lock, protocol::kLastStartChild), zookeeper::Watch::kNo,
             scope_.Wrap([this, replies](const GetReply& reply) {
               if (IsLost(reply.error)) return;
               const RunIntervals& intervals = request_.preempt->intervals;
               const auto can_be_read = [](const GetReply& one) {
                 return one.error == Error::kNone || one.error == Error::kNoNode;
               };
               const bool is_known = (!intervals.since_start || can_be_read(reply)) &&
                                     (!intervals.since_success || (can_be_read(replies->lock) &&
                                                                   can_be_read(replies->last_run)));
               if (!is_known) return AskNobody();
               Judge(LastRunsIn(intervals, replies->lock, replies->last_run, reply));
             }));
}

void Preemption::Judge(const LastRuns& last) {
  const RunIntervals& intervals = request_.preempt->intervals;
  if (last.unknown || IsTooSoon(intervals, last, now_)) return AskNobody();
  if (!intervals.since_start) return AskNext();
  // No znode has this version: nothing is written.
  store_.Set(protocol::ChildPath(request_.lock.path, protocol::kLastStartChild), "",
             zookeeper::kNoVersion, scope_.Wrap([this](const zookeeper::Reply& reply) {
               if (IsLost(reply.error)) return;
               const bool is_allowed =
                   reply.error == Error::kBadVersion || reply.error == Error::kNoNode;
               is_allowed ? AskNext() : AskNobody();
             }));
}

void Preemption::AskNobody() {
  for (const std::string& name : names_) result_.left.push_back({name, Why::kInterval});
  done_(result_);
}

void Preemption::AskNext() {
  while (!names_.empty()) {
    const std::string name = std::move(names_.back());
    names_.pop_back();
    // Other programs do not read requests.
    const auto parsed = protocol::ViewContenderName(name);
    if (parsed && parsed->program() != protocol::Program::kZklock) {
      result_.left.push_back({name, Why::kOtherProgram});
      continue;
    }
    return store_.Get(protocol::ChildPath(queue_, name), zookeeper::Watch::kNo,
                      scope_.Wrap([this, name](const GetReply& reply) { OnRead(name, reply); }));
  }
  done_(result_);
}

void Preemption::OnRead(const std::string& name, const GetReply& reply) {
  if (IsLost(reply.error)) return;
  if (reply.error == Error::kNoNode) return AskNext();
  if (reply.error != Error::kNone) return LeaveAlone(name, Why::kNoRight);
  if (FindReservation(name, reply.data, reply.stat)) return LeaveAlone(name, Why::kReservation);
  const auto data = ParseContenderData(reply.data);
  if (!data) return LeaveAlone(name, Why::kOtherProgram);
  const Preempt& preempt = *request_.preempt;
  const bool has_our_id = request_.reserve && data->reserve == request_.reserve->id;
  const bool is_ours =
      preempt.spares && preempt.spares(protocol::ChildPath(queue_, name), reply.data);
  // If two runs preempted each other, both would leave.
  if (data->preempts || has_our_id || is_ours) return AskNext();
  const auto& earlier = data->release_request;
  const bool is_asked =
      earlier && !earlier->forced && (!earlier->only_waiting || preempt.request.only_waiting);
  if (is_asked) return AskNext();
  Ask(name, reply);
}

void Preemption::Ask(const std::string& name, const GetReply& read) {
  store_.Set(protocol::ChildPath(queue_, name),
             AddReleaseRequest(read.data, request_.preempt->request), read.stat.version,
             scope_.Wrap([this, name](const zookeeper::Reply& reply) {
               if (IsLost(reply.error)) return;
               if (reply.error == Error::kNone) ++result_.asked;
               const bool is_settled = reply.error == Error::kNone || reply.error == Error::kNoNode;
               if (is_settled) return AskNext();
               if (reply.error == Error::kQuotaExceeded) return LeaveAlone(name, Why::kQuota);
               if (reply.error != Error::kBadVersion) return LeaveAlone(name, Why::kNoRight);
               names_.push_back(name);  // written in the meantime: read it again
               AskNext();
             }));
}

void Preemption::LeaveAlone(const std::string& name, Why why) {
  result_.left.push_back({name, why});
  AskNext();
}

}  // namespace zklock::lock
