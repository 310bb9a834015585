#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "lock/acquire/acquire.h"
#include "protocol/contender_name.h"
#include "protocol/release_record.h"
#include "protocol/semaphore.h"

// The wait, from the list that decides to the turn.

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using protocol::Children;
using protocol::Contenders;
using zookeeper::Error;
using zookeeper::GetReply;
using zookeeper::ListReply;
using zookeeper::Reply;
using zookeeper::Watch;

constexpr int kMostMissing = 8;
// Beyond the time between pings: clocks and the servers round.
constexpr Duration kRoundMargin = 1ms;

/// How many contenders wait before ours.
std::size_t CountWaiting(const AcquireRequest& request, const protocol::Rank& rank) {
  if (request.permits) return 0;                      // only our contender is past the turnstile
  if (request.is_for_turnstile()) return rank.ahead;  // all of them wait
  // The contenders that our contender supersedes will leave: do not count them.
  return request.supersede ? rank.waiting - rank.superseding : rank.waiting;
}

protocol::Decision MakeDecision(const AcquireRequest& request, const QueueList& list,
                                std::string_view own_name) {
  if (request.is_simple()) {
    if (list.children.Has(own_name)) return protocol::MayHold{};
    return protocol::OwnMissing{};
  }
  return request.permits ? protocol::DecidePermit(list.contenders, own_name, *request.permits)
                         : protocol::Decide(list.contenders, own_name);
}

}  // namespace

// ---- the decision ----------------------------------------------------------------------------

/// Asks what LOCK is used for, unless that is known. The request is sent together with the list
/// that decides, ahead of it.
void Acquire::ReadUse() {
  const bool is_number_known = !request_.permits || permit_number_.is_known();
  if (is_number_known && compatibility_.has_accepted()) return;
  store_.Get(request_.QueuePath(), Watch::kNo, InState([this](const GetReply& reply) {
               if (contender_.ticket()) TakeLockData(reply);
             }));
  compatibility_.ReadLock();
}

void Acquire::ListAgain() {
  Enter<Deciding>();
  ReadUse();
  ListQueue(Proof::kNone);
}

void Acquire::ListQueue(Proof proof) {
  store_.List(request_.QueuePath(), Watch::kNo, InState([this, proof](const ListReply& reply) {
                if (!contender_.ticket())
                  return;  // the create's reply was lost: OnDisconnected() follows
                // LOCK was deleted, and our contender before it. The heartbeat says so.
                if (reply.error == Error::kNoNode && ++missing_ <= kMostMissing) return CheckOwn();
                if (reply.error != Error::kNone) return OnUnexpected("list", reply.error);
                DecideIfCompatible(reply.children, proof);
              }));
}

void Acquire::DecideIfCompatible(const Children& children, Proof proof) {
  unserved_since_.reset();
  IfCompatible(children, [this, proof](const QueueList& list) { FindRival(list, proof); });
}

/// With --reserve: the lock may be reserved for our ID by now, or another contender with our ID may
/// be about to reserve it. We wait for that one even if both only read.
void Acquire::FindRival(const QueueList& list, Proof proof) {
  if (!request_.reserve || request_.is_for_turnstile()) return Decide(list, proof, "");
  // The list is long, and copied only for the few that reserve.
  reservations_.Search(
      list.contenders, contender_.name(),
      InState([this, proof, children = list.children](const ReservationSearch::Found& found) {
        if (FinishIfReserved(found)) return;
        Decide({children, Contenders(children)}, proof, found.name);
      }));
}

