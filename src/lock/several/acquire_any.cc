#include "lock/several/acquire_any.h"

#include <algorithm>
#include <utility>

#include "lock/data/reserved.h"
#include "protocol/lease.h"
#include "protocol/lock_path.h"

namespace zklock::lock {
namespace {

using zookeeper::CreateAllReply;
using zookeeper::Error;
using zookeeper::ListReply;
using zookeeper::Watch;

/// Returns the weight of a reason: if queues were left for different reasons, the one with the
/// largest weight is reported.
int Weight(Busy::Why why) {
  if (why == Busy::Why::kWaitOver) return 2;
  return why == Busy::Why::kQueueFull ? 1 : 0;
}

}  // namespace

bool AcquireAny::Queue::IsGranted() const {
  return acquire && acquire->outcome() && std::holds_alternative<Acquired>(*acquire->outcome());
}

AcquireAny::AcquireAny(zookeeper::Store& store, const Clock& clock,
                       std::vector<AcquireRequest> requests, std::function<std::string()> make_uuid,
                       AcquireEventSink publish)
    : store_(store),
      clock_(clock),
      requests_(std::move(requests)),
      make_uuid_(std::move(make_uuid)),
      publish_(std::move(publish)),
      uuid_(make_uuid_()),
      unserved_since_(clock.Now()) {
  for (const AcquireRequest& request : requests_) queues_.emplace_back(store_, request);
  store_.SetListener(this);
  if (store_.IsConnected()) OnConnected(true);
}

AcquireAny::~AcquireAny() {
  queues_.clear();
  store_.SetListener(nullptr);
}

// ---- the caller's queries --------------------------------------------------------------------

bool AcquireAny::IsNearTurn() const {
  if (outcome_) return false;
  if (!HasJoined()) return create_sent_ && store_.IsConnected();
  return std::any_of(queues_.begin(), queues_.end(), [](const Queue& queue) {
    return queue.acquire && queue.acquire->IsNearTurn();
  });
}

std::vector<Ticket> AcquireAny::tickets() const {
  const auto* const acquired = outcome_ ? std::get_if<Acquired>(&*outcome_) : nullptr;
  return acquired == nullptr ? std::vector<Ticket>() : std::vector<Ticket>{acquired->ticket};
}

std::vector<ReservedLock> AcquireAny::reserved() const {
  const auto* const found = outcome_ ? std::get_if<ReservedLock>(&*outcome_) : nullptr;
  return found == nullptr ? std::vector<ReservedLock>() : std::vector<ReservedLock>{*found};
}

bool AcquireAny::MayBeReserved() const {
  return std::any_of(queues_.begin(), queues_.end(), [](const Queue& queue) {
    return queue.is_left || (queue.acquire && queue.acquire->MayBeReserved());
  });
}

std::vector<std::string> AcquireAny::passed() const {
  std::vector<std::string> paths = left_;
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    const auto& acquire = queues_[i].acquire;
    if (i != decisive_ && acquire && acquire->contender() != nullptr) {
      paths.push_back(acquire->contender()->path);
    }
  }
  return paths;
}

TimePoint AcquireAny::wait_end() const {
  TimePoint end = wait_end_;
  for (const Queue& queue : queues_) {
    if (queue.acquire) end = std::min(end, queue.acquire->wait_deadline());
  }
  return end;
}

bool AcquireAny::GiveUp(const std::string& contender) {
  // Only the contender in the LOCK that was taken must be released; all others will be deleted
  // anyway.
  if (outcome_) return !tickets().empty() && tickets().front().path != contender;
  const std::vector<std::size_t> open = Open();
  if (open.size() < 2) return false;
  // Compare the queues rather than the contenders: the contender's session may have just expired.
  const auto asked = std::find_if(open.begin(), open.end(), [&](std::size_t index) {
    return requests_[index].QueuePath() == protocol::ParentOf(contender);
  });
  if (asked != open.end()) Leave(*asked, QueueLeftEvent::Why::kRequested);
  return true;
}

/// Returns the queues that we have not left.
std::vector<std::size_t> AcquireAny::Open() const {
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    if (!queues_[i].is_left) open.push_back(i);
  }
  return open;
}

bool AcquireAny::HasJoined() const {
  return std::any_of(queues_.begin(), queues_.end(),
                     [](const Queue& queue) { return queue.acquire != nullptr; });
}

bool AcquireAny::HaveAllDecided() const {
  return std::all_of(queues_.begin(), queues_.end(), [](const Queue& queue) {
    return !queue.acquire || queue.is_judged || queue.acquire->HasDecided();
  });
}

// ---- the create ------------------------------------------------------------------------------

