#include "lock/ahead/preemption.h"

#include <functional>
#include <memory>
#include <set>
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

// Nobody should end for a run that then does not begin. Answers arrive in order, and if one is
// lost, so are all later ones.
void Preemption::Begin() {
  const Preempt& preempt = *request_.preempt;
  const bool may_fail = !preempt.intervals.IsEmpty() || request_.reserve;
  if (names_.empty() || !may_fail) return AskNext();
  std::set<std::string> locks(preempt.locks.begin(), preempt.locks.end());
  locks.insert(request_.lock.path);
  for (const std::string& lock : locks) {
    if (!preempt.intervals.IsEmpty()) JudgeLastRuns(lock);
    const bool is_ours = lock == request_.lock.path;
    if (request_.reserve) JudgeConversion(is_ours ? request_.ReservationsPath() : lock);
  }
  store_.Exists(queue_, zookeeper::Watch::kNo, scope_.Wrap([this](const zookeeper::Reply& reply) {
    if (IsLost(reply.error)) return;
    result_.nobody ? AskNobody() : AskNext();
  }));
}

/// Finds out whether --min-interval or --once-per would keep our run from beginning.
void Preemption::JudgeLastRuns(const std::string& lock) {
  const auto replies = std::make_shared<std::vector<GetReply>>();
  const auto get = [&](const std::string& path, std::function<void()> then) {
    store_.Get(path, zookeeper::Watch::kNo,
               scope_.Wrap([replies, then = std::move(then)](const GetReply& reply) {
                 replies->push_back(reply);
                 if (then) then();
               }));
  };
  const std::string last_start = protocol::ChildPath(lock, protocol::kLastStartChild);
  get(lock, {});
  get(protocol::ChildPath(lock, protocol::kLastRunChild), {});
  get(last_start, [this, replies] {
    const RunIntervals& intervals = request_.preempt->intervals;
    const auto can_be_read = [&](std::size_t place) {
      const Error error = (*replies)[place].error;
      return error == Error::kNone || error == Error::kNoNode;
    };
    const bool is_known = (!intervals.since_success || (can_be_read(0) && can_be_read(1))) &&
                          (!intervals.since_start || can_be_read(2));
    const LastRuns last = LastRunsIn(intervals, (*replies)[0], (*replies)[1], (*replies)[2]);
    if (!is_known || last.unknown) {
      result_.nobody = Preempted::Nobody::kRecord;
    } else if (FindTooSoon(intervals, last, now_)) {
      result_.nobody = Preempted::Nobody::kTooSoon;
    }
  });
  if (!request_.preempt->intervals.since_start) return;
  // No znode has this version: nothing is written.
  store_.Set(
      last_start, "", zookeeper::kNoVersion, scope_.Wrap([this](const zookeeper::Reply& reply) {
        const bool may_write = reply.error == Error::kBadVersion || reply.error == Error::kNoNode;
        if (!may_write) result_.nobody = Preempted::Nobody::kRecord;
      }));
}

/// Finds out whether our contender in `parent` may become a reservation, which requires DELETE.
void Preemption::JudgeConversion(const std::string& parent) {
  store_.CheckCreate(protocol::ChildPath(parent, StampName(store_)), request_.data, true,
                     scope_.Wrap([this](const zookeeper::Reply& reply) {
                       if (reply.error != Error::kNoAuth) return;
                       result_.nobody = Preempted::Nobody::kNoDelete;
                     }));
}

void Preemption::AskNobody() {
  for (const std::string& name : names_) result_.left.push_back({name, Why::kNobody});
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