/// `rival`: the contender that FindRival() has found, or a reservation of our ID that has ended.
void Acquire::Decide(const QueueList& list, Proof proof, const std::string& rival) {
  ScheduleProof();
  contender_.DeleteStrays(list.children);
  if (LeaveIfSuperseded(list.contenders)) return;
  if (request_.permits && !AgreeOnPermits(list.contenders)) return;
  const protocol::Decision decision = MakeDecision(request_, list, contender_.name());
  if (std::holds_alternative<protocol::MayHold>(decision) && !rival.empty()) {
    BeginWait(rival, list);
    predecessor_.is_rival = true;
  } else if (std::holds_alternative<protocol::MayHold>(decision)) {
    // The create proves the session, but not what is held in other LOCKs.
    const bool is_proven = proof == Proof::kCommit && request_.held.empty();
    if (is_proven) return TakeTurn();
    if (HasLeaseInHand()) {
      contender_.GuessLockVersion(0);
      return TakeTurn();
    }
    Confirm(Turn::kShownByList);
  } else if (const auto* wait = std::get_if<protocol::WaitFor>(&decision)) {
    BeginWait(wait->predecessor, list);
  } else if (std::holds_alternative<protocol::OwnMissing>(decision)) {
    if (++missing_ <= kMostMissing) return CheckOwn();
    Finish(Defect{Defect::What::kNotListed, request_.lock.display_path()});
  } else {
    Finish(Unusable{Unusable::Why::kNumbersUsedUp});
  }
}

/// False: it is over, or our number is being written and the permits will be listed again.
bool Acquire::AgreeOnPermits(const Contenders& permits) {
  using Agreement = PermitNumber::Agreement;
  switch (permit_number_.Compare(permits, contender_.name())) {
    case Agreement::kAgreed:
      return true;
    case Agreement::kUnread:
      ListAgain();
      break;
    case Agreement::kOtherNumber:
      Finish(Unusable{.why = Unusable::Why::kOtherPermits, .permits = *permit_number_.written()});
      break;
    case Agreement::kUnknownNumber:
      Finish(Unusable{.why = Unusable::Why::kUnknownPermits});
      break;
    case Agreement::kOpen:
      Enter<Deciding>();
      permit_number_.Write(InState([this](const Reply& reply) {
        // Whether our number is written now or another's: read it again.
        if (reply.error == Error::kNone || reply.error == Error::kBadVersion) return ListAgain();
        if (reply.error == Error::kNoNode) return CheckOwn();
        OnUnexpected("write the number of permits of", reply.error, "WRITE", request_.QueuePath());
      }));
      break;
  }
  return false;
}

bool Acquire::LeaveIfSuperseded(const Contenders& contenders) {
  if (!request_.supersede || !protocol::IsSuperseded(contenders, contender_.name())) return false;
  FinishBusy(Busy::Why::kSuperseded);
  return true;
}

// ---- the wait --------------------------------------------------------------------------------

/// Whether a contender in the list that is in our way holds the lock. False: not known.
bool Acquire::Holds(const QueueList& list, std::string_view contender) const {
  if (request_.is_simple() || request_.permits) return true;
  const protocol::ContenderNameView* const first = list.contenders.First();
  return !request_.is_for_turnstile() && first != nullptr && first->full == contender;
}

void Acquire::BeginWait(const std::string& predecessor, const QueueList& list) {
  const protocol::Rank rank = protocol::RankOf(list.contenders, contender_.name());
  if (!place_.ranked && request_.max_queue && CountWaiting(request_, rank) >= *request_.max_queue) {
    Enter<LeavingFull>();
    request_.is_for_turnstile() ? ListPermits() : FindReserving(list.contenders);
    SearchHolders(list.children, "");
    return LeaveAfterLookup();
  }
  place_.ranked = true;
  place_.is_first = false;
  predecessor_.is_rival = false;
  observer_.OnWaiting(request_.lock, predecessor, {rank.ahead, CountWaiting(request_, rank)});
  WatchPredecessor(predecessor);
  predecessor_.holds = Holds(list, predecessor);
  BeginPreemption(list);
  if (request_.is_for_turnstile()) {
    CountZklocksBefore(list.contenders);
    request_.permit_limit ? CountPermits(rank.ahead) : ListPermits();
  } else {
    FindReserving(list.contenders);
  }
  SearchHolders(list.children, predecessor_.readable ? predecessor : "");
  if (request_.permits || request_.try_only) return;
  predecessor_.ahead = protocol::QueueAhead(list.contenders, contender_.name(), predecessor);
  if (predecessor_.ahead.IsNextInLine() && !store_.lease().IsInHand(clock_.Now())) KeepProving();
}

