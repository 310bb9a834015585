#include "lock/acquire.h"

#include <algorithm>
#include <utility>

#include "lock/contender_check.h"
#include "protocol/lease.h"
#include "protocol/lock_path.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using zookeeper::Error;
using zookeeper::NodeKind;
using zookeeper::Watch;

constexpr int kMostMissing = 8;
// Of a predecessor's data, for messages: anyone may have written a megabyte there.
constexpr std::size_t kMostDataKept = 4096;

}  // namespace

Acquire::Acquire(zookeeper::Store& store, const Clock& clock, AcquireRequest request,
                 std::function<std::string()> make_uuid, AcquireObserver& observer)
    : store_(store),
      clock_(clock),
      request_(std::move(request)),
      make_uuid_(std::move(make_uuid)),
      observer_(observer),
      uuid_(make_uuid_()),
      apart_since_(clock.Now()) {
  store_.SetListener(this);
  if (store_.IsConnected()) OnConnected(true);
}

Acquire::~Acquire() { store_.SetListener(nullptr); }

bool Acquire::IsAboutToHold() const {
  if (outcome_) return std::holds_alternative<Acquired>(*outcome_);
  // The create proves the session, but not what is held in other LOCKs.
  const bool create_decides = create_sent_ && request_.held.empty();
  return state_ == State::kConfirming || (state_ == State::kJoining && create_decides);
}

// ---- time and connection --------------------------------------------------------------------

EventSource::Interest Acquire::GetInterest() {
  if (state_ == State::kDone) return {};
  const TimePoint wait_end = HasPlace() ? wait_deadline_ : kNever;
  return {.wake =
              std::min({ApartDeadline(), wait_end, answer_deadline_, next_read_, confirm_again_})};
}

void Acquire::OnReady(short /*revents*/) {
  const TimePoint now = clock_.Now();
  if (state_ == State::kDone) return;
  // Without a place in the queue nobody is known to be before us: then it is the servers that we
  // wait for, as long as connect_timeout says.
  if (now >= wait_deadline_ && HasPlace()) {
    Finish(Busy{Busy::Why::kWaitOver, predecessor_, predecessor_data_});
  } else if (now >= ApartDeadline()) {
    Finish(Unreachable{});
  } else if (now >= answer_deadline_) {
    answer_deadline_ = kNever;
    store_.GiveUpServer();
  } else if (now >= confirm_again_) {
    Confirm(Turn::kOurs);
  } else if (now >= next_read_) {
    ReadOwn();
  }
}

TimePoint Acquire::ApartDeadline() const {
  if (!apart_since_) return kNever;
  // Who is in the queue has a place to lose: it stays for as long as the session can.
  const Duration patience = joined_ ? std::max(request_.connect_timeout, store_.lease().timeout())
                                    : request_.connect_timeout;
  return After(*apart_since_, patience);
}

Duration Acquire::AnswerTime() const {
  return std::max<Duration>(2s, store_.lease().timeout() / 3);
}

void Acquire::OnConnected(bool fresh) {
  if (state_ == State::kDone) return;
  observer_.OnConnected();
  const Duration granted = store_.lease().timeout();
  if (granted < protocol::kLeastSessionTimeout) {
    Finish(Unusable{Unusable::Why::kShortSessions});
    return;
  }
  if (!fresh) {
    Rejoin();
  } else if (request_.try_only) {
    Look();
  } else {
    Join();
  }
}

void Acquire::OnDisconnected() {
  if (state_ == State::kDone) return;
  if (!apart_since_) apart_since_ = clock_.Now();
  own_watched_ = false;
  own_read_pending_ = false;
  permits_data_.reset();
  next_read_ = kNever;
  BeginStep(State::kApart);
}

void Acquire::OnExpired() {
  if (state_ == State::kDone) return;
  if (!apart_since_) apart_since_ = clock_.Now();
  if (ticket_) observer_.OnPlaceLost(request_.lock);
  ticket_.reset();
  ranked_ = false;
  searched_ = false;
  create_sent_ = false;
  uuid_ = make_uuid_();
  BeginStep(State::kApart);
  store_.Renew();
}

void Acquire::OnRefused(Error why) {
  if (state_ != State::kDone) FinishRefused("queue in", why, "", "");
}

void Acquire::OnWatch(const std::string& path) {
  if (state_ == State::kDone) return;
  if (IsOurs(path)) {
    WatchOwn();  // gone, or only written to: the read tells, and watches on
  } else if (state_ == State::kWaiting) {
    if (IsSimple() || path == ChildPath(predecessor_)) return OnPredecessorEvent();
    List();
  }
}

// ---- deciding -------------------------------------------------------------------------------

void Acquire::List() {
  BeginStep(State::kDeciding);
  if (NeedsUse()) AskForUse();
  store_.List(request_.QueuePath(), Watch::kNo, InStep([this](const zookeeper::ListReply& reply) {
                // LOCK has gone: our contender before it. The heartbeat says so.
                if (reply.error == Error::kNoNode) return CheckOwn();
                if (reply.error != Error::kNone) return OnUnexpected("list", reply.error);
                Consider(reply.children, Proof::kNone);
              }));
}

