#include <algorithm>
#include <string>

#include "lock/acquire/acquire.h"
#include "protocol/contender_name.h"

// The way into the queue: create the contender, and find it again if the reply was lost.

namespace zklock::lock {
namespace {

using zookeeper::CreateReply;
using zookeeper::Error;
using zookeeper::GetReply;
using zookeeper::ListReply;
using zookeeper::Reply;
using zookeeper::Watch;

/// The first contender that `request` would have to wait for; empty if the lock is free.
std::string FindBlocker(const AcquireRequest& request, const QueueList& list) {
  if (request.is_simple()) {
    return list.children.Has(protocol::kSimpleName) ? std::string(protocol::kSimpleName) : "";
  }
  if (request.permits && list.contenders.size() < *request.permits) return "";
  const auto* const blocker = protocol::FirstConflict(list.contenders, request.mode);
  return blocker == nullptr ? "" : std::string(blocker->full);
}

bool HasReservation(const protocol::Contenders& contenders) {
  return std::any_of(contenders.begin(), contenders.end(),
                     [](const auto& one) { return one.reserves(); });
}

}  // namespace

void Acquire::Begin() { request_.reserve ? FindReservationOfOurs() : Queue(); }

/// With --reserve: before there is a contender, so that a reservation of ours is found even where
/// no contender can be created any more.
void Acquire::FindReservationOfOurs() {
  Enter<FindingReservation>();
  const std::string path = request_.ReservationsPath();
  // The job that made it may have ended a moment ago: sync first.
  store_.Sync(path, [](const Reply&) {});
  store_.List(path, Watch::kNo, InState([this](const ListReply& reply) {
                if (reply.error == Error::kNoNode) return Queue();
                if (reply.error != Error::kNone) return OnUnexpected("list", reply.error);
                reservations_.Search(reply.children, "",
                                     InState([this](const ReservationSearch::Found& found) {
                                       // Whether it has ended is shown by our contender, once that
                                       // exists.
                                       if (found.reserved && found.reserved->until) return Join();
                                       if (!FinishIfReserved(found)) Queue();
                                     }));
              }));
}

void Acquire::Queue() { request_.try_only ? CheckIfFree() : Join(); }

void Acquire::CheckIfFree() {
  Enter<CheckingFree>();
  // A script that has just released the lock may ask a server that has not heard of it: sync first.
  store_.Sync(request_.QueuePath(), [](const Reply&) {});
  store_.List(request_.QueuePath(), Watch::kNo, InState([this](const ListReply& reply) {
                if (reply.error == Error::kNoNode) return Join();
                if (reply.error != Error::kNone) return OnUnexpected("list", reply.error);
                IfCompatible(reply.children, [this](const QueueList& list) { JoinOrLeave(list); });
              }));
}

void Acquire::JoinOrLeave(const QueueList& list) {
  const std::string blocker = FindBlocker(request_, list);
  if (blocker.empty()) return Join();
  // One of the permits may be a reservation that has ended, which only our contender can show.
  if (request_.permits && HasReservation(list.contenders)) return Join();
  predecessor_ = {.name = blocker, .holds = Holds(list, blocker)};
  JoinIfReservationEnds(list.contenders, blocker);
  if (request_.permits) {
    // We have passed the turnstile, as the holders of these permits have.
    store_.Get(request_.QueuePath(), Watch::kNo,
               InState([this, holders = list.contenders.size()](const GetReply& reply) {
                 const auto other = FindOtherNumber(reply, holders, *request_.permits);
                 if (other) Finish(*other);
               }));
  }
  store_.Get(ChildPath(blocker), Watch::kNo, InState([this](const GetReply& reply) {
               // It was deleted meanwhile: the queue decides.
               reply.error == Error::kNoNode ? Join() : OnPredecessor(reply);
             }));
  SearchHolders(list.children, blocker);
}

void Acquire::Join() {
  Enter<Joining>();
  observer_.OnJoining(request_.lock, request_.QueuePath());
  if (wait_deadline_ == kNever && request_.wait) {
    wait_deadline_ = After(clock_.Now(), *request_.wait);
  }
  compatibility_.Restart();
  permit_number_.Forget();
  contender_.Create(InState([this](const CreateReply& reply) { OnCreated(reply); }));
  // Sent with the create, without waiting for its reply. Replies keep the order: the use of LOCK is
  // known when the list arrives, and our contender is in the list.
  ReadUse();
  ListQueue(Proof::kCommit);
}

void Acquire::OnCreated(const CreateReply& reply) {
  switch (reply.error) {
    case Error::kNone:
      has_queued_ = true;
      return observer_.OnQueued(*contender_.ticket());
    case Error::kNoNode:
      return CreateLock();
    case Error::kNodeExists:
      if (request_.is_simple()) return BeginSimpleWait();
      return OnUnexpected("queue in", reply.error, "CREATE");
    case Error::kNoChildrenForEphemerals:
      return Finish(Unusable{Unusable::Why::kEphemeral});
    case Error::kLocalSession:
      return Finish(Unusable{Unusable::Why::kLocalSessions});
    case Error::kUnimplemented:
      return Finish(Unusable{Unusable::Why::kOldServers});
    case Error::kNoAuth:
    case Error::kAuthFailed:
    case Error::kAuthRequired:
    case Error::kInvalidAcl:
    case Error::kQuotaExceeded:
    case Error::kNotEmpty:
    case Error::kBadVersion:
    case Error::kThrottled:
    case Error::kConnectionLoss:
    case Error::kSessionExpired:
    case Error::kOther:
      OnUnexpected("queue in", reply.error, "CREATE");
  }
}

void Acquire::CreateLock() {
  const auto create = [this] {
    const auto failure = creation_.failure();
    if (!failure) {
      creation_.Send();
      return Join();
    }
    std::holds_alternative<QuotaExceeded>(*failure) ? FinishQuota() : Finish(*failure);
  };
  if (request_.below.empty()) return create();
  // LOCK may be in use without permits. Then our znodes would count as permits in kazoo's
  // Semaphore: check before creating any.
  Enter<Joining>();
  compatibility_.CheckLock(InState([this, create](const Compatibility& found) {
    if (AcceptOrFinish(found)) create();
  }));
}

void Acquire::Rejoin() {
  Enter<Rejoining>();
  if (!contender_.may_exist()) return Begin();
  // The new connection's server may lag behind what we have seen. Only what follows a sync is
  // evidence, and an answered heartbeat if there is a contender to check.
  store_.Sync(request_.QueuePath(), [](const Reply&) {});
  if (!contender_.ticket()) return FindLostCreate();
  contender_.Check(InState([this](const Reply& reply) {
    if (reply.error == Error::kNoNode) return FinishBusy(Busy::Why::kRemoved);
    if (reply.error != Error::kNone) {
      OnUnexpected("check", reply.error, "READ", contender_.ticket()->path);
    }
  }));
  ReadUse();
  ListQueue(Proof::kNone);
}

void Acquire::FindLostCreate() {
  store_.List(request_.QueuePath(), Watch::kNo, InState([this](const ListReply& reply) {
                if (reply.error == Error::kNoNode) return Join();
                if (reply.error != Error::kNone) return OnUnexpected("list", reply.error);
                const std::string name = contender_.FindCreated(reply.children);
                // Not created. It may appear later if this server leads, and has proposed it for
                // the one we left: a leader answers a sync at once. The next create keeps the UUID,
                // so DeleteStrays() finds the first one.
                if (name.empty()) return Join();
                store_.Get(ChildPath(name), Watch::kNo,
                           InState([this, name](const GetReply& got) { AdoptOrJoin(name, got); }));
              }));
}

void Acquire::AdoptOrJoin(const std::string& name, const GetReply& reply) {
  if (reply.error == Error::kNoNode) {
    // A name with our UUID was ours. The one znode may have been anybody's.
    return request_.is_simple() ? Join() : FinishBusy(Busy::Why::kRemoved);
  }
  if (reply.error != Error::kNone) return OnUnexpected("read our own contender in", reply.error);
  if (!contender_.Adopt(name, reply)) return Join();
  has_queued_ = true;
  observer_.OnQueued(*contender_.ticket());
  CheckOwn();  // a read proves nothing: a committed answer does
}

}  // namespace zklock::lock