/// Those that come later are behind us: once for each place in the queue.
void Acquire::BeginPreemption(const QueueList& list) {
  if (!request_.preempt || place_.preempted || connection_.preemption) return;
  const protocol::ContenderNameView* const own = list.contenders.Find(contender_.name());
  const auto holding = protocol::HoldersIn(list.children);
  const auto holds = [&](const protocol::ContenderNameView& one) {
    // In a turnstile nobody holds; all others that have a permit do.
    if (request_.is_for_turnstile()) return false;
    return request_.permits || std::any_of(holding.begin(), holding.end(), [&](const auto& holder) {
             return holder.full == one.full;
           });
  };
  std::vector<protocol::ContenderNameView> before;
  for (const protocol::ContenderNameView& one : list.contenders) {
    const bool is_before = request_.permits ? &one != own : protocol::IsBefore(one, *own);
    if (is_before && (request_.preempt->holders || !holds(one))) before.push_back(one);
  }
  std::sort(before.begin(), before.end(), protocol::IsBefore);
  std::vector<std::string> names;
  names.reserve(before.size());
  for (const protocol::ContenderNameView& one : before) names.emplace_back(one.full);
  connection_.preemption = std::make_unique<Preemption>(
      store_, request_, request_.QueuePath(), std::move(names), [this](const Preempted& result) {
        place_.preempted = true;
        observer_.OnPreempted(request_.lock, result);
      });
  connection_.preemption->Begin();
}

void Acquire::BeginSimpleWait() {
  creation_.OnUsed();
  unserved_since_.reset();
  has_queued_ = true;
  ScheduleProof();
  const std::string name(protocol::kSimpleName);
  observer_.OnWaiting(request_.lock, name, {.contenders = 1, .waiting = std::nullopt});
  WatchPredecessor(name);
  predecessor_.holds = true;
  SearchHolders({name}, predecessor_.readable ? name : "");
}

void Acquire::WatchPredecessor(const std::string& name) {
  Enter<Waiting>();
  if (name != predecessor_.name) predecessor_ = {.name = name};
  if (!connection_.unwatched && !request_.try_only) WatchOwn();
  predecessor_.readable ? ReadPredecessor() : WatchChildren();
}

void Acquire::ReadPredecessor() {
  answer_deadline_ = std::min(answer_deadline_, clock_.Now() + AnswerTime());
  // A get, not an exists: exists would leave a watch on a znode that is gone.
  store_.Get(ChildPath(predecessor_.name), request_.try_only ? Watch::kNo : Watch::kYes,
             InState([this](const GetReply& reply) { OnPredecessor(reply); }));
}

