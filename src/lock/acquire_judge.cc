#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lock/acquire.h"
#include "protocol/semaphore.h"

// What a LOCK is used for, by the children it has: whoever would not see ours is refused.

namespace zklock::lock {
namespace {

using protocol::IncompatibleContender;
using zookeeper::Error;
using zookeeper::Watch;

}  // namespace

Acquire::Verdict Acquire::Judge(const protocol::Children& children,
                                const protocol::Contenders& contenders, const Resume& resume) {
  // The list is long, and seldom needed again: copied only then.
  const auto with_list = [&] { return [children, resume] { resume(children); }; };
  std::vector<IncompatibleContender> doubtful =
      request_.below.empty() ? protocol::FindUnnumbered(children, request_.dialect) : above_;
  std::erase_if(doubtful, [this](const IncompatibleContender& incompatible) {
    return std::find(looked_at_.begin(), looked_at_.end(), incompatible.child) != looked_at_.end();
  });
  if (!doubtful.empty()) {
    LookAt(doubtful, with_list());
    return Verdict::kPending;
  }
  if (request_.permits) {  // the turnstile's contenders have been judged
    judged_ = true;
    return Verdict::kFine;
  }
  const auto incompatible =
      protocol::FindIncompatible(contenders, own_name(), request_.mode, request_.dialect);
  if (incompatible && !Tolerate(*incompatible)) return Verdict::kFinished;
  if (request_.below.empty() && !semaphore_judged_ && children.Has(protocol::kLeases)) {
    semaphore_judged_ = true;
    LookForPermits(with_list());
    return Verdict::kPending;
  }
  judged_ = ticket_.has_value();
  return Verdict::kFine;
}

bool Acquire::Tolerate(const IncompatibleContender& incompatible) {
  if (!judged_) {
    Finish(Unusable{.why = Unusable::Why::kIncompatible, .incompatible = incompatible});
    return false;
  }
  // It came later than we did: it cannot be refused any more, only told of.
  if (!std::exchange(incompatible_told_, true))
    observer_.OnIncompatible(request_.lock, incompatible);
  return true;
}

void Acquire::LookAt(const std::vector<IncompatibleContender>& doubtful,
                     const std::function<void()>& resume) {
  for (const IncompatibleContender& incompatible : doubtful) {
    looked_at_.push_back(incompatible.child);
    // Replies keep the order: with the last one all have come.
    const bool is_last = &incompatible == &doubtful.back();
    store_.Get(request_.lock.path + "/" + incompatible.child, Watch::kNo,
               InStep([this, incompatible,
                       then = is_last ? resume : nullptr](const zookeeper::GetReply& reply) {
                 if (IsLost(reply.error)) {
                   looked_at_.clear();
                   return;
                 }
                 if (reply.error != Error::kNone && reply.error != Error::kNoNode) {
                   return OnUnexpected("read a znode in", reply.error, "READ",
                                       request_.lock.path + "/" + incompatible.child);
                 }
                 const bool is_held =
                     reply.error == Error::kNone && reply.stat.ephemeral_owner != 0;
                 if (is_held && !Tolerate(incompatible)) return;
                 if (then) then();
               }));
  }
}

void Acquire::LookForPermits(std::function<void()> resume) {
  store_.List(ChildPath(protocol::kLeases), Watch::kNo,
              InStep([this, resume = std::move(resume)](const zookeeper::ListReply& reply) {
                if (IsLost(reply.error)) {
                  semaphore_judged_ = false;
                  return;
                }
                if (reply.error != Error::kNone && reply.error != Error::kNoNode) {
                  return OnUnexpected("list", reply.error, "READ", ChildPath(protocol::kLeases));
                }
                if (!protocol::Contenders(reply.children).empty()) {
                  return Finish(Unusable{Unusable::Why::kHasPermits});
                }
                resume();
              }));
}

void Acquire::TakeUseOfLock(const protocol::Children& children) {
  above_ = protocol::FindUnnumbered(children, request_.dialect);
  const protocol::Contenders contenders(children);
  const bool in_use =
      std::any_of(contenders.begin(), contenders.end(), [this](const auto& contender) {
        return std::none_of(above_.begin(), above_.end(),
                            [&](const IncompatibleContender& incompatible) {
                              return incompatible.child == contender.full;
                            });
      });
  if (in_use) Finish(Unusable{Unusable::Why::kHasNoPermits});
}

void Acquire::LookBeforeMaking() {
  BeginStep(State::kJoining);
  store_.List(request_.lock.path, Watch::kNo, InStep([this](const zookeeper::ListReply& reply) {
                if (reply.error != Error::kNone && reply.error != Error::kNoNode) {
                  return OnUnexpected("list", reply.error);
                }
                TakeUseOfLock(reply.children);
                if (state_ == State::kDone) return;
                if (above_.empty()) return MakeLock();
                LookAt(above_, [this] { MakeLock(); });
              }));
}

void Acquire::TakePermits(const zookeeper::GetReply& reply) {
  permits_data_.reset();
  if (reply.error == Error::kNone) {
    permits_data_ = {protocol::ParsePermits(reply.data), reply.stat.version};
  } else if (reply.error != Error::kNoNode) {  // of which the list will tell
    OnUnexpected("read", reply.error, "READ", request_.QueuePath());
  }
}

// One zklock at a time is past the turnstile without a permit, and takes none before its number is
// written. Each that comes later reads that number, and finds the leases of those that wrote it.
// Other programs' leases leave the number open: Curator writes it nowhere.
bool Acquire::AgreeOnPermits(const protocol::Contenders& leases) {
  if (!permits_data_) {
    List();
    return false;
  }
  const auto& number = permits_data_->number;
  if (number == request_.permits) return true;
  if (number && leases.size() > 1) {
    Finish(Unusable{.why = Unusable::Why::kOtherPermits, .permits = *number});
    return false;
  }
  const bool is_used_by_zklock = std::any_of(leases.begin(), leases.end(), [&](const auto& lease) {
    return lease.full != own_name() && lease.program() == protocol::Program::kZklock;
  });
  if (is_used_by_zklock) {
    Finish(Unusable{.why = Unusable::Why::kUnknownPermits});
    return false;
  }
  WritePermits();
  return false;
}

void Acquire::WritePermits() {
  BeginStep(State::kDeciding);
  store_.Set(request_.QueuePath(), std::to_string(*request_.permits), permits_data_->version,
             InStep([this](const zookeeper::Reply& reply) {
               // Read again, whether it is ours or what somebody else has written meanwhile.
               permits_data_.reset();
               if (reply.error == Error::kNone || reply.error == Error::kBadVersion) return List();
               if (reply.error == Error::kNoNode) return CheckOwn();
               OnUnexpected("write the number of permits of", reply.error, "WRITE",
                            request_.QueuePath());
             }));
}

}  // namespace zklock::lock