std::string AcquireAny::Prefix(std::size_t index) const {
  return ContenderPrefix(requests_[index], uuid_);
}

void AcquireAny::ExpectAnswer() { answer_deadline_ = clock_.Now() + AnswerTime(store_.lease()); }

void AcquireAny::Create() {
  if (!std::exchange(create_sent_, true)) create_sent_at_ = clock_.Now();
  const std::vector<std::size_t> open = Open();
  std::vector<zookeeper::NewContender> contenders;
  for (const std::size_t index : open) {
    const AcquireRequest& request = requests_[index];
    publish_(JoiningEvent{request.lock, request.QueuePath()});
    contenders.push_back({request.QueuePath(), Prefix(index), request.data});
  }
  ExpectAnswer();
  store_.CreateAll(
      contenders, StampName(store_),
      scope_.Wrap([this, open](const CreateAllReply& reply) { OnCreated(open, reply); }));
}

void AcquireAny::OnCreated(const std::vector<std::size_t>& queues, const CreateAllReply& reply) {
  if (IsLost(reply.error)) return;  // OnDisconnected() follows
  answer_deadline_ = kNever;
  if (reply.error == Error::kNone) {
    if (!store_.IsConnected()) return;  // found again over the next connection
    unserved_since_.reset();
    for (std::size_t i = 0; i < queues.size(); ++i) {
      queues_[queues[i]].creation.OnUsed();
      Start(queues[i], {uuid_, create_sent_at_, reply.paths[i], reply.stat});
    }
    return;
  }
  create_sent_ = false;
  if (reply.error == Error::kNoNode) return CreateLocks(queues, reply.failed);
  const std::size_t failed = queues[reply.failed];
  if (reply.error == Error::kQuotaExceeded) return FinishQuota(failed);
  if (const auto why = CannotOwnContenders(reply.error)) return Finish(failed, Unusable{*why});
  const AcquireRequest& request = requests_[failed];
  Finish(failed, UnexpectedEnd(reply.error, "queue in", request.lock,
                               reply.may_not_delete ? "DELETE" : "CREATE", request.QueuePath()));
}

/// Creates the LOCK of `queues[first]`, which does not exist, and those of later queues, which may
/// not exist either.
void AcquireAny::CreateLocks(const std::vector<std::size_t>& queues, std::size_t first) {
  for (std::size_t i = first; i < queues.size(); ++i) {
    LockCreation& creation = queues_[queues[i]].creation;
    const auto failure = creation.failure();
    if (failure && std::holds_alternative<QuotaExceeded>(*failure)) return FinishQuota(queues[i]);
    if (failure) return Finish(queues[i], *failure);
    creation.Send();
  }
  Create();
}

/// Looks for our contenders over a new connection, after the reply to the create was lost: the
/// create made all of them or none. If only some are missing, they have been deleted since.
void AcquireAny::FindLostCreate() {
  const std::vector<std::size_t> open = Open();
  ExpectAnswer();
  store_.Sync(requests_[open.front()].QueuePath(), [](const zookeeper::Reply&) {});
  lists_pending_ = open.size();
  const auto are_there = std::make_shared<bool>(false);
  for (const std::size_t index : open) {
    const AcquireRequest& request = requests_[index];
    store_.List(request.QueuePath(), Watch::kNo,
                scope_.Wrap([this, index, open, are_there](const ListReply& reply) {
                  if (IsLost(reply.error) || outcome_) return;
                  if (reply.error != Error::kNone && reply.error != Error::kNoNode) {
                    const AcquireRequest& listed = requests_[index];
                    return Finish(index, UnexpectedEnd(reply.error, "list", listed.lock, "READ",
                                                       listed.QueuePath()));
                  }
                  for (const std::string_view child : reply.children) {
                    if (child.find(uuid_) != std::string_view::npos) *are_there = true;
                  }
                  if (--lists_pending_ > 0 || !store_.IsConnected()) return;
                  // Keep the UUID: if the lost create succeeds after all, its contenders are
                  // deleted as strays (OwnContender).
                  if (!*are_there) return Create();
                  answer_deadline_ = kNever;
                  unserved_since_.reset();
                  for (const std::size_t one : open) Start(one, {uuid_, create_sent_at_});
                }));
  }
}

void AcquireAny::Start(std::size_t index, GivenContender contender) {
  wait_end_ = wait_end();
  AcquireRequest request = requests_[index];
  request.wait_end = wait_end_;
  request.given = std::move(contender);
  queues_[index].acquire.reset();
  queues_[index].grant_is_old = false;
  queues_[index].acquire =
      std::make_unique<Acquire>(store_, clock_, std::move(request), make_uuid_, publish_);
  store_.SetListener(this);  // instead of the Acquire that was just created
}

