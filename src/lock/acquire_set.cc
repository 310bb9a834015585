#include "lock/acquire_set.h"

#include <algorithm>
#include <utility>

#include "protocol/queue.h"
#include "protocol/semaphore.h"

namespace zklock::lock {

using zookeeper::Error;
using zookeeper::Watch;

AcquireSet::AcquireSet(zookeeper::Store& store, const Clock& clock,
                       std::vector<AcquireRequest> requests, std::function<std::string()> make_uuid,
                       AcquireObserver& observer)
    : store_(store),
      clock_(clock),
      requests_(std::move(requests)),
      make_uuid_(std::move(make_uuid)),
      observer_(observer),
      checking_free_(requests_.size() > 1 && requests_.back().try_only) {
  Start(0);
}

AcquireSet::~AcquireSet() {
  acquire_.reset();
  store_.SetListener(nullptr);
}

bool AcquireSet::IsAboutToHold() const {
  return !outcome_ && !checking_free_ && current_ + 1 == requests_.size() &&
         acquire_->IsAboutToHold();
}

std::vector<Ticket> AcquireSet::tickets() const {
  std::vector<Ticket> tickets;
  for (std::size_t i = 0; i < tickets_.size(); ++i) {
    if (requests_[i].below != protocol::kTurnstileChild) tickets.push_back(tickets_[i]);
  }
  return tickets;
}

std::vector<std::string> AcquireSet::passed() const {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < tickets_.size(); ++i) {
    if (requests_[i].below == protocol::kTurnstileChild) paths.push_back(tickets_[i].path);
  }
  return paths;
}

void AcquireSet::Start(std::size_t index) {
  AcquireRequest request = requests_[index];
  for (const Ticket& ticket : tickets_) request.held.push_back(ticket.id());
  if (wait_end_ != kNever) request.wait = std::max(wait_end_ - clock_.Now(), Duration::zero());
  current_ = index;
  acquire_.reset();
  acquire_ = std::make_unique<Acquire>(store_, clock_, std::move(request), make_uuid_, observer_);
  store_.SetListener(this);  // instead of the Acquire that was just created
}

EventSource::Interest AcquireSet::GetInterest() {
  if (outcome_) return {};
  // A reply of the store has set the outcome; nothing else will wake us.
  if (acquire_->outcome()) return {.wake = clock_.Now()};
  Interest interest = acquire_->GetInterest();
  interest.wake = std::min(interest.wake, answer_deadline_);
  return interest;
}

void AcquireSet::OnReady(short revents) {
  if (outcome_) return;
  if (!acquire_->outcome()) acquire_->OnReady(revents);
  Advance();
  if (outcome_ || clock_.Now() < answer_deadline_) return;
  answer_deadline_ = kNever;
  store_.GiveUpServer();
}

void AcquireSet::Advance() {
  if (!acquire_->outcome()) return;
  const AcquireOutcome outcome = *acquire_->outcome();
  const auto* acquired = std::get_if<Acquired>(&outcome);
  if (acquired == nullptr) return Finish(outcome);
  tickets_.push_back(acquired->ticket);
  wait_end_ = std::min(wait_end_, acquire_->wait_deadline());
  if (tickets_.size() == requests_.size()) return Finish(outcome);
  Start(current_ + 1);
}

void AcquireSet::Finish(AcquireOutcome outcome) { outcome_ = std::move(outcome); }

bool AcquireSet::IsBusy(std::size_t index, const protocol::Contenders& contenders) const {
  const AcquireRequest& request = requests_[index];
  if (request.permits) return contenders.size() >= *request.permits;
  return protocol::IsBusy(contenders, request.mode);
}

void AcquireSet::LeaveTaken(std::size_t index, const protocol::Children& children) {
  current_ = index;
  const AcquireRequest& request = requests_[index];
  if (!request.holds_for_us) return Finish(Busy{Busy::Why::kTaken, "", ""});
  search_.emplace(store_, request.QueuePath(), children, request.host, request.holds_for_us,
                  [this] { OnSearchProgress(); });
  search_->Begin("");
  OnSearchProgress();
}

void AcquireSet::OnSearchProgress() {
  if (outcome_) return;
  ExpectAnswer();  // each answer shows that the server still answers
  if (!search_->IsOver()) return;
  if (const auto held = search_->found()) return Finish(*held);
  Finish(Busy{Busy::Why::kTaken, "", ""});
}

void AcquireSet::ExpectAnswer() { answer_deadline_ = clock_.Now() + acquire_->AnswerTime(); }

void AcquireSet::CheckAllFree() {
  current_ = 0;
  search_.reset();
  lists_pending_ = requests_.size();
  ExpectAnswer();
  // As Acquire does: a script that has just released a lock may ask a server that lags behind.
  store_.Sync(requests_.front().QueuePath(), scope_.Wrap([](const zookeeper::Reply&) {}));
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    // A contender in a turnstile may have its permit already, and may leave between two lists. Only
    // our own contender, after them in the turnstile, can count the permits that they leave.
    if (requests_[i].below == protocol::kTurnstileChild) {
      --lists_pending_;
      continue;
    }
    store_.List(requests_[i].QueuePath(), Watch::kNo,
                scope_.Wrap([this, i](const zookeeper::ListReply& reply) {
                  if (IsLost(reply.error) || !checking_free_ || search_ || outcome_) return;
                  // Acquire reports all other errors.
                  if (reply.error == Error::kNone && IsBusy(i, reply.children)) {
                    return LeaveTaken(i, reply.children);
                  }
                  if (--lists_pending_ > 0) return;
                  checking_free_ = false;
                  answer_deadline_ = kNever;
                  acquire_->OnConnected(true);
                }));
  }
}

void AcquireSet::OnConnected(bool fresh) {
  if (outcome_) return;
  if (checking_free_) return CheckAllFree();
  acquire_->OnConnected(fresh);
}

void AcquireSet::OnDisconnected() {
  answer_deadline_ = kNever;
  if (!outcome_) acquire_->OnDisconnected();
}

void AcquireSet::OnExpired() {
  if (outcome_) return;
  if (!tickets_.empty()) {
    // One session: the LOCKs acquired so far are lost as well.
    observer_.OnPlaceLost(requests_.front().lock);
    wait_end_ = std::min(wait_end_, acquire_->wait_deadline());
    tickets_.clear();
    Start(0);
  }
  acquire_->OnExpired();
}

void AcquireSet::OnRefused(Error why) {
  if (!outcome_) acquire_->OnRefused(why);
}

void AcquireSet::OnWatch(const std::string& path, zookeeper::Change change) {
  if (!outcome_) acquire_->OnWatch(path, change);
}

}  // namespace zklock::lock
