#include "lock/ahead/preemption.h"

#include <optional>
#include <utility>

#include "lock/data/contender_data.h"
#include "lock/data/reserved.h"
#include "protocol/contender_name.h"
#include "protocol/lock_path.h"

namespace zklock::lock {

using zookeeper::Error;
using zookeeper::GetReply;
using Why = Preempted::Why;

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