void Acquire::OnPredecessor(const GetReply& reply) {
  switch (reply.error) {
    case Error::kNone:
      if (reply.stat.ephemeral_owner == 0) {
        const auto reserved = FindReservation(predecessor_.name, reply.data, reply.stat);
        if (!reserved) return Finish(Unusable{Unusable::Why::kNobodysContender, predecessor_.name});
        predecessor_.reserved = reserved;
        OnReservationAhead(*reserved);
        if (!std::holds_alternative<Waiting>(state_) &&
            !std::holds_alternative<CheckingFree>(state_)) {
          return;
        }
      }
      // Our own create, whose reply was lost: a wait for it would never end.
      if (request_.is_simple() && reply.stat.ephemeral_owner == store_.session_id()) {
        return AdoptOrJoin(predecessor_.name, reply);
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
      return OnUnexpected("read a contender of", reply.error);
  }
  Lookup& lookup = *LookupOfState();
  if (std::exchange(lookup.reads_predecessor, false) && --lookup.unread == 0) PlanExpiries();
  if (lookup.search) lookup.search->Take(predecessor_.name, reply);
  if (request_.try_only) return LeaveAfterLookup();
  answer_deadline_ = kNever;
  const bool reserves = request_.reserve && !request_.is_for_turnstile();
  if (!predecessor_.readable || request_.supersede || request_.permits || reserves) WatchChildren();
}

/// For a predecessor that we may not read, for a newer contender that supersedes our contender, for
/// permits, of which any may be released, and for a reservation of our ID that another contender
/// makes.
void Acquire::WatchChildren() {
  store_.List(request_.QueuePath(), Watch::kYes, InState([this](const ListReply& reply) {
                if (reply.error == Error::kNoNode) {
                  return request_.is_simple() ? Join() : CheckOwn();
                }
                if (reply.error != Error::kNone) return OnUnexpected("list", reply.error);
                answer_deadline_ = kNever;
                if (request_.is_simple()) {  // our contender is not in it
                  if (!reply.children.Has(protocol::kSimpleName)) Join();
                  return;
                }
                const Contenders contenders(reply.children);
                if (LeaveIfSuperseded(contenders)) return;
                const auto decision =
                    MakeDecision(request_, {reply.children, contenders}, contender_.name());
                const bool is_unchanged =
                    predecessor_.is_rival ||
                    decision == protocol::Decision(protocol::WaitFor{predecessor_.name});
                if (!is_unchanged) return DecideIfCompatible(reply.children, Proof::kNone);
                if (request_.reserve) FindReservationIn(contenders);
              }));
}

/// The predecessor was deleted. Decides with the least that shows that it is our turn: nothing, if
/// it is known to have been the first contender; the record in LOCK's data, if it may have been; or
/// else another list.
void Acquire::OnPredecessorGone() {
  if (request_.is_simple()) return Join();   // the first to create it holds the lock
  if (request_.reserve) return ListAgain();  // for a reservation of our ID
  const bool in_hand = HasLeaseInHand();
  if (request_.supersede && in_hand) return ListAgain();  // for a newer contender
  if (predecessor_.ahead.IsSettledByDeletion()) {
    if (!in_hand) return Confirm(Turn::kShownByList);
    contender_.GuessLockVersion(1);  // it held the lock, and left its record
    return TakeTurn();
  }
  // All contenders that can be before our contender were in our first list, and only leave. If the
  // predecessor excluded others and released the lock while it held it, those before it are gone,
  // and between it and us there are none but, for a reader, readers. A reader releases beside other
  // readers; and in a LOCK that is not zklock's nobody leaves a record.
  const auto predecessor = protocol::ParseContenderName(predecessor_.name);
  const bool may_leave_record = predecessor && predecessor->program == protocol::Program::kZklock &&
                                !predecessor->reads() && !predecessor->reserves;
  if (may_leave_record && contender_.ticket()->lock_version) return Confirm(Turn::kNeedsRecord);
  ListAgain();
}

/// In the turnstile of a `try`, with `ahead` contenders before our own in its last list: leaves if
/// they take all permits.
void Acquire::CountPermits(std::size_t ahead) {
  // Contenders before our own only leave. If the list after that of the permits has as many as the
  // one before, they are the same ones, and none of them has left with a permit in between: the
  // three lists show one moment.
  const auto taken = std::make_shared<std::size_t>(0);
  store_.List(protocol::PermitsPath(request_.lock.path), Watch::kNo,
              InState([this, taken](const ListReply& reply) {
                if (reply.error != Error::kNone) return;
                const Contenders permits(reply.children);
                *taken = permits.size();
                FindReserving(permits);
              }));
  ReadPermitNumber(taken);
  store_.List(request_.QueuePath(), Watch::kNo,
              InState([this, ahead, taken](const ListReply& reply) {
                if (reply.error != Error::kNone) return;
                const Contenders contenders(reply.children);
                const auto still_ahead = protocol::RankOf(contenders, contender_.name()).ahead;
                // The last of them was our predecessor, and its watch has fired.
                if (still_ahead == 0) return;
                if (still_ahead != ahead) return CountPermits(still_ahead);
                // The first of them may have created its permit. If it has not, one permit more
                // will be taken than is counted here. That still leaves one for each of them: they
                // leave at once, and the list of permits then says that none is left for us.
                if (*taken + still_ahead - 1 >= *request_.permit_limit) {
                  std::get<Waiting>(state_).permits_are_taken = true;
                  LeaveAfterLookup();
                }
              }));
}

/// In a turnstile, after a list of the permits that sets `taken`: another number is refused now,
/// not when a permit is left for us.
void Acquire::ReadPermitNumber(const std::shared_ptr<std::size_t>& taken) {
  ++LookupOfState()->unread;
  store_.Get(protocol::PermitsPath(request_.lock.path), Watch::kNo,
             InState([this, taken](const GetReply& reply) {
               if (IsLost(reply.error)) return;
               // There is a contender before ours: one of the permits may be that of the first.
               const std::size_t holders = *taken - std::min<std::size_t>(*taken, 1);
               if (const auto other = FindOtherNumber(reply, holders, request_.most_permits)) {
                 return Finish(*other);
               }
               if (--LookupOfState()->unread == 0) PlanExpiries();
               if (LeavesAtOnce()) return LeaveAfterLookup();
               // Whose the only permit is shows when the first creates another, or leaves.
               const bool may_differ =
                   FindOtherNumber(reply, *taken, request_.most_permits).has_value();
               const bool watched = std::exchange(place_.watches_permits, may_differ);
               if (may_differ && !watched) ListPermits();
             }));
}

// Whether the lock is held for ourselves is asked beside the wait, which continues meanwhile.

/// `awaited`: as HolderSearch::Begin takes it.
void Acquire::SearchHolders(const Children& children, const std::string& awaited) {
  Lookup* const lookup = LookupOfState();
  if (lookup == nullptr || place_.searched || !request_.holds_for_us) return;
  lookup->search.emplace(store_, request_.QueuePath(), children, request_.host,
                         request_.holds_for_us, [this] { OnSearchProgress(); });
  lookup->search->Begin(awaited);
  if (!lookup->search->IsOver()) return;
  place_.searched = true;
  lookup->search.reset();
}

void Acquire::OnSearchProgress() {
  std::optional<HolderSearch>& search = LookupOfState()->search;
  if (search->IsOver()) {
    place_.searched = true;
    if (const auto held = search->found()) return Finish(*held);
    search.reset();
  }
  if (LeavesAtOnce()) LeaveAfterLookup();
}

/// Whether we leave now, unless one of the contenders before our own holds for us, or can be
/// deleted because its reservation has ended.
bool Acquire::LeavesAtOnce() const {
  const auto* const waiting = std::get_if<Waiting>(&state_);
  return request_.try_only || std::holds_alternative<LeavingFull>(state_) ||
         (waiting != nullptr && waiting->permits_are_taken);
}

/// Leaves with the contender in the way, once the lookup is over.
void Acquire::LeaveAfterLookup() {
  if (IsOver()) return;
  const Lookup& lookup = *LookupOfState();
  if (lookup.search || lookup.unread > 0 || MayExpireAtOnce()) {
    answer_deadline_ = clock_.Now() + AnswerTime();  // each answer is one of a server that answers
    return;
  }
  if (std::holds_alternative<LeavingFull>(state_)) return FinishBusy(Busy::Why::kQueueFull);
  if (request_.is_for_turnstile()) return FinishBusy(Busy::Why::kTaken);
  FinishBlocked(Busy::Why::kTaken);
}

Acquire::Lookup* Acquire::LookupOfState() {
  if (auto* const checking = std::get_if<CheckingFree>(&state_)) return &checking->lookup;
  if (auto* const waiting = std::get_if<Waiting>(&state_)) return &waiting->lookup;
  if (auto* const leaving = std::get_if<LeavingFull>(&state_)) return &leaving->lookup;
  return nullptr;
}

// ---- the turn --------------------------------------------------------------------------------

void Acquire::Confirm(Turn turn) {
  const bool by_lease = turn == Turn::kNeedsRecord && HasLeaseInHand();
  Enter(Confirming{.turn = turn, .proof = by_lease ? Proof::kLeaseInHand : Proof::kNone});
  if (!by_lease) {
    contender_.Check(InState([this](const Reply& reply) {
      if (reply.error == Error::kNoNode) return FinishBusy(Busy::Why::kRemoved);
      if (reply.error != Error::kNone) {
        return OnUnexpected("check our own contender in", reply.error, "READ",
                            contender_.ticket()->path);
      }
      std::get<Confirming>(state_).proof = Proof::kCommit;
    }));
  }
  // Sent with the heartbeat and answered after it, so never older than what the heartbeat saw.
  // Without a heartbeat it may be older: the record then does not name the predecessor.
  store_.Get(request_.QueuePath(), Watch::kNo,
             InState([this](const GetReply& reply) { OnConfirmed(reply); }));
}

void Acquire::OnConfirmed(const GetReply& reply) {
  // If the heartbeat's answer was lost, the store tells of it.
  const Confirming confirming = std::get<Confirming>(state_);
  if (confirming.proof == Proof::kNone || IsLost(reply.error)) return;
  const auto record = TakeLockData(reply);
  if (IsOver()) return;  // we may not read it
  const bool settled =
      confirming.turn == Turn::kShownByList || (record && record->contender == predecessor_.name);
  // Read after the proof of our place in the turnstile: whoever follows us finds our number.
  const bool agreed = !request_.permits || permit_number_.written() == request_.permits;
  if (!settled || !agreed) return ListAgain();
  if (confirming.proof == Proof::kLeaseInHand) {
    return HasLeaseInHand() ? TakeTurn() : Confirm(Turn::kShownByList);
  }
  request_.supersede ? CheckForNewer() : TakeTurn();
}

/// Returns the record in LOCK's data, if zklock wrote it, and notes whether we may leave a record.
/// That of a reservation shows nothing: whoever deleted it believed its data, and it may never have
/// held.
std::optional<protocol::ReleaseRecord> Acquire::TakeLockData(const GetReply& reply) {
  if (request_.permits) {
    permit_number_.Take(reply);
    if (reply.error != Error::kNone && reply.error != Error::kNoNode) {  // the list tells that
      OnUnexpected("read", reply.error, "READ", request_.QueuePath());
    }
  }
  std::optional<protocol::LockData> data;
  if (reply.error == Error::kNone) data = protocol::ParseLockData(reply.data);
  contender_.SetLockVersion(data ? std::optional(reply.stat.version) : std::nullopt);
  if (!data || !data->last_release || data->last_release->is_reservation) return std::nullopt;
  return data->last_release;
}

/// After the proof of the session: the last moment to leave for a newer contender. One that joined
/// before this list is newer than a command that has not begun.
void Acquire::CheckForNewer() {
  store_.List(request_.QueuePath(), Watch::kNo, InState([this](const ListReply& reply) {
                if (reply.error == Error::kNoNode) return CheckOwn();
                if (reply.error != Error::kNone) return OnUnexpected("list", reply.error);
                if (!LeaveIfSuperseded(reply.children)) TakeTurn();
              }));
}

void Acquire::TakeTurn() {
  const protocol::Lease& lease = store_.lease();
  const TimePoint now = clock_.Now();
  if (lease.SufficesToStart(now)) return Finish(Acquired{*contender_.ticket()});
  const auto* const round = std::get_if<Confirming>(&state_);
  const bool is_round = round != nullptr && round->round_began != kNever;
  const Duration took = is_round ? now - round->round_began : Duration::zero();
  // If the next round is like this one: what is answered before its pause, and all of it.
  const Duration answers = is_round ? now - *lease.newest_sent() + took : Duration::zero();
  if (answers + kRoundMargin >= lease.AnswerBudget() || (is_round && request_.try_only)) {
    return Finish(TooSlow{.timeout = lease.timeout(),
                          .answer = is_round ? std::max(took, lease.commits_take()) : took,
                          .ping_span = lease.PingSpan(),
                          .longer = lease.SufficientTimeout(answers + kRoundMargin)});
  }
  // The session lives, but is not proven for long enough to start anything: this process was
  // suspended, say. An answered request, a ping between follower and leader after it, and then
  // confirm once more.
  if (!std::exchange(place_.is_first, true)) observer_.OnFirst(request_.lock);
  Enter(AwaitingLease{.confirm_at = now + lease.PingSpan() + kRoundMargin});
  answer_deadline_ = kNever;
  KeepProving();
}

}  // namespace zklock::lock
