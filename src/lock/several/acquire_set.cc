#include "lock/several/acquire_set.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lock/acquire/permit_number.h"
#include "protocol/queue.h"
#include "protocol/semaphore.h"

namespace zklock::lock {
namespace {

using zookeeper::Error;
using zookeeper::Watch;

/// How long a `try` stays in a turnstile. Contenders pass it without waiting while permits are
/// free.
constexpr Duration kTurnstileTime = std::chrono::seconds(5);

}  // namespace

AcquireSet::AcquireSet(zookeeper::Store& store, const Clock& clock,
                       std::vector<AcquireRequest> requests, std::function<std::string()> make_uuid,
                       AcquireEventSink publish, Take take)
    : store_(store),
      clock_(clock),
      requests_(std::move(requests)),
      make_uuid_(std::move(make_uuid)),
      publish_(std::move(publish)),
      take_(take),
      checking_free_(take_ == Take::kAll && requests_.size() > 1 && requests_.back().try_only) {
  Start(0);
}

AcquireSet::~AcquireSet() {
  acquire_.reset();
  store_.SetListener(nullptr);
}

bool AcquireSet::IsNearTurn() const {
  return !outcome_ && !checking_free_ && (!won_.empty() || acquire_->IsNearTurn());
}

bool AcquireSet::IsFarFromTurn() const {
  return !outcome_ && won_.empty() && acquire_->IsFarFromTurn();
}

std::vector<Ticket> AcquireSet::tickets() const {
  std::vector<Ticket> tickets;
  for (const Won& won : won_) {
    if (!requests_[won.request].is_for_turnstile()) tickets.push_back(won.ticket);
  }
  return tickets;
}

std::vector<std::string> AcquireSet::passed() const {
  std::vector<std::string> paths = left_;
  for (const Won& won : won_) {
    if (requests_[won.request].is_for_turnstile()) paths.push_back(won.ticket.path);
  }
  return paths;
}

void AcquireSet::Start(std::size_t index) {
  AcquireRequest request = requests_[index];
  for (const Won& won : won_) request.held.push_back(won.ticket.id());
  // Do not look again while we hold another LOCK, or while another one may be free.
  request.looks_again = request.try_only && requests_.size() == 1;
  request.may_leave = take_ == Take::kFirstFree;
  request.wait_end = wait_end_;
  current_ = index;
  acquire_.reset();
  acquire_ = std::make_unique<Acquire>(store_, clock_, std::move(request), make_uuid_, publish_);
  store_.SetListener(this);  // instead of the Acquire that was just created
}

EventSource::Interest AcquireSet::GetInterest() {
  if (outcome_) return {};
  // A reply from the store has set the outcome; nothing else will wake us.
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
  std::size_t next = current_ + 1;
  if (const auto* acquired = std::get_if<Acquired>(&outcome)) {
    won_.push_back({current_, acquired->ticket});
    if (take_ == Take::kFirstFree) return Finish(outcome);
  } else if (const auto* reserved = std::get_if<ReservedLock>(&outcome)) {
    reserved_.push_back(*reserved);
    // Acquire has deleted our contender, but the connection may have been lost first.
    if (const Ticket* const ticket = acquire_->contender()) Leave(*ticket);
    if (requests_[current_].is_for_turnstile()) {
      ++next;  // the permits are reserved for us: skip the request for them
    } else if (requests_[current_].permits) {
      Leave(won_.back().ticket);  // the turnstile
      won_.pop_back();
    }
  } else if (take_ == Take::kFirstFree && std::holds_alternative<Busy>(outcome)) {
    if (next < requests_.size()) return TryNext();
    return Finish(outcome);
  } else {
    return Finish(outcome);
  }
  wait_end_ = wait_end();
  if (next == requests_.size()) return Finish(outcome);
  Start(next);
}

void AcquireSet::TryNext() {
  if (const Ticket* const ticket = acquire_->contender()) Leave(*ticket);
  Start(current_ + 1);
}

void AcquireSet::Leave(const Ticket& ticket) {
  for (const std::string& path : ticket.paths()) {
    left_.push_back(path);
    store_.Delete(path, zookeeper::kAnyVersion, [](const auto&) {});
  }
}

void AcquireSet::Finish(AcquireOutcome outcome) { outcome_ = std::move(outcome); }

bool AcquireSet::IsBusy(std::size_t index, const protocol::Contenders& contenders) const {
  const AcquireRequest& request = requests_[index];
  // A reservation may have ended or may be ours: Acquire will find out.
  if (request.permits) {
    const bool has_reservation = std::any_of(contenders.begin(), contenders.end(),
                                             [](const auto& one) { return one.reserves(); });
    return contenders.size() + request.take > *request.permits && !has_reservation;
  }
  // Acquire also examines a child that may not be a contender at all.
  const auto* const blocker = protocol::FirstConflict(contenders, request.mode);
  return blocker != nullptr && !blocker->reserves() && blocker->mark != protocol::Mark::kNone;
}

/// Finishes as taken, or as unusable if a different number of permits is in use, since waiting
/// would not change that. `children`: the permits, all of which are taken.
void AcquireSet::LeaveSemaphore(std::size_t index, const protocol::Children& children) {
  const AcquireRequest& request = requests_[index];
  const auto holders = std::make_shared<std::size_t>(protocol::RunsOf(children).size());
  store_.List(protocol::TurnstilePath(request.lock.path), Watch::kNo,
              [holders](const zookeeper::ListReply& reply) {
                const bool is_empty =
                    reply.error == Error::kNoNode ||
                    (reply.error == Error::kNone && protocol::Contenders(reply.children).empty());
                if (!is_empty) --*holders;  // one permit may belong to the first contender there
              });
  store_.Get(request.QueuePath(), Watch::kNo,
             scope_.Wrap([this, index, children, holders](const zookeeper::GetReply& reply) {
               if (IsLost(reply.error) || outcome_) return;
               const std::size_t own_number = *requests_[index].permits;
               const auto other = FindOtherNumber(reply, *holders, own_number);
               other ? Finish(*other) : LeaveTaken(index, children);
             }));
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
  ExpectAnswer();  // each answer shows that the server still responds
  if (!search_->IsOver()) return;
  if (const auto held = search_->found()) return Finish(*held);
  Finish(Busy{Busy::Why::kTaken, "", ""});
}

void AcquireSet::ExpectAnswer() { answer_deadline_ = clock_.Now() + AnswerTime(store_.lease()); }

void AcquireSet::CheckAllFree() {
  current_ = 0;
  search_.reset();
  lists_pending_ = requests_.size();
  ExpectAnswer();
  // Sync first, as Acquire does: a script may have just released a lock, and this server may lag
  // behind.
  store_.Sync(requests_.front().QueuePath(), scope_.Wrap([](const zookeeper::Reply&) {}));
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    // A contender in a turnstile may already have its permit, and may leave between two lists. To
    // count the permits that such contenders leave for us, we need our own contender after them in
    // the turnstile.
    if (requests_[i].is_for_turnstile()) {
      --lists_pending_;
      continue;
    }
    store_.List(requests_[i].QueuePath(), Watch::kNo,
                scope_.Wrap([this, i](const zookeeper::ListReply& reply) {
                  if (IsLost(reply.error) || !checking_free_ || search_ || outcome_) return;
                  // Acquire reports all other errors.
                  if (reply.error == Error::kNone && IsBusy(i, reply.children)) {
                    return requests_[i].permits ? LeaveSemaphore(i, reply.children)
                                                : LeaveTaken(i, reply.children);
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
  for (const std::string& path : left_) {
    store_.Delete(path, zookeeper::kAnyVersion, [](const auto&) {});
  }
  acquire_->OnConnected(fresh);
}

void AcquireSet::OnDisconnected() {
  answer_deadline_ = kNever;
  if (!outcome_) acquire_->OnDisconnected();
}

void AcquireSet::OnExpired() {
  if (outcome_) return;
  if (!won_.empty()) {
    // All LOCKs share one session: those acquired so far are lost as well.
    std::vector<std::string> lost;
    for (const Won& won : won_) lost.push_back(requests_[won.request].lock.display_path());
    if (acquire_->contender() != nullptr) lost.push_back(lock().display_path());
    // A semaphore has two requests.
    lost.erase(std::unique(lost.begin(), lost.end()), lost.end());
    for (const std::string& path : lost) {
      publish_(PlaceLostEvent{.lock = path, .is_followed = &path != &lost.back()});
    }
    wait_end_ = wait_end();
    won_.clear();
    reserved_.clear();
    Start(0);
  }
  left_.clear();
  acquire_->OnExpired();
}

void AcquireSet::OnRefused(Error why) {
  if (!outcome_) acquire_->OnRefused(why);
}

void AcquireSet::OnWatch(const std::string& path, zookeeper::Change change) {
  if (!outcome_) acquire_->OnWatch(path, change);
}

std::vector<AcquireRequest> RequestsForPermit(AcquireRequest permit) {
  permit.below = std::string(protocol::kPermitsChild);
  permit.most_permits = *permit.permits;
  // A `try` also queues in the turnstile, if the contenders ahead of it leave enough permits for
  // it: they do not wait there either.
  AcquireRequest turnstile{
      .lock = permit.lock,
      .host = permit.host,
      .data = permit.data,
      .wait = permit.try_only ? std::optional<Duration>(kTurnstileTime) : permit.wait,
      .max_queue = permit.try_only ? std::nullopt : permit.max_queue,
      .below = std::string(protocol::kTurnstileChild),
      .take = permit.take,
      .passes = permit.try_only,
      .most_permits = permit.most_permits,
      .reserve = permit.reserve,
      .preempt = permit.preempt,
      .connect_timeout = permit.connect_timeout};
  return {std::move(turnstile), std::move(permit)};
}

}  // namespace zklock::lock
