#include "lock/hold.h"

#include <algorithm>
#include <utility>

#include "base/mutation.h"
#include "protocol/lease.h"

namespace zklock::lock {

using zookeeper::Error;

Hold::Hold(zookeeper::Store& store, const Clock& clock, std::vector<Ticket> tickets,
           Duration kill_after, HoldObserver& observer)
    : store_(store),
      clock_(clock),
      tickets_(std::move(tickets)),
      kill_after_(kill_after),
      observer_(observer) {
  store_.SetListener(this);
  TakeLease();
  next_heartbeat_ = clock_.Now() + protocol::HeartbeatPeriod(store_.lease().timeout());
  WatchTickets();
}

Hold::~Hold() { store_.SetListener(nullptr); }

EventSource::Interest Hold::GetInterest() {
  if (state_ == State::kLost) return {};
  return {.wake = std::min({lease_end_, next_heartbeat_, answer_deadline_})};
}

void Hold::OnReady(short /*revents*/) {
  if (state_ == State::kLost) return;
  const TimePoint now = clock_.Now();
  // The lease first, whatever else has become due: the process may just have been woken.
  if (now >= lease_end_) {
    Lose(Loss::kUnproven);
  } else if (now >= answer_deadline_) {
    answer_deadline_ = kNever;
    Suspect();
    store_.GiveUpServer();
  } else if (now >= next_heartbeat_) {
    SendHeartbeat();
  }
}

void Hold::SendHeartbeat() {
  const TimePoint now = clock_.Now();
  const Duration timeout = store_.lease().timeout();
  next_heartbeat_ = kNever;
  state_ = State::kAsking;
  answer_deadline_ = now + protocol::AnswerTimeout(timeout, stop_time_ - now);
  std::vector<std::string> paths;
  paths.reserve(tickets_.size());
  for (const Ticket& ticket : tickets_) paths.push_back(ticket.path);
  store_.Check(paths, scope_.Wrap([this](const zookeeper::Reply& reply) { OnHeartbeat(reply); }));
}

void Hold::OnHeartbeat(const zookeeper::Reply& reply) {
  if (state_ == State::kLost) return;
  switch (reply.error) {
    case Error::kNone:
      state_ = State::kProven;
      answer_deadline_ = kNever;
      // Each P counted from the sending, so that a slow answer does not stretch the period.
      next_heartbeat_ = reply.sent + protocol::HeartbeatPeriod(store_.lease().timeout());
      TakeLease();
      if (suspect_) {
        suspect_ = false;
        observer_.OnConfirmed();
      }
      return;
    case Error::kNoNode:
      return Lose(Loss::kRemoved);
    case Error::kConnectionLoss:
    case Error::kSessionExpired:
      return;  // the store tells which of the two
    default:
      // Refused, or nonsense: this server proves nothing. Another may; else the lease ends.
      answer_deadline_ = kNever;
      Suspect();
      store_.GiveUpServer();
  }
}

void Hold::WatchTickets() {
  // So that a contender deleted by force is noticed at once; the heartbeat decides what it means.
  for (const Ticket& ticket : tickets_) {
    store_.Get(ticket.path, zookeeper::Watch::kYes, scope_.Wrap([](const zookeeper::GetReply&) {}));
  }
}

void Hold::TakeLease() {
  const auto end = kMutationNoLease ? kNever : store_.lease().End();
  if (!end || *end <= lease_end_) return;
  lease_end_ = *end;
  stop_time_ = protocol::StopTimesFor(lease_end_, kill_after_, store_.lease().timeout()).stop;
  store_.SetHolding(stop_time_);
  observer_.OnLease(lease_end_);
}

void Hold::Suspect() {
  if (std::exchange(suspect_, true)) return;
  observer_.OnSuspect();
}

void Hold::Lose(Loss loss) {
  state_ = State::kLost;
  loss_ = loss;
}

void Hold::OnConnected(bool fresh) {
  if (state_ == State::kLost) return;
  // A store that begins a new session by itself would be a defect; the old one's znodes are gone.
  if (fresh) return Lose(Loss::kExpired);
  store_.Sync(tickets_.front().lock.path, scope_.Wrap([](const zookeeper::Reply&) {}));
  SendHeartbeat();
  WatchTickets();
}

void Hold::OnDisconnected() {
  if (state_ == State::kLost) return;
  state_ = State::kApart;
  answer_deadline_ = kNever;
  next_heartbeat_ = kNever;
  Suspect();
}

void Hold::OnExpired() {
  if (state_ != State::kLost) Lose(Loss::kExpired);
}

void Hold::OnWatch(const std::string& path) {
  // Watches of the waiting time may still come.
  const bool own = std::any_of(tickets_.begin(), tickets_.end(),
                               [&](const Ticket& ticket) { return ticket.path == path; });
  if (own && state_ == State::kProven) SendHeartbeat();
}

}  // namespace zklock::lock
