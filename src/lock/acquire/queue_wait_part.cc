#include "lock/acquire/queue_wait_part.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lock/acquire/decision_part.h"
#include "protocol/contender_name.h"
#include "protocol/lock_path.h"
#include "protocol/semaphore.h"

namespace zklock::lock {
namespace {

using protocol::Contenders;
using protocol::RunsOf;
using zookeeper::Change;
using zookeeper::Error;
using zookeeper::GetReply;
using zookeeper::ListReply;
using zookeeper::Reply;
using zookeeper::Watch;

constexpr Duration kLongestLookAgain = std::chrono::milliseconds(100);

/// Returns the first contender that `request` would have to wait for; empty if the lock is free.
std::string FindBlocker(const AcquireRequest& request, const QueueList& list) {
  if (request.permits && list.contenders.size() + request.take <= *request.permits) return "";
  const auto* const blocker = protocol::FirstConflict(list.contenders, request.mode);
  return blocker == nullptr ? "" : std::string(blocker->full);
}

/// Returns the other queues of a contender that waits for any of several LOCKs, according to its
/// data. Anyone may have written the data.
std::vector<std::string> OtherQueues(const std::string& data, const AcquireRequest& request) {
  const auto parsed = ParseContenderData(data);
  std::vector<std::string> others = parsed ? parsed->any : std::vector<std::string>();
  std::erase_if(others, [&](const std::string& path) {
    return path == request.QueuePath() ||
           !std::holds_alternative<std::string>(protocol::CheckAbsolutePath(path));
  });
  return others;
}

bool HasReservation(const Contenders& contenders) {
  return std::any_of(contenders.begin(), contenders.end(),
                     [](const auto& one) { return one.reserves(); });
}

/// Returns how many contenders wait ahead of us.
std::size_t CountWaiting(const AcquireRequest& request, bool supersedes,
                         const protocol::Rank& rank) {
  if (request.permits) return 0;                      // only our contender is past the turnstile
  if (request.is_for_turnstile()) return rank.ahead;  // all of them wait
  // The contenders that our contender supersedes will leave: do not count them.
  return supersedes ? rank.waiting - rank.superseding : rank.waiting;
}

}  // namespace

QueueWaitPart::QueueWaitPart(Attempt& attempt, SessionProof& proof)
    : attempt_(attempt), proof_(proof), lookahead_(attempt, [this] {
        if (LeavesAtOnce()) LeaveAfterLookahead();
      }) {}

void QueueWaitPart::Enter(State state, const std::string& predecessor) {
  attempt_.Enter(*this);
  state_ = state;
  const AcquireRequest& request = attempt_.request;
  const bool waits = state == State::kWaiting;
  lookahead_.Begin(waits ? Lookahead::For::kWait : Lookahead::For::kDecision, predecessor,
                   !waits || request.try_only || OnlyPasses());
}

void QueueWaitPart::Leave() {
  state_ = State::kNotAtWork;
  permits_are_taken_ = false;
  look_again_at_ = kNever;
  looks_elsewhere_ = false;
  lookahead_.End();
}

void QueueWaitPart::OnDisconnected() {
  preemption_.reset();
  lookahead_.OnDisconnected();
}

void QueueWaitPart::OnPlaceLost() {
  ranked_ = preempted_ = watches_permits_ = false;
  lookahead_.OnPlaceLost();
}

// ---- looking before joining ------------------------------------------------------------------

void QueueWaitPart::LookIfFree() {
  Enter(State::kLooking, "");
  attempt_.LookAtQueue([this](const QueueList& list) { JoinOrLeave(list); });
}

void QueueWaitPart::JoinOrLeave(const QueueList& list) {
  const AcquireRequest& request = attempt_.request;
  const std::string blocker = FindBlocker(request, list);
  if (blocker.empty()) return attempt_.next.Join();
  // One of the contenders may be a reservation that has ended; only the creation of our contender
  // can show that.
  const bool may_have_ended = HasReservation(list.contenders);
  if (!request.try_only) {
    const std::size_t waiting = CountWaiting(request, true, protocol::RankOf(list.contenders, ""));
    const bool is_full = waiting >= *request.max_queue && !may_have_ended;
    return is_full ? LeaveFull(list) : attempt_.next.Join();
  }
  if (request.permits && may_have_ended) return attempt_.next.Join();
  predecessor_ = {
      .name = blocker, .holds = Holds(list, blocker), .is_only = list.contenders.size() == 1};
  lookahead_.Begin(Lookahead::For::kDecision, blocker, true);
  lookahead_.JoinIfReservationEnds(list.contenders, blocker);
  if (request.permits) {
    // We have passed the turnstile, so the holders of all these permits have left it.
    attempt_.store.Get(
        request.QueuePath(), Watch::kNo,
        attempt_.InState([this, holders = RunsOf(list.contenders).size()](const GetReply& reply) {
          const auto other = FindOtherNumber(reply, holders, *attempt_.request.permits);
          if (other) attempt_.Finish(*other);
        }));
  }
  attempt_.store.Get(attempt_.ChildPath(blocker), Watch::kNo,
                     attempt_.InState([this](const GetReply& reply) {
                       // It has just been deleted: join; the queue then shows whose turn it is.
                       reply.error == Error::kNoNode ? attempt_.next.Join() : OnPredecessor(reply);
                     }));
  lookahead_.SearchHolders(list.children, blocker);
}

// ---- the wait --------------------------------------------------------------------------------

/// Returns whether `list` shows that `contender`, which is in our way, holds the lock; if it does
/// not, nothing is known.
bool QueueWaitPart::Holds(const QueueList& list, std::string_view contender) const {
  if (attempt_.request.permits) return true;
  const protocol::ContenderNameView* const first = list.contenders.First();
  return !attempt_.request.is_for_turnstile() && first != nullptr && first->full == contender;
}

void QueueWaitPart::WaitFor(const std::string& predecessor, const QueueList& list, bool is_rival) {
  const AcquireRequest& request = attempt_.request;
  const std::string_view own_name = attempt_.contender.name();
  const protocol::Rank rank =
      protocol::RankOf(request.permits ? RunsOf(list.contenders) : list.contenders, own_name);
  const bool supersedes = protocol::ViewContenderName(own_name)->supersedes();
  const std::size_t waiting = CountWaiting(request, supersedes, rank);
  // Older contenders have left for one that supersedes them: it stays.
  const bool is_full =
      !ranked_ && !supersedes && request.max_queue && waiting >= *request.max_queue;
  if (is_full && !request.is_for_turnstile()) return LeaveFull(list);
  ranked_ = !is_full;
  attempt_.is_first = false;
  attempt_.publish(WaitingEvent{request.lock.display_path(), predecessor, {rank.ahead, waiting}});
  WatchPredecessor(predecessor);
  predecessor_.is_rival = is_rival;
  predecessor_.is_only = rank.ahead == 1;
  predecessor_.holds = Holds(list, predecessor);
  if (!is_full) BeginPreemption(list);
  if (request.is_for_turnstile()) {
    lookahead_.CountZklocksBefore(list.contenders);
    OnlyPasses() ? CountPermits(rank.ahead) : ListPermits();
  } else {
    lookahead_.FindReserving(list.contenders, predecessor_.readable);
  }
  lookahead_.SearchHolders(list.children, predecessor_.readable ? predecessor : "");
  if (request.permits || request.try_only) return;
  predecessor_.ahead = protocol::QueueAhead(list.contenders, own_name, predecessor);
  const bool is_in_hand = attempt_.store.lease().IsInHand(attempt_.clock.Now());
  if (predecessor_.ahead.IsNextInLine() && !is_in_hand) proof_.Prove();
}

/// Asks once for each place in the queue: contenders that join later are not ahead of us.
void QueueWaitPart::BeginPreemption(const QueueList& list) {
  const AcquireRequest& request = attempt_.request;
  if (!request.preempt || preempted_ || preemption_) return;
  const protocol::ContenderNameView* const own = list.contenders.Find(attempt_.contender.name());
  const auto holding = protocol::HoldersIn(list.children);
  const Contenders runs = RunsOf(list.contenders);
  const auto holds = [&](const protocol::ContenderNameView& one) {
    // In a turnstile, no contender is a holder; among the permits, all others are.
    if (request.is_for_turnstile()) return false;
    return request.permits || std::any_of(holding.begin(), holding.end(), [&](const auto& holder) {
             return holder.full == one.full;
           });
  };
  std::vector<protocol::ContenderNameView> before;
  for (const protocol::ContenderNameView& one : runs) {
    const bool is_before = request.permits ? one.full != own->full : protocol::IsBefore(one, *own);
    // A reader does not wait for other readers.
    if (request.mode == protocol::Mode::kRead && one.reads()) continue;
    if (is_before && (request.preempt->holders || !holds(one))) before.push_back(one);
  }
  std::sort(before.begin(), before.end(), protocol::IsBefore);
  std::vector<std::string> names;
  names.reserve(before.size());
  for (const protocol::ContenderNameView& one : before) names.emplace_back(one.full);
  preemption_ = std::make_unique<Preemption>(
      attempt_.store, request, request.QueuePath(), std::move(names),
      attempt_.contender.ticket()->EarliestServerTimeAt(attempt_.clock.Now()),
      [this](const Preempted& result) {
        preempted_ = true;
        attempt_.publish(PreemptedEvent{attempt_.request.lock.display_path(), result});
      });
  preemption_->Begin();
}

void QueueWaitPart::WatchPredecessor(const std::string& name) {
  Enter(State::kWaiting, name);
  if (name != predecessor_.name) predecessor_ = {.name = name};
  if (!proof_.HasBegunToWatch() && !attempt_.request.try_only) proof_.WatchOwn();
  predecessor_.readable ? ReadPredecessor() : WatchChildren();
}

void QueueWaitPart::ReadPredecessor() {
  const AcquireRequest& request = attempt_.request;
  const bool leaves_at_once = request.try_only && !request.looks_again;
  attempt_.ExpectAnswer();
  ++attempt_.unanswered;
  // Exists() would leave a watch on a znode that is gone; Get() does not.
  attempt_.store.Get(attempt_.ChildPath(predecessor_.name),
                     leaves_at_once ? Watch::kNo : Watch::kYes,
                     attempt_.InState([this](const GetReply& reply) {
                       --attempt_.unanswered;
                       OnPredecessor(reply);
                     }));
}

void QueueWaitPart::OnPredecessor(const GetReply& reply) {
  std::optional<Reserved> reserved;
  switch (reply.error) {
    case Error::kNone:
      if (reply.stat.ephemeral_owner == 0) {
        reserved = FindReservation(predecessor_.name, reply.data, reply.stat);
        if (!reserved) {
          // A new contender may still get a lower number: only our own contender shows whether this
          // znode is in the way. A permit counts whatever its number.
          const bool is_in_the_way = attempt_.contender.ticket() || attempt_.request.permits;
          if (!is_in_the_way) return attempt_.next.Join();
          return attempt_.Finish(Unusable{Unusable::Why::kNobodysContender, predecessor_.name});
        }
        predecessor_.reserved = reserved;
        if (!TakeReservation(*reserved)) return;
      }
      // It is a stray from our own repeated create: waiting for it would never end.
      if (reply.stat.ephemeral_owner == attempt_.store.session_id() &&
          attempt_.contender.may_have_strays()) {
        return attempt_.OnUnexpected("queue in", Error::kNoAuth, "DELETE",
                                     attempt_.request.QueuePath());
      }
      // Anyone may have written a megabyte there.
      predecessor_.data = reply.data.substr(0, kMostContenderData);
      break;
    case Error::kNoNode:
      return OnPredecessorGone();
    case Error::kNoAuth:
      predecessor_.readable = false;
      break;
    default:
      return attempt_.OnUnexpected("read a contender of", reply.error);
  }
  const AcquireRequest& request = attempt_.request;
  lookahead_.TakePredecessor(reply, reserved);
  if (request.try_only) return LeaveAfterLookahead();
  attempt_.OnAnswer();
  const bool reserves = request.reserve && !request.is_for_turnstile();
  if (!predecessor_.readable || request.supersede || request.permits || reserves) WatchChildren();
}

/// Handles a reservation in the way. Returns false if it has begun a step other than waiting.
bool QueueWaitPart::TakeReservation(const Reserved& reserved) {
  const AcquireRequest& request = attempt_.request;
  if (!attempt_.contender.ticket()) {
    // A `try` learns the servers' time only by creating a contender.
    if (reserved.MayEnd()) attempt_.next.Join();
    return !reserved.MayEnd();
  }
  const bool is_our_id = request.reserve && !request.is_for_turnstile() &&
                         request.reserve->id == reserved.reservation.id;
  if (!is_our_id || attempt_.HasEnded(reserved)) return true;
  if (std::exchange(listed_for_, reserved.created_zxid) == reserved.created_zxid) return true;
  attempt_.next.ListAgain();
  return false;
}

/// Watches the list to notice what a watch on the predecessor does not show: the deletion of a
/// predecessor that we lack permission to read, a newer contender that supersedes ours, the release
/// of any permit, and a reservation that another contender makes for our ID.
void QueueWaitPart::WatchChildren() {
  const std::string path = attempt_.request.QueuePath();
  attempt_.ExpectAnswer();
  ++attempt_.unanswered;
  attempt_.store.List(path, Watch::kYes, attempt_.InState([this](const ListReply& reply) {
    --attempt_.unanswered;
    if (reply.error == Error::kNoNode) return attempt_.next.CheckOwn();
    if (reply.error != Error::kNone) return attempt_.OnUnexpected("list", reply.error);
    attempt_.OnAnswer();
    const Contenders contenders(reply.children);
    if (attempt_.FinishIfSuperseded(contenders)) return;
    const auto decision =
        MakeDecision(attempt_.request, {reply.children, contenders}, attempt_.contender.name());
    const bool is_unchanged = predecessor_.is_rival ||
                              decision == protocol::Decision(protocol::WaitFor{predecessor_.name});
    if (!is_unchanged) return attempt_.next.Decide(reply.children);
    if (attempt_.request.permits) lookahead_.RecountPermits(contenders);
    if (attempt_.request.reserve) FindReservationIn(contenders);
  }));
}

/// Handles the deletion of the predecessor. Uses the least evidence needed to show that it is our
/// turn: none, if the predecessor is known to have been the first contender; the record in LOCK's
/// data, if it may have been; otherwise another list.
void QueueWaitPart::OnPredecessorGone() {
  const AcquireRequest& request = attempt_.request;
  if (request.reserve) return attempt_.next.ListAgain();  // to find a reservation for our ID
  const bool in_hand = proof_.HasLeaseInHand();
  if (request.supersede && in_hand) return attempt_.next.ListAgain();  // for a newer contender
  OwnContender& contender = attempt_.contender;
  if (predecessor_.ahead.IsSettledByDeletion()) {
    if (!in_hand) return attempt_.next.Confirm("");
    contender.GuessLockVersion(1);  // it held the lock, and left its record
    return attempt_.next.TakeTurn();
  }
  // All contenders that can be ahead of us were in our first list, and since then they can only
  // have left. If the predecessor held the lock exclusively when it released it, the contenders
  // before it are gone, and none are between it and us, except readers if we are a reader. A reader
  // may release the lock while other readers still hold it; and in a LOCK that is not zklock's, no
  // contender leaves a record.
  const auto predecessor = protocol::ParseContenderName(predecessor_.name);
  const bool may_leave_record = predecessor && predecessor->program == protocol::Program::kZklock &&
                                !predecessor->reads() && !predecessor->reserves;
  if (may_leave_record && contender.ticket()->lock_version) {
    return attempt_.next.Confirm(predecessor_.name);
  }
  attempt_.next.ListAgain();
}

void QueueWaitPart::OnLockData(const GetReply& reply) {
  if (!IsWaiting() || !attempt_.contender.ticket()) return;
  // LOCK is gone, so our contender must be too.
  if (reply.error == Error::kNoNode) return attempt_.next.CheckOwn();
  if (reply.error != Error::kNone || attempt_.request.permits) return;
  if (const auto record = attempt_.TakeLockData(reply)) predecessor_.ahead.Take(*record);
  if (predecessor_.ahead.IsNextInLine() && !proof_.HasLeaseInHand()) proof_.Prove();
}

void QueueWaitPart::CheckPredecessor() {
  if (!IsWaiting() || predecessor_.name.empty()) return;
  attempt_.ExpectAnswer();
  ++attempt_.unanswered;
  attempt_.store.Exists(attempt_.ChildPath(predecessor_.name), Watch::kNo,
                        attempt_.InState([this](const zookeeper::Reply& reply) {
                          --attempt_.unanswered;
                          if (IsLost(reply.error)) return;
                          attempt_.OnAnswer();
                          if (reply.error == Error::kNoNode) OnPredecessorGone();
                        }));
}

void QueueWaitPart::OnWatch(const std::string& path, Change change) {
  const AcquireRequest& request = attempt_.request;
  if (request.is_for_turnstile() && path == request.ReservationsPath()) {
    return OnlyPasses() ? CountPermits(ahead_) : ListPermits();
  }
  if (path != attempt_.ChildPath(predecessor_.name)) return attempt_.next.ListAgain();
  change == Change::kDeleted ? OnPredecessorGone() : ReadPredecessor();
}

/// `wait` limits the wait for other contenders. It applies only while the last answer shows a
/// contender ahead of us, but none that is or may be an overdue reservation. Otherwise, other
/// deadlines apply: we await an answer that may show that the lock is free, or there is no server
/// to ask.
TimePoint QueueWaitPart::end() const {
  if (!IsWaiting() || attempt_.AwaitsAnswer()) return kNever;
  const TimePoint latest = std::max(attempt_.wait_deadline, attempt_.clock.Now());
  return lookahead_.MayDeleteOneBy(latest) ? kNever : attempt_.wait_deadline;
}

TimePoint QueueWaitPart::due() const {
  return std::min({lookahead_.expiry_due(), lookahead_.list_due(), look_again_at_});
}

void QueueWaitPart::OnDue() {
  if (attempt_.clock.Now() >= lookahead_.expiry_due()) return lookahead_.OnExpiryDue();
  if (attempt_.clock.Now() >= look_again_at_) {
    look_again_at_ = kNever;
    looks_elsewhere_ = false;
    // With a contender in the queue, we watch the predecessor and need not list the queue again.
    return attempt_.contender.ticket() ? LeaveUnlessWithdrawn() : LookIfFree();
  }
  // Contenders that were not reservations may have become reservations since.
  if (!attempt_.request.is_for_turnstile()) return attempt_.next.ListAgain();
  lookahead_.OnListed();
  ListPermits();
}

// ---- semaphores ------------------------------------------------------------------------------

/// In a turnstile: lists the permits, some of which may be reserved for our ID or overdue, and
/// compares the recorded number of permits with ours.
void QueueWaitPart::ListPermits() {
  const AcquireRequest& request = attempt_.request;
  const bool watches = request.reserve || watches_permits_;
  const auto taken = std::make_shared<std::size_t>(0);
  lookahead_.Expect();
  attempt_.store.List(request.ReservationsPath(), watches ? Watch::kYes : Watch::kNo,
                      attempt_.InState([this, taken](const ListReply& reply) {
                        // kNoNode: no permit is taken.
                        if (reply.error != Error::kNone && reply.error != Error::kNoNode) {
                          return attempt_.OnUnexpected("list", reply.error, "READ",
                                                       attempt_.request.ReservationsPath());
                        }
                        const Contenders permits(reply.children);
                        *taken = RunsOf(permits).size();
                        lookahead_.Take();
                        if (attempt_.request.reserve) FindReservationIn(permits);
                        if (attempt_.IsOver()) return;
                        lookahead_.FindReserving(permits, false);
                        if (LeavesAtOnce()) LeaveAfterLookahead();
                      }));
  ReadPermitNumber(taken);
}

/// Finishes if there is now a reservation for our ID among `contenders`.
void QueueWaitPart::FindReservationIn(const Contenders& contenders) {
  attempt_.reservations.Search(contenders, attempt_.contender.name(),
                               attempt_.InState([this](const ReservationSearch::Found& found) {
                                 (void)attempt_.FinishIfReserved(found);
                               }));
}

/// Returns whether our contender is in a turnstile where it must not wait: that of a `try`, or one
/// in which `max_queue` contenders may already wait. Those that only pass, because permits are
/// free, do not count.
bool QueueWaitPart::OnlyPasses() const {
  const AcquireRequest& request = attempt_.request;
  return request.is_for_turnstile() && (request.passes || (request.max_queue && !ranked_));
}

/// If OnlyPasses(), and the last list showed `ahead` contenders ahead of us: leaves if too few
/// permits remain for us.
void QueueWaitPart::CountPermits(std::size_t ahead) {
  ahead_ = ahead;
  const AcquireRequest& request = attempt_.request;
  // Contenders ahead of us can only leave. If the turnstile contains as many of them after the list
  // of the permits as before it, they are the same ones, and none has left with a permit in
  // between: the three lists show the same moment.
  const auto taken = std::make_shared<std::size_t>(0);
  const auto runs = std::make_shared<std::size_t>(0);
  // With a watch, because each contender ahead of us may take more than one permit and wait for
  // them.
  attempt_.store.List(request.ReservationsPath(), Watch::kYes,
                      attempt_.InState([this, taken, runs](const ListReply& reply) {
                        if (reply.error == Error::kNoNode) return AwaitPermits();
                        if (reply.error != Error::kNone) {
                          return attempt_.OnUnexpected("list", reply.error, "READ",
                                                       attempt_.request.ReservationsPath());
                        }
                        const Contenders permits(reply.children);
                        *taken = permits.size();
                        *runs = RunsOf(permits).size();
                        if (attempt_.request.reserve) FindReservationIn(permits);
                        if (attempt_.IsOver()) return;
                        lookahead_.FindReserving(permits, false);
                      }));
  ReadPermitNumber(runs);
  attempt_.store.List(
      request.QueuePath(), Watch::kNo,
      attempt_.InState([this, ahead, taken](const ListReply& reply) {
        if (reply.error != Error::kNone) return;
        const Contenders contenders(reply.children);
        const auto still_ahead = protocol::RankOf(contenders, attempt_.contender.name()).ahead;
        // The last of them was our predecessor, and its watch has fired.
        if (still_ahead == 0) return;
        if (still_ahead != ahead) return CountPermits(still_ahead);
        // The first of them may already have created its permit, hence the - 1; if it has not, one
        // more permit will be taken than is counted here. If a permit is free for each contender,
        // all of them take one at once, and the watched list of permits then shows that none is
        // left for us. If they take more than one each, the list shows that sooner.
        const AcquireRequest& asked = attempt_.request;
        if (*taken + still_ahead - 1 + asked.take <= asked.most_permits) return;
        if (asked.max_queue) {
          // Contenders for which a permit is free do not wait; nor does the first one if it already
          // has its permit.
          const std::size_t left = asked.most_permits - std::min(*taken, asked.most_permits);
          const std::size_t passing =
              std::min(still_ahead, *taken > asked.most_permits ? 0 : left + 1);
          const bool may_wait = still_ahead - passing < *asked.max_queue;
          if (may_wait && passing > 0) return;  // we count again when they have permits
          if (may_wait) return attempt_.next.ListAgain();
        }
        permits_are_taken_ = true;
        LeaveAfterLookahead();
      }));
}

/// Counts the permits again once their parent exists: the servers delete it when it is not in use.
void QueueWaitPart::AwaitPermits() {
  attempt_.store.Exists(attempt_.request.ReservationsPath(), Watch::kYes,
                        attempt_.InState([this](const Reply& reply) {
                          if (reply.error == Error::kNone) CountPermits(ahead_);
                        }));
}

/// In a turnstile, reads the number of permits after a list of the permits, whose reply sets
/// `taken`. If another number is in use, fails now rather than when a permit becomes free for us.
void QueueWaitPart::ReadPermitNumber(const std::shared_ptr<std::size_t>& taken) {
  lookahead_.Expect();
  const std::string path = protocol::PermitsPath(attempt_.request.lock.path);
  attempt_.store.Get(path, Watch::kNo, attempt_.InState([this, taken](const GetReply& reply) {
    if (IsLost(reply.error)) return;
    const std::size_t most = attempt_.request.most_permits;
    // There is a contender ahead of us, so one of the permits may belong to the first in the
    // turnstile.
    const std::size_t holders = *taken - std::min<std::size_t>(*taken, 1);
    if (const auto other = FindOtherNumber(reply, holders, most)) return attempt_.Finish(*other);
    lookahead_.Take();
    if (LeavesAtOnce()) return LeaveAfterLookahead();
    // If only one permit is taken, we learn whose it is when the first contender takes another or
    // leaves.
    const bool may_differ = FindOtherNumber(reply, *taken, most).has_value();
    const bool watched = std::exchange(watches_permits_, may_differ);
    if (may_differ && !watched) ListPermits();
  }));
}

// ---- leaving ---------------------------------------------------------------------------------

void QueueWaitPart::LeaveFull(const QueueList& list) {
  Enter(State::kLeavingFull, "");
  lookahead_.FindReserving(list.contenders, false);
  lookahead_.SearchHolders(list.children, "");
  LeaveAfterLookahead();
}

/// Returns whether we leave now, unless one of the contenders ahead of us holds the lock on our
/// behalf, or is a reservation that has ended and can be deleted.
bool QueueWaitPart::LeavesAtOnce() const {
  return attempt_.request.try_only || state_ == State::kLeavingFull || permits_are_taken_;
}

/// Once the lookahead is over, leaves because of the contender in the way.
void QueueWaitPart::LeaveAfterLookahead() {
  if (attempt_.IsOver()) return;
  if (!lookahead_.IsOver()) {
    // Each answer shows that the server still responds.
    attempt_.answer_deadline = attempt_.clock.Now() + AnswerTime(attempt_.store.lease());
    return;
  }
  if (state_ == State::kLeavingFull) return attempt_.FinishBusy(Busy::Why::kQueueFull);
  if (attempt_.request.is_for_turnstile()) {
    const bool passes = attempt_.request.passes;
    return attempt_.FinishBusy(passes ? Busy::Why::kTaken : Busy::Why::kQueueFull);
  }
  LeaveUnlessWithdrawn();
}

/// Leaves, unless this is a `try` and the only contender ahead waits for any of several LOCKs.
/// While that contender is in another queue too, it may take that LOCK and withdraw from ours, so
/// we look again until it is in only one queue. Its data is only a hint: only our own queue can
/// show that the lock is free.
void QueueWaitPart::LeaveUnlessWithdrawn() {
  if (looks_elsewhere_) return;
  const AcquireRequest& request = attempt_.request;
  const TimePoint now = attempt_.clock.Now();
  if (withdrawn_by_ == kNever) withdrawn_by_ = After(now, request.connect_timeout);
  const bool may_withdraw = request.looks_again && predecessor_.is_only && now < withdrawn_by_;
  const std::vector<std::string> others =
      may_withdraw ? OtherQueues(predecessor_.data, request) : std::vector<std::string>();
  if (others.empty()) return FinishBlocked(Busy::Why::kTaken);
  looks_elsewhere_ = true;
  attempt_.answer_deadline = now + AnswerTime(attempt_.store.lease());
  attempt_.unserved_since.reset();
  const auto is_elsewhere = std::make_shared<bool>(false);
  for (const std::string& path : others) {
    const bool is_last = &path == &others.back();
    attempt_.store.List(
        path, Watch::kNo, attempt_.InState([this, is_elsewhere, is_last](const ListReply& reply) {
          if (IsLost(reply.error)) return;
          const Contenders contenders(reply.children);
          // All contenders of a run with --any have the run's UUID in this part of their names.
          const auto pool = protocol::ViewContenderName(predecessor_.name)->before_mark;
          const auto is_same = [&](const auto& one) {
            return !pool.empty() && one.before_mark == pool;
          };
          *is_elsewhere =
              *is_elsewhere || std::any_of(contenders.begin(), contenders.end(), is_same);
          if (!is_last) return;
          if (!*is_elsewhere) return FinishBlocked(Busy::Why::kTaken);
          attempt_.answer_deadline = kNever;
          look_again_at_ = attempt_.clock.Now() + look_again_after_;
          look_again_after_ = std::min(2 * look_again_after_, kLongestLookAgain);
        }));
  }
}

void QueueWaitPart::FinishBlocked(Busy::Why why) {
  if (attempt_.request.passes) why = Busy::Why::kTaken;  // the user has set no time to wait
  attempt_.Finish(
      Busy{why, predecessor_.name, predecessor_.data, predecessor_.reserved, predecessor_.holds});
}

}  // namespace zklock::lock
