#include "lock/acquire.h"

#include <algorithm>
#include <utility>

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

std::size_t CountAhead(const std::vector<std::string>& children, const std::string& own_name) {
  const auto queue = protocol::Queue(children);
  const auto own = std::find_if(queue.begin(), queue.end(),
                                [&](const auto& contender) { return contender.full == own_name; });
  return static_cast<std::size_t>(own - queue.begin());
}

Unusable NobodysContender(const std::string& name) {
  return {"'" + name + "' in it is no contender (it does not end with a session)",
          "use another LOCK, or delete that znode"};
}

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

// ---- time and connection --------------------------------------------------------------------

EventSource::Interest Acquire::GetInterest() {
  if (state_ == State::kDone) return {};
  return {.wake = std::min(
              {ApartDeadline(), wait_deadline_, answer_deadline_, next_read_, confirm_again_})};
}

void Acquire::OnReady(short /*revents*/) {
  const TimePoint now = clock_.Now();
  if (state_ == State::kDone) return;
  if (now >= wait_deadline_) {
    Finish(Busy{Busy::Why::kWaitOver, predecessor_, predecessor_data_});
  } else if (now >= ApartDeadline()) {
    Finish(Unreachable{});
  } else if (now >= answer_deadline_) {
    answer_deadline_ = kNever;
    store_.GiveUpServer();
  } else if (now >= confirm_again_) {
    Confirm();
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
  const Duration granted = store_.lease().timeout();
  if (granted < protocol::kLeastSessionTimeout) {
    Finish(Unusable{"the servers grant a session time-out of less than 4 seconds",
                    "ask for more with --session-timeout, or raise the servers' "
                    "maxSessionTimeout"});
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
  next_read_ = kNever;
  BeginStep(State::kApart);
}

void Acquire::OnExpired() {
  if (state_ == State::kDone) return;
  if (!apart_since_) apart_since_ = clock_.Now();
  if (ticket_) observer_.OnPlaceLost();
  ticket_.reset();
  create_sent_ = false;
  uuid_ = make_uuid_();
  BeginStep(State::kApart);
  store_.Renew();
}

void Acquire::OnWatch(const std::string& path) {
  if (state_ == State::kDone) return;
  if (ticket_ && path == ticket_->path) {
    WatchOwn();  // gone, or only written to: the read tells, and watches on
  } else if (state_ == State::kWaiting) {
    List();
  }
}

// ---- deciding -------------------------------------------------------------------------------

void Acquire::List() {
  BeginStep(State::kDeciding);
  store_.List(request_.lock.path, Watch::kNo, InStep([this](const zookeeper::ListReply& reply) {
                // LOCK has gone: our contender before it. The heartbeat says so.
                if (reply.error == Error::kNoNode) return CheckOwn();
                if (reply.error != Error::kNone) return OnUnexpected("list", reply.error);
                Consider(reply.children, Proof::kNone);
              }));
}

void Acquire::Consider(const std::vector<std::string>& children, Proof proof) {
  apart_since_.reset();
  const auto go_on = [this, children, proof] { Consider(children, proof); };
  if (Judge(children, go_on) != Verdict::kFine) return;
  if (next_read_ == kNever) {
    next_read_ = clock_.Now() + protocol::WaiterReadPeriod(store_.lease().timeout());
  }
  const std::string own = own_name();
  for (const std::string& child : children) {
    // One of ours that is not our ticket: a create whose reply was lost after all. Our UUID, so
    // nobody else's; it must not stand in anybody's way.
    if (child != own && child.find(uuid_) != std::string::npos) {
      store_.Delete(ChildPath(child), scope_.Wrap([](const zookeeper::Reply&) {}));
    }
  }
  const protocol::Decision decision = protocol::Decide(children, own);
  if (std::holds_alternative<protocol::Hold>(decision)) {
    if (proof == Proof::kCreate) return OnConfirmed({});
    Confirm();
  } else if (const auto* wait = std::get_if<protocol::WaitFor>(&decision)) {
    observer_.OnWaiting(wait->predecessor, CountAhead(children, own));
    WatchPredecessor(wait->predecessor);
  } else if (std::holds_alternative<protocol::OwnMissing>(decision)) {
    if (++missing_ > kMostMissing) return Finish(Defect{"our contender is there but not listed"});
    CheckOwn();
  } else {
    Finish(Unusable{"its sequence numbers are used up",
                    "delete LOCK while nobody uses it, or use another"});
  }
}

Acquire::Verdict Acquire::Judge(const std::vector<std::string>& children,
                                std::function<void()> resume) {
  const auto stranger = protocol::FindStranger(children, ticket_ ? own_name() : "", request_.mode);
  if (stranger && !judged_) {
    Finish(Unusable{"'" + stranger->child + "' in it is " + stranger->reason, stranger->remedy});
    return Verdict::kFinished;
  }
  if (stranger && !stranger_told_) {
    // It came later than we did: it cannot be refused any more, only told of.
    stranger_told_ = true;
    observer_.OnStranger(*stranger);
  }
  const bool plain = std::find(children.begin(), children.end(), "lock") != children.end();
  if (plain && !plain_judged_) {
    plain_judged_ = true;
    store_.Get(ChildPath("lock"), Watch::kNo,
               InStep([this, resume = std::move(resume)](const zookeeper::GetReply& reply) {
                 if (reply.error == Error::kConnectionLoss) {
                   plain_judged_ = false;
                   return;
                 }
                 if (reply.error == Error::kNone && reply.stat.ephemeral_owner != 0) {
                   return Finish(
                       Unusable{"its child 'lock' is the lock of a program that uses one "
                                "znode and does not see ours",
                                "use another LOCK"});
                 }
                 resume();
               }));
    return Verdict::kPending;
  }
  judged_ = true;
  return Verdict::kFine;
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
      if (reply.stat.ephemeral_owner == 0) return Finish(NobodysContender(predecessor_));
      predecessor_data_ = reply.data.substr(0, kMostDataKept);
      break;
    case Error::kNoNode:
      return List();
    case Error::kNoAuth:
      predecessor_unreadable_ = true;
      break;
    default:
      return OnUnexpected("read a contender of", reply.error);
  }
  if (request_.try_only) return Finish(Busy{Busy::Why::kTaken, predecessor_, predecessor_data_});
  answer_deadline_ = kNever;
  if (predecessor_unreadable_) WatchChildren();
}

void Acquire::WatchChildren() {
  store_.List(request_.lock.path, Watch::kYes, InStep([this](const zookeeper::ListReply& reply) {
                if (reply.error == Error::kNoNode) return CheckOwn();
                if (reply.error != Error::kNone) return OnUnexpected("list", reply.error);
                answer_deadline_ = kNever;
                const auto decision = protocol::Decide(reply.children, own_name());
                if (decision != protocol::Decision(protocol::WaitFor{predecessor_})) {
                  Consider(reply.children, Proof::kNone);
                }
              }));
}

// ---- our own contender ----------------------------------------------------------------------

void Acquire::WatchOwn() {
  own_watched_ = true;
  store_.Get(ticket_->path, Watch::kYes, scope_.Wrap([this](const zookeeper::GetReply& reply) {
    if (state_ != State::kDone && reply.error == Error::kNoNode) {
      Finish(Busy{Busy::Why::kRemoved, "", ""});
    }
  }));
}

void Acquire::ReadOwn() {
  next_read_ = clock_.Now() + protocol::WaiterReadPeriod(store_.lease().timeout());
  if (!ticket_ || own_read_pending_) return;
  own_read_pending_ = true;
  answer_deadline_ = std::min(answer_deadline_, clock_.Now() + AnswerTime());
  store_.Get(ticket_->path, Watch::kNo, scope_.Wrap([this](const zookeeper::GetReply& reply) {
    own_read_pending_ = false;
    if (state_ == State::kDone || reply.error == Error::kConnectionLoss) return;
    if (reply.error == Error::kNoNode) return Finish(Busy{Busy::Why::kRemoved, "", ""});
    if (state_ == State::kWaiting) answer_deadline_ = kNever;
  }));
}

void Acquire::CheckOwn() {
  BeginStep(State::kDeciding);
  store_.Check({ticket_->path}, InStep([this](const zookeeper::Reply& reply) {
                 if (reply.error == Error::kNone) return List();
                 if (reply.error == Error::kNoNode)
                   return Finish(Busy{Busy::Why::kRemoved, "", ""});
                 OnUnexpected("check our own contender in", reply.error);
               }));
}

void Acquire::Confirm() {
  BeginStep(State::kConfirming);
  store_.Check({ticket_->path},
               InStep([this](const zookeeper::Reply& reply) { OnConfirmed(reply); }));
}

void Acquire::OnConfirmed(const zookeeper::Reply& reply) {
  if (reply.error == Error::kNoNode) return Finish(Busy{Busy::Why::kRemoved, "", ""});
  if (reply.error != Error::kNone) {
    return OnUnexpected("check our own contender in", reply.error);
  }
  const TimePoint now = clock_.Now();
  const Duration timeout = store_.lease().timeout();
  const auto lease_end = store_.lease().End();
  if (lease_end && *lease_end - now > timeout / 3) return Finish(Acquired{*ticket_});
  // Alive, but not proven for long enough to start anything (this process was stopped, say): an
  // answered read, a ping of leader and follower later than that, and once more.
  BeginStep(State::kConfirming);
  answer_deadline_ = kNever;
  ReadOwn();
  confirm_again_ = now + timeout / 4 + 1ms;
}

// ---- the end --------------------------------------------------------------------------------

void Acquire::Finish(AcquireOutcome outcome) {
  BeginStep(State::kDone);
  outcome_ = std::move(outcome);
}

void Acquire::FinishRefused(const std::string& operation, Error error) {
  Finish(Refused{operation, request_.lock.shown(), error});
}

void Acquire::OnUnexpected(const std::string& operation, Error error) {
  switch (error) {
    case Error::kConnectionLoss:
    case Error::kSessionExpired:
      return;
    case Error::kNoAuth:
    case Error::kAuthFailed:
    case Error::kInvalidAcl:
      return FinishRefused(operation, error);
    default:
      Finish(Defect{"cannot " + operation + " '" + request_.lock.shown() +
                    "': " + std::string(zookeeper::ErrorText(error))});
  }
}

void Acquire::BeginStep(State state) {
  state_ = state;
  ++step_;
  confirm_again_ = kNever;
  const bool awaits_answer = state != State::kApart && state != State::kDone;
  answer_deadline_ = awaits_answer ? clock_.Now() + AnswerTime() : kNever;
}

std::string Acquire::own_name() const {
  return ticket_ ? std::string(protocol::BaseOf(ticket_->path)) : "";
}

std::string Acquire::ChildPath(const std::string& child) const {
  return request_.lock.path + "/" + child;
}

}  // namespace zklock::lock
