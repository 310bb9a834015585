#include "lock/acquire/join_part.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "protocol/contender_name.h"

namespace zklock::lock {

using zookeeper::CreateReply;
using zookeeper::Error;
using zookeeper::GetReply;
using zookeeper::ListReply;
using zookeeper::Reply;
using zookeeper::Watch;

void JoinPart::Begin() {
  if (attempt_.request.given) return TakeGiven();
  attempt_.request.reserve ? FindOwnReservation() : LookOrJoin();
}

/// Takes the contender that the caller has created. The create proves the session, unless the
/// contender was known before (GivenContender::known).
void JoinPart::TakeGiven() {
  if (attempt_.contender.ticket()) EnterQueue();
  if (!attempt_.has_queued || attempt_.request.given->known) return Rejoin();
  attempt_.Enter(*this);
  attempt_.publish(QueuedEvent{*attempt_.contender.ticket()});
  attempt_.next.DecideByNextList(Proof::kCommit);
}

/// With --reserve: looks for our reservation before creating a contender, so that it is found even
/// if a contender can no longer be created.
void JoinPart::FindOwnReservation() {
  attempt_.Enter(*this);
  const std::string path = attempt_.request.ReservationsPath();
  // The job that made the reservation may have only just ended: sync first.
  attempt_.store.Sync(path, [](const Reply&) {});
  attempt_.store.List(path, Watch::kNo, attempt_.InState([this](const ListReply& reply) {
    if (reply.error == Error::kNoNode) return LookOrJoin();
    if (reply.error != Error::kNone) {
      return attempt_.OnUnexpected("list", reply.error, "READ",
                                   attempt_.request.ReservationsPath());
    }
    attempt_.reservations.Search(reply.children, "",
                                 attempt_.InState([this](const ReservationSearch::Found& found) {
                                   // Once our contender exists, it shows whether the reservation
                                   // has ended.
                                   if (found.reserved && found.reserved->end()) return Join();
                                   if (!attempt_.FinishIfReserved(found)) LookOrJoin();
                                 }));
  }));
}

void JoinPart::LookOrJoin() {
  const AcquireRequest& request = attempt_.request;
  // Older contenders leave as soon as ours exists. If ours then left too, none would be served.
  const bool looks = request.try_only || (request.supersedes() && request.max_queue);
  looks ? attempt_.next.LookIfFree() : Join();
}

/// Begins the wait for other contenders: our create has reached the servers.
void JoinPart::EnterQueue() {
  attempt_.has_queued = true;
  if (attempt_.wait_deadline != kNever || !attempt_.request.wait) return;
  attempt_.wait_deadline =
      std::min(attempt_.request.wait_end, After(attempt_.clock.Now(), *attempt_.request.wait));
}

void JoinPart::Join() {
  // Someone has deleted our contender, or it was never created.
  if (attempt_.request.given) return attempt_.FinishBusy(Busy::Why::kRemoved);
  attempt_.Enter(*this);
  is_creating_ = true;
  attempt_.publish(JoiningEvent{attempt_.request.lock, attempt_.request.QueuePath()});
  attempt_.compatibility.Restart();
  attempt_.permit_number.Forget();
  attempt_.contender.Create(
      attempt_.InState([this](const CreateReply& reply) { OnCreated(reply); }));
  // Sent with the create, without waiting for its reply. Replies arrive in order: when the list
  // arrives, the use of LOCK is known, and our contender is in the list.
  attempt_.next.DecideByNextList(Proof::kCommit);
}

void JoinPart::OnCreated(const CreateReply& reply) {
  switch (reply.error) {
    case Error::kNone:
      creation_.OnUsed();
      if (!attempt_.contender.ticket()) return ReadCreated(attempt_.contender.created());
      EnterQueue();
      return attempt_.publish(QueuedEvent{*attempt_.contender.ticket()});
    case Error::kNoNode:
      return CreateLock();
    case Error::kNodeExists:
      if (attempt_.request.is_simple()) return OnOtherZnode();
      return attempt_.OnUnexpected("queue in", reply.error, "CREATE");
    default:
      if (const auto why = CannotOwnContenders(reply.error)) return attempt_.Finish(Unusable{*why});
      attempt_.OnUnexpected("queue in", reply.error, attempt_.contender.missing_right(),
                            attempt_.request.QueuePath());
  }
}

/// Waits for the contender that has created the znode before us (Dialect::kSimple).
void JoinPart::OnOtherZnode() {
  creation_.OnUsed();
  EnterQueue();
  const protocol::Children only{protocol::kSimpleName};
  attempt_.next.WaitFor(std::string(protocol::kSimpleName), {only, {}}, false);
}

void JoinPart::CreateLock() {
  const auto create = [this] {
    const auto failure = creation_.failure();
    if (!failure) {
      creation_.Send();
      return Join();
    }
    std::holds_alternative<QuotaExceeded>(*failure) ? attempt_.FinishQuota()
                                                    : attempt_.Finish(*failure);
  };
  if (attempt_.request.below.empty()) return create();
  // If LOCK is in use without permits, kazoo's Semaphore would count our znodes as permits: check
  // before creating any.
  attempt_.Enter(*this);
  attempt_.compatibility.CheckLock(attempt_.InState([this, create](const Compatibility& found) {
    if (attempt_.AcceptOrFinish(found)) create();
  }));
}

void JoinPart::Rejoin() {
  attempt_.Enter(*this);
  if (!attempt_.contender.may_exist()) return attempt_.request.given ? Join() : Begin();
  // The new connection's server may lag behind what we have seen. Only an answer after a sync
  // counts as evidence, or an answered heartbeat if there is a contender to check.
  attempt_.store.Sync(attempt_.request.QueuePath(), [](const Reply&) {});
  if (!attempt_.contender.ticket()) return FindLostCreate();
  attempt_.contender.Check(
      attempt_.InState([this](const Reply& reply) { attempt_.ExistsOrFinish(reply); }));
  attempt_.next.DecideByNextList(Proof::kNone);
}

void JoinPart::FindLostCreate() {
  const std::string path = attempt_.request.QueuePath();
  attempt_.store.List(path, Watch::kNo, attempt_.InState([this](const ListReply& reply) {
    if (reply.error == Error::kNoNode) return Join();
    if (reply.error != Error::kNone) return attempt_.OnUnexpected("list", reply.error);
    const std::vector<std::string> names = attempt_.contender.FindCreated(reply.children);
    // A contender that does not exist yet may still appear: if this server is the leader, it
    // answers a sync at once, even while a create that it proposed for the server that we left is
    // not yet committed. The next create keeps the UUID, so DeleteStrays() finds the first one.
    names.empty() ? Join() : ReadCandidates(names);
  }));
}

/// Reads the children with our UUID. Anyone can create such children: only those that our session
/// owns are ours.
void JoinPart::ReadCandidates(const std::vector<std::string>& names) {
  struct Created {
    std::vector<std::string> names;
    GetReply first;  // of `names`
  };
  struct Candidates {
    std::map<std::int64_t, Created> own;  // by the transaction that created them
    /// kNone: the znodes belong to other sessions, and may be unreadable. kNoNode: one is gone.
    GetReply other;
  };
  const auto found = std::make_shared<Candidates>();
  for (const std::string& name : names) {
    const bool is_last = &name == &names.back();
    const auto take = [this, found, name, is_last](const GetReply& reply) {
      if (IsLost(reply.error)) return;
      const bool is_own =
          reply.error == Error::kNone && reply.stat.ephemeral_owner == attempt_.store.session_id();
      if (is_own) {
        Created& created = found->own[reply.stat.created_zxid];
        if (created.names.empty()) created.first = reply;
        created.names.push_back(name);
      }
      if (reply.error == Error::kNoNode) found->other = reply;
      if (!is_last) return;
      if (found->own.empty()) return AdoptOrJoin({}, found->other);
      // A create makes all of them or none: a missing znode has been deleted since. The znodes of a
      // second create are strays.
      for (const auto& [zxid, created] : found->own) {
        if (created.names.size() < attempt_.request.znodes()) continue;
        return AdoptOrJoin(created.names, created.first);
      }
      attempt_.FinishBusy(Busy::Why::kRemoved);
    };
    attempt_.store.Get(attempt_.ChildPath(name), Watch::kNo, attempt_.InState(take));
  }
}

void JoinPart::ReadCreated(const std::vector<std::string>& names) {
  attempt_.store.Get(
      attempt_.ChildPath(names.front()), Watch::kNo,
      attempt_.InState([this, names](const GetReply& reply) { AdoptOrJoin(names, reply); }));
}

void JoinPart::AdoptOrJoin(const std::vector<std::string>& names, const GetReply& reply) {
  if (reply.error == Error::kNoNode) {
    // A znode with our UUID in its name was ours. The single znode of Dialect::kSimple may have
    // been created by anyone.
    return attempt_.request.is_simple() ? Join() : attempt_.FinishBusy(Busy::Why::kRemoved);
  }
  if (reply.error != Error::kNone) {
    return attempt_.OnUnexpected("read our own contender in", reply.error);
  }
  if (!attempt_.contender.Adopt(names, reply)) return Join();
  EnterQueue();
  attempt_.publish(QueuedEvent{*attempt_.contender.ticket()});
  // Several permits are counted first, and proven by a heartbeat before they are held.
  if (names.size() > 1) return attempt_.next.ListAgain();
  attempt_.next.CheckOwn();  // a read is no proof; a committed answer is
}

}  // namespace zklock::lock