// ---- the wait --------------------------------------------------------------------------------

EventSource::Interest AcquireAny::GetInterest() {
  if (outcome_) return {};
  TimePoint wake = std::min(answer_deadline_, UnreachableAt());
  const bool may_take = MayTake();
  for (const Queue& queue : queues_) {
    if (!queue.acquire) continue;
    const bool is_old = queue.IsGranted() && queue.grant_is_old;
    const bool is_over = queue.acquire->outcome() && (may_take || !is_old);
    wake = std::min(wake, is_over ? clock_.Now() : queue.acquire->GetInterest().wake);
  }
  return {.wake = wake};
}

void AcquireAny::OnReady(short revents) {
  if (outcome_) return;
  for (const Queue& queue : queues_) {
    if (queue.acquire && !queue.acquire->outcome()) queue.acquire->OnReady(revents);
  }
  Advance();
  const TimePoint now = clock_.Now();
  if (outcome_) return;
  if (now >= UnreachableAt()) return Finish(0, Unreachable{});
  if (now < answer_deadline_) return;
  answer_deadline_ = kNever;
  store_.GiveUpServer();
}

/// Takes a LOCK that was granted, leaves the queues in which the wait is over, or finishes.
void AcquireAny::Advance() {
  for (const std::size_t index : Open()) {
    const Queue& queue = queues_[index];
    if (!queue.acquire || !queue.acquire->outcome() || queue.IsGranted()) continue;
    const AcquireOutcome outcome = *queue.acquire->outcome();
    const auto* const busy = std::get_if<Busy>(&outcome);
    if (busy == nullptr) return Finish(index, outcome);
    if (!ended_ || Weight(busy->why) > Weight(ended_->busy.why)) ended_ = Ended{index, *busy};
    Leave(index, WhyLeft(busy->why));
  }
  const std::vector<std::size_t> open = Open();
  if (open.empty()) return Finish(ended_->index, ended_->busy);
  const auto granted = std::find_if(open.begin(), open.end(),
                                    [this](std::size_t one) { return queues_[one].IsGranted(); });
  if (granted == open.end()) return;
  if (!MayTake()) {
    for (const std::size_t index : open) queues_[index].grant_is_old = queues_[index].IsGranted();
    return;
  }
  if (YieldToRival(*granted)) return;
  // A grant that has to wait is not watched, and its lease becomes too short to start a command:
  // prove it again.
  const bool is_proven = proven_again_ && queues_[*proven_again_].IsGranted();
  const std::size_t taken = is_proven ? *proven_again_ : *granted;
  const bool suffices = store_.lease().SufficesToStart(clock_.Now());
  if (queues_[taken].grant_is_old || !suffices) {
    proven_again_ = taken;
    return ProveAgain(taken);
  }
  Finish(taken, *queues_[taken].acquire->outcome());
}

void AcquireAny::ProveAgain(std::size_t index) {
  queues_[index].is_judged = true;
  const Ticket known = *queues_[index].acquire->contender();
  Start(index, {.uuid = uuid_, .sent = create_sent_at_, .known = known});
}

/// Returns whether a LOCK that was granted can be taken now.
bool AcquireAny::MayTake() const {
  return store_.IsConnected() && HaveAllDecided() && !IsProvingAgain();
}

/// With --reserve: an earlier run with our ID that waits in another queue may reserve the LOCK of
/// that queue. We must hold no LOCK while we wait for that run: we could deadlock with a run that
/// needs both LOCKs. Returns true if there is such an earlier run, or if that is not known yet.
bool AcquireAny::YieldToRival(std::size_t granted) {
  std::vector<std::size_t> rivals = Open();
  std::erase_if(rivals, [&](std::size_t index) {
    const auto& acquire = queues_[index].acquire;
    return !acquire || !acquire->HasRivalFor(requests_[granted].lock.path);
  });
  if (rivals.empty()) return false;
  if (std::exchange(listed_for_, granted) == granted) {
    Leave(granted, QueueLeftEvent::Why::kRival);
    return true;
  }
  // The earlier run may have been in this queue too, until it reserved a LOCK a moment ago.
  for (const std::size_t index : rivals) {
    const Ticket known = *queues_[index].acquire->contender();
    queues_[index].is_judged = false;
    Start(index, {.uuid = uuid_, .sent = create_sent_at_, .known = known});
  }
  return true;
}

bool AcquireAny::IsProvingAgain() const {
  if (!proven_again_) return false;
  const auto& acquire = queues_[*proven_again_].acquire;
  return acquire && !acquire->outcome() && !acquire->IsWaiting();
}

