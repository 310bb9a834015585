#include "lock/acquire/decision_part.h"

#include <utility>

#include "protocol/contender_name.h"

namespace zklock::lock {
namespace {

using protocol::Children;
using protocol::Contenders;
using zookeeper::Error;
using zookeeper::GetReply;
using zookeeper::ListReply;
using zookeeper::Reply;
using zookeeper::Watch;

constexpr int kMostMissing = 8;

}  // namespace

protocol::Decision MakeDecision(const AcquireRequest& request, const QueueList& list,
                                std::string_view own_name) {
  if (request.is_simple()) {
    if (list.children.Has(own_name)) return protocol::MayHold{};
    return protocol::OwnMissing{};
  }
  return request.permits ? protocol::DecidePermit(list.contenders, own_name, *request.permits)
                         : protocol::Decide(list.contenders, own_name);
}

void DecisionPart::ListAgain() {
  attempt_.Enter(*this);
  DecideByNextList(Proof::kNone);
}

void DecisionPart::CheckOwn() {
  attempt_.Enter(*this);
  attempt_.contender.Check(attempt_.InState([this](const Reply& reply) {
    if (attempt_.ExistsOrFinish(reply)) ListAgain();
  }));
}

/// Reads how LOCK is used, unless that is known. The requests are sent just before the list on
/// which the decision is based, in the same write.
void DecisionPart::ReadUse() {
  const AcquireRequest& request = attempt_.request;
  const bool is_number_known = !request.permits || attempt_.permit_number.is_known();
  if (is_number_known && attempt_.compatibility.has_accepted()) return;
  attempt_.store.Get(request.QueuePath(), Watch::kNo,
                     attempt_.InState([this](const GetReply& reply) {
                       if (attempt_.contender.ticket()) attempt_.TakeLockData(reply);
                     }));
  attempt_.compatibility.ReadLock();
}

void DecisionPart::DecideByNextList(Proof proof) {
  ReadUse();
  const std::string path = attempt_.request.QueuePath();
  attempt_.store.List(path, Watch::kNo, attempt_.InState([this, proof](const ListReply& reply) {
    // The create's reply was lost: OnDisconnected() follows.
    if (!attempt_.contender.ticket()) return;
    // LOCK is gone, so our contender must be too: the heartbeat will show that.
    if (reply.error == Error::kNoNode && ++missing_ <= kMostMissing) return CheckOwn();
    if (reply.error != Error::kNone) return attempt_.OnUnexpected("list", reply.error);
    DecideIfCompatible(reply.children, proof);
  }));
}

void DecisionPart::DecideIfCompatible(const Children& children, Proof proof) {
  attempt_.unserved_since.reset();
  attempt_.IfCompatible(children, [this, proof](const QueueList& list) { FindRival(list, proof); });
}

/// With --reserve: the lock may have been reserved for our ID, or another contender with our ID may
/// be about to reserve it. We wait for that contender even if both only read.
void DecisionPart::FindRival(const QueueList& list, Proof proof) {
  const AcquireRequest& request = attempt_.request;
  if (!request.reserve || request.is_for_turnstile()) return DecideBy(list, proof, "");
  // The list may be long: copy it only for the few runs that reserve.
  attempt_.reservations.Search(list.contenders, attempt_.contender.name(),
                               attempt_.InState([this, proof, children = list.children](
                                                    const ReservationSearch::Found& found) {
                                 if (attempt_.FinishIfReserved(found)) return;
                                 DecideBy({children, Contenders(children)}, proof, found.name);
                               }));
}

/// `rival`: the contender that FindRival() has found, or a reservation for our ID that may have
/// ended.
void DecisionPart::DecideBy(const QueueList& list, Proof proof, const std::string& rival) {
  proof_.Schedule();
  OwnContender& contender = attempt_.contender;
  const bool had_strays = contender.DeleteStrays(list.children);
  // Strays must not count as contenders ahead of us. They remain if we lack permission to delete
  // them.
  if (had_strays && attempt_.request.max_queue && !std::exchange(listed_for_strays_, true)) {
    return attempt_.next.ListAgain();
  }
  if (attempt_.FinishIfSuperseded(list.contenders)) return;
  if (attempt_.request.permits && !AgreeOnPermits(list.contenders)) return;
  attempt_.has_decided = true;
  const protocol::Decision decision = MakeDecision(attempt_.request, list, contender.name());
  attempt_.may_hold = std::holds_alternative<protocol::MayHold>(decision);
  if (attempt_.may_hold && !rival.empty()) {
    attempt_.next.WaitFor(rival, list, true);
  } else if (attempt_.may_hold) {
    // The create proves the session, but not that other LOCKs are still held.
    const bool is_proven = proof == Proof::kCommit && attempt_.request.held.empty();
    if (is_proven) return attempt_.next.TakeTurn();
    if (proof_.HasLeaseInHand()) {
      // As far as we know, LOCK's data has not been written since we read it.
      contender.GuessLockVersion(0);
      return attempt_.next.TakeTurn();
    }
    attempt_.next.Confirm("");
  } else if (const auto* wait = std::get_if<protocol::WaitFor>(&decision)) {
    attempt_.next.WaitFor(wait->predecessor, list, false);
  } else if (std::holds_alternative<protocol::OwnMissing>(decision)) {
    if (++missing_ <= kMostMissing) return CheckOwn();
    attempt_.Finish(Defect{Defect::What::kNotListed, attempt_.request.lock.display_path()});
  } else {
    attempt_.Finish(Unusable{Unusable::Why::kNumbersUsedUp});
  }
}

/// Returns false if the acquisition is over, or if the number has to be read or written first,
/// after which the permits are listed again.
bool DecisionPart::AgreeOnPermits(const Contenders& permits) {
  using Agreement = PermitNumber::Agreement;
  PermitNumber& number = attempt_.permit_number;
  switch (number.Compare(permits, attempt_.contender.name())) {
    case Agreement::kAgreed:
      return true;
    case Agreement::kUnread:
      ListAgain();
      break;
    case Agreement::kOtherNumber:
      attempt_.Finish(Unusable{.why = Unusable::Why::kOtherPermits, .permits = *number.written()});
      break;
    case Agreement::kUnknownNumber:
      attempt_.Finish(Unusable{.why = Unusable::Why::kUnknownPermits});
      break;
    case Agreement::kOpen:
      attempt_.Enter(*this);
      number.Write(attempt_.InState([this](const Reply& reply) {
        // Our number or another one has been written: read it again.
        if (reply.error == Error::kNone || reply.error == Error::kBadVersion) return ListAgain();
        if (reply.error == Error::kNoNode) return CheckOwn();
        attempt_.OnUnexpected("write the number of permits of", reply.error, "WRITE",
                              attempt_.request.QueuePath());
      }));
      break;
  }
  return false;
}

}  // namespace zklock::lock