void Acquire::Consider(const protocol::Children& children, Proof proof) {
  apart_since_.reset();
  const protocol::Contenders contenders(children);
  const auto go_on = [this, proof](const protocol::Children& judged) { Consider(judged, proof); };
  if (Judge(children, contenders, go_on) != Verdict::kFine) return;
  if (next_read_ == kNever) {
    next_read_ = clock_.Now() + protocol::WaiterReadPeriod(store_.lease().timeout());
  }
  const std::string_view own = own_name();
  for (const std::string_view child : children) {
    // One of ours that is not our ticket: a create whose reply was lost after all. Our UUID, so
    // nobody else's; it must not stand in anybody's way.
    if (child != own && IsOfOurUuid(child)) {
      store_.Delete(ChildPath(child), zookeeper::kAnyVersion,
                    scope_.Wrap([](const zookeeper::Reply&) {}));
    }
  }
  if (LeaveIfSuperseded(contenders)) return;
  if (request_.permits && !AgreeOnPermits(contenders)) return;
  const protocol::Decision decision = Decide(children, contenders);
  if (std::holds_alternative<protocol::Hold>(decision)) {
    // The create proves the session, but not what is held in other LOCKs.
    if (proof == Proof::kCreate && request_.held.empty()) return TakeTurn();
    Confirm(Turn::kOurs);
  } else if (const auto* wait = std::get_if<protocol::WaitFor>(&decision)) {
    const protocol::Rank rank = protocol::RankOf(contenders, own);
    if (!ranked_ && request_.max_queue && CountWaiting(rank) >= *request_.max_queue) {
      return LeaveFull(children);
    }
    ranked_ = true;
    observer_.OnWaiting(request_.lock, wait->predecessor, rank.ahead);
    WatchPredecessor(wait->predecessor);
    SearchHolders(children, predecessor_unreadable_ ? "" : predecessor_);
    if (request_.permit_limit) CountPermits(rank.ahead);
  } else if (std::holds_alternative<protocol::OwnMissing>(decision)) {
    if (++missing_ > kMostMissing)
      return Finish(Defect{Defect::What::kNotListed, request_.lock.display_path()});
    CheckOwn();
  } else {
    Finish(Unusable{Unusable::Why::kNumbersUsedUp});
  }
}

std::size_t Acquire::CountWaiting(const protocol::Rank& rank) const {
  if (request_.permits) return 0;  // the only one that has passed the turnstile and waits
  if (request_.below == protocol::kTurnstile) return rank.ahead;  // where all wait
  // Whom ours supersedes leaves for ours, which is not to leave for it.
  return request_.supersede ? rank.waiting - rank.superseding : rank.waiting;
}

void Acquire::WatchPredecessor(const std::string& predecessor) {
  BeginStep(State::kWaiting);
  if (predecessor != predecessor_) {
    predecessor_unreadable_ = false;
    predecessor_data_.clear();
  }
  predecessor_ = predecessor;
  if (!own_watched_ && !request_.try_only) WatchOwn();
  if (predecessor_unreadable_) return WatchChildren();
  // A get, not an exists: exists would leave a watch behind on what has gone.
  store_.Get(ChildPath(predecessor), request_.try_only ? Watch::kNo : Watch::kYes,
             InStep([this](const zookeeper::GetReply& reply) { OnPredecessor(reply); }));
}

void Acquire::OnPredecessor(const zookeeper::GetReply& reply) {
  switch (reply.error) {
    case Error::kNone:
      if (reply.stat.ephemeral_owner == 0) {
        return Finish(Unusable{Unusable::Why::kNobodysContender, predecessor_});
      }
      // A create of ours whose reply was lost: waiting for it would never end.
      if (IsSimple() && reply.stat.ephemeral_owner == store_.session_id()) {
        return AdoptIfOurs(predecessor_, reply);
      }
      predecessor_data_ = reply.data.substr(0, kMostDataKept);
      break;
    case Error::kNoNode:
      return OnPredecessorEvent();
    case Error::kNoAuth:
      predecessor_unreadable_ = true;
      break;
    default:
      return OnUnexpected("read a contender of", reply.error);
  }
  if (search_) search_->Take(predecessor_, reply);
  if (request_.try_only) return LeaveTaken();
  answer_deadline_ = kNever;
  if (predecessor_unreadable_ || request_.supersede || request_.permits) WatchChildren();
}