/// Returns when to stop looking for servers; kNever while one serves us or an Acquire looks for
/// them.
TimePoint AcquireAny::UnreachableAt() const {
  const bool is_one_at_work = std::any_of(queues_.begin(), queues_.end(), [](const Queue& queue) {
    return queue.acquire && !queue.acquire->outcome();
  });
  if (!unserved_since_ || is_one_at_work) return kNever;
  const Duration connect_timeout = requests_.front().connect_timeout;
  const Duration patience =
      HasJoined() ? std::max(connect_timeout, store_.lease().timeout()) : connect_timeout;
  return After(*unserved_since_, patience);
}

void AcquireAny::Leave(std::size_t index, std::optional<QueueLeftEvent::Why> why) {
  Queue& queue = queues_[index];
  queue.is_left = true;
  wait_end_ = wait_end();
  std::string contender;
  if (queue.acquire && queue.acquire->contender() != nullptr) {
    contender = queue.acquire->contender()->path;
    left_.push_back(contender);
  }
  queue.acquire.reset();
  store_.SetListener(this);
  DeleteLeft();
  std::vector<std::string> open;
  for (const std::size_t one : Open()) open.push_back(requests_[one].lock.display_path());
  if (!why || open.empty()) return;  // the outcome reports the last one
  publish_(QueueLeftEvent{requests_[index].lock.display_path(), contender, *why, open});
}

void AcquireAny::DeleteLeft() {
  for (const std::string& path : left_) {
    store_.Delete(path, zookeeper::kAnyVersion,
                  scope_.Wrap([this, path](const zookeeper::Reply& reply) {
                    // After a lost reply, it is deleted again over the next connection.
                    if (reply.error == Error::kNone || reply.error == Error::kNoNode) {
                      std::erase(left_, path);
                    }
                  }));
  }
}

void AcquireAny::Finish(std::size_t index, AcquireOutcome outcome) {
  decisive_ = index;
  answer_deadline_ = kNever;
  outcome_ = std::move(outcome);
}

void AcquireAny::FinishQuota(std::size_t index) {
  ExpectAnswer();
  FindQuota(store_, requests_[index],
            scope_.Wrap([this, index](const QuotaExceeded& quota) { Finish(index, quota); }));
}

// ---- the session -----------------------------------------------------------------------------

void AcquireAny::OnConnected(bool fresh) {
  if (outcome_) return;
  publish_(SessionAcceptedEvent{});
  DeleteLeft();
  if (!HasJoined()) {
    if (store_.lease().timeout() < protocol::kLeastSessionTimeout) {
      return Finish(0, Unusable{Unusable::Why::kShortSessions});
    }
    return create_sent_ ? FindLostCreate() : Create();
  }
  unserved_since_.reset();
  for (const std::size_t index : Open()) {
    // A LOCK that was granted before all the others were checked must be proven again.
    if (queues_[index].IsGranted()) {
      ProveAgain(index);
    } else if (queues_[index].acquire) {
      queues_[index].acquire->OnConnected(fresh);
    }
  }
}

void AcquireAny::OnDisconnected() {
  if (outcome_) return;
  scope_ = CallbackScope();
  answer_deadline_ = kNever;
  if (!unserved_since_) unserved_since_ = clock_.Now();
  for (const Queue& queue : queues_) {
    if (queue.acquire && !queue.acquire->outcome()) queue.acquire->OnDisconnected();
  }
}

void AcquireAny::OnExpired() {
  // Expiry requires another connection, and thus another turn of the event loop: by then, the
  // caller has taken any outcome.
  if (outcome_) return;
  // The servers have answered: restart the time limit for finding them.
  if (HasJoined() || !unserved_since_) unserved_since_ = clock_.Now();
  wait_end_ = wait_end();
  for (const std::size_t index : Open()) {
    Queue& queue = queues_[index];
    const bool has_place = queue.acquire && queue.acquire->contender() != nullptr;
    queue.acquire.reset();
    queue.is_judged = false;
    if (has_place) publish_(PlaceLostEvent{requests_[index].lock.display_path()});
  }
  store_.SetListener(this);
  left_.clear();
  proven_again_.reset();
  listed_for_.reset();
  uuid_ = make_uuid_();
  create_sent_ = false;
  store_.Renew();
}

void AcquireAny::OnRefused(Error why) {
  if (!outcome_) Finish(0, UnexpectedEnd(why, "queue in", requests_.front().lock, ""));
}

void AcquireAny::OnWatch(const std::string& path, zookeeper::Change change) {
  if (outcome_) return;
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    const std::string queue = requests_[i].QueuePath();
    const bool is_here = path == queue || protocol::ParentOf(path) == queue;
    if (is_here && queues_[i].acquire) queues_[i].acquire->OnWatch(path, change);
  }
}

}  // namespace zklock::lock