void Acquire::WatchChildren() {
  store_.List(request_.QueuePath(), Watch::kYes, InStep([this](const zookeeper::ListReply& reply) {
                if (reply.error == Error::kNoNode) return IsSimple() ? Join() : CheckOwn();
                if (reply.error != Error::kNone) return OnUnexpected("list", reply.error);
                answer_deadline_ = kNever;
                if (IsSimple()) {  // no contender of ours is in it
                  if (!reply.children.Has(protocol::kSimpleName)) Join();
                  return;
                }
                const protocol::Contenders contenders(reply.children);
                if (LeaveIfSuperseded(contenders)) return;
                const auto decision = Decide(reply.children, contenders);
                if (decision != protocol::Decision(protocol::WaitFor{predecessor_})) {
                  Consider(reply.children, Proof::kNone);
                }
              }));
}

bool Acquire::LeaveIfSuperseded(const protocol::Contenders& contenders) {
  if (!request_.supersede || !protocol::IsSuperseded(contenders, own_name())) return false;
  Finish(Busy{Busy::Why::kSuperseded, "", ""});
  return true;
}

// ---- our own contender ----------------------------------------------------------------------

void Acquire::WatchOwn() {
  own_watched_ = true;
  for (const ContenderId& one : AllOurs()) {
    store_.Get(one.path, Watch::kYes, scope_.Wrap([this, one](const zookeeper::GetReply& reply) {
      if (state_ == State::kDone) return;
      if (IsGone(one, reply)) return Finish(Busy{Busy::Why::kRemoved, "", ""});
      if (reply.error == Error::kNone) observer_.OnOwnData(reply.data);
    }));
  }
}

std::vector<ContenderId> Acquire::AllOurs() const {
  std::vector<ContenderId> all = request_.held;
  if (ticket_) all.push_back(ticket_->id());
  return all;
}

bool Acquire::IsOurs(const std::string& path) const {
  const auto all = AllOurs();
  return std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.path == path; });
}

void Acquire::ReadOwn() {
  next_read_ = clock_.Now() + protocol::WaiterReadPeriod(store_.lease().timeout());
  if (own_read_pending_ || (!ticket_ && !IsSimple())) return;
  own_read_pending_ = true;
  answer_deadline_ = std::min(answer_deadline_, clock_.Now() + AnswerTime());
  // Without a contender in a queue any small read does.
  const std::string path = ticket_ ? ticket_->path : request_.lock.path;
  store_.Get(path, Watch::kNo, scope_.Wrap([this](const zookeeper::GetReply& reply) {
    own_read_pending_ = false;
    if (state_ == State::kDone || IsLost(reply.error)) return;
    if (ticket_ && IsGone(ticket_->id(), reply)) return Finish(Busy{Busy::Why::kRemoved, "", ""});
    if (state_ == State::kWaiting) answer_deadline_ = kNever;
  }));
}

void Acquire::CheckOwn() {
  BeginStep(State::kDeciding);
  CheckContenders(store_, AllOurs(), InStep([this](const zookeeper::Reply& reply) {
                    if (reply.error == Error::kNone) return List();
                    if (reply.error == Error::kNoNode)
                      return Finish(Busy{Busy::Why::kRemoved, "", ""});
                    OnUnexpected("check our own contender in", reply.error, "READ", ticket_->path);
                  }));
}

// ---- the end --------------------------------------------------------------------------------

void Acquire::Finish(AcquireOutcome outcome) {
  BeginStep(State::kDone);
  outcome_ = std::move(outcome);
}

void Acquire::FinishRefused(const std::string& operation, Error error, const char* right,
                            const std::string& path) {
  const LockName& lock = request_.lock;
  Finish(Refused{operation, lock.display_path(), error, right,
                 lock.DisplayPath(path.empty() ? lock.path : path)});
}

void Acquire::OnUnexpected(const std::string& operation, Error error, const char* right,
                           const std::string& path) {
  if (IsLost(error)) return;
  if (IsRefusal(error)) return FinishRefused(operation, error, right, path);
  if (error == Error::kQuotaExceeded) return FindQuota();
  Finish(Defect{Defect::What::kAnswer, request_.lock.display_path(), operation, error});
}

void Acquire::BeginStep(State state) {
  state_ = state;
  ++step_;
  search_.reset();
  leaves_full_ = false;
  confirm_again_ = kNever;
  const bool awaits_answer = state != State::kApart && state != State::kDone;
  answer_deadline_ = awaits_answer ? clock_.Now() + AnswerTime() : kNever;
}

std::string_view Acquire::own_name() const {
  return ticket_ ? protocol::BaseOf(ticket_->path) : std::string_view();
}

bool Acquire::IsOfOurUuid(std::string_view child) const {
  return child.find(uuid_) != std::string_view::npos;
}

std::string Acquire::ChildPath(std::string_view child) const {
  return request_.QueuePath().append("/").append(child);
}

protocol::Decision Acquire::Decide(const protocol::Children& children,
                                   const protocol::Contenders& contenders) const {
  if (IsSimple()) {
    if (children.Has(own_name())) return protocol::Hold{};
    return protocol::OwnMissing{};
  }
  return request_.permits ? protocol::DecidePermit(contenders, own_name(), *request_.permits)
                          : protocol::Decide(contenders, own_name());
}

}  // namespace zklock::lock
