#include "lock/survey/survey.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "protocol/lock_path.h"
#include "protocol/run_records.h"
#include "protocol/semaphore.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using zookeeper::Error;
using zookeeper::Watch;
using Scope = SurveyRequest::Scope;

constexpr std::size_t kMostUnderWay = 64;
constexpr Duration kLeastPause = 100ms;

/// Collects what a survey reports.
class Collector final : public SurveySink {
 public:
  explicit Collector(SurveyResult& result) : result_(result) {}
  void OnLock(const LockSurvey& lock) override { result_.locks.push_back(lock); }
  void OnEntry(const QueueEntry& entry) override { result_.locks.back().entries.push_back(entry); }
  void OnLockEnd(const LockSurvey& lock) override {
    std::vector<QueueEntry> entries = std::move(result_.locks.back().entries);
    result_.locks.back() = lock;
    result_.locks.back().entries = std::move(entries);
  }

 private:
  SurveyResult& result_;
};

}  // namespace

/// Keeps the replies to watched reads until the watch fires: nothing is read again unless it has
/// changed.
class Survey::ReadCache {
 public:
  /// Returns null if the data must be read.
  [[nodiscard]] const zookeeper::GetReply* FindData(const std::string& path) const {
    return Find(data_, path);
  }
  [[nodiscard]] const zookeeper::ListReply* FindChildren(const std::string& path) const {
    return Find(children_, path);
  }
  void Keep(const std::string& path, zookeeper::GetReply reply) { data_[path] = std::move(reply); }
  void Keep(const std::string& path, zookeeper::ListReply reply) {
    children_[path] = std::move(reply);
  }

  /// Called when a watch on `path` has fired, whether on its data or on its children: both are read
  /// again.
  void Forget(const std::string& path) {
    data_.erase(path);
    children_.erase(path);
  }
  /// Called when the connection is lost, and with it all watches.
  void Clear() {
    data_.clear();
    children_.clear();
  }

 private:
  template <typename Reply>
  using Replies = std::unordered_map<std::string, Reply>;

  template <typename Reply>
  [[nodiscard]] static const Reply* Find(const Replies<Reply>& replies, const std::string& path) {
    const auto found = replies.find(path);
    return found == replies.end() ? nullptr : &found->second;
  }

  Replies<zookeeper::GetReply> data_;
  Replies<zookeeper::ListReply> children_;
};

// ---- reading --------------------------------------------------------------------------------

Survey::Survey(zookeeper::Store& store, const Clock& clock, SurveyRequest request, SurveySink* sink)
    : ServerOperation(store, clock, request.connect_timeout),
      request_(std::move(request)),
      collector_(sink == nullptr ? std::make_unique<Collector>(result_) : nullptr),
      sink_(sink == nullptr ? collector_.get() : sink),
      clock_(clock),
      cache_(std::make_unique<ReadCache>()) {
  Start();
}

Survey::~Survey() = default;

void Survey::StartOver() {
  result_ = {};
  frontier_.clear();
  frontier_.emplace_back(request_.place.path);
  idle_ = false;
  walks_ = request_.scope == Scope::kTree;
  stale_ = false;
  began_ = clock_.Now();
  again_at_ = kNever;
}

void Survey::Begin() {
  if (idle_) StartOver();
  for (Node& node : frontier_) {
    const bool is_listing =
        node.state == Node::State::kListing || node.state == Node::State::kReadingChildren;
    if (is_listing) node.state = Node::State::kToList;
    if (node.queue) node.queue->Forget();
  }
  // A contender may have just joined or released the lock through a server that is ahead of ours.
  // There is no need to wait for the reply: replies arrive in order.
  under_way_ = 1;
  store().Sync(request_.place.path, OnReply([this](const zookeeper::Reply&) {
                 --under_way_;
                 Pump();
               }));
  Pump();
}

void Survey::Pump() {
  // A sink may call Resume() from within a callback.
  if (pumping_ || IsOver() || idle_) return;
  pumping_ = true;
  do {
    SendWindow();
  } while (!IsOver() && Report());
  pumping_ = false;
  if (IsOver()) return;
  if (frontier_.empty()) {
    Complete();
  } else if (under_way_ == 0) {
    DisarmAnswerDeadline();  // until Resume()
  }
}

void Survey::SendWindow() {
  auto node = frontier_.begin();
  while (node != frontier_.end() && under_way_ < kMostUnderWay && !IsOver()) {
    if (!sink_->WantsMore()) return;
    if (!SendNext(node)) ++node;
  }
}

bool Survey::SendNext(Frontier::iterator node) {
  switch (node->state) {
    case Node::State::kToList:
      node->state = Node::State::kListing;
      AskForChildren(node->path,
                     [this, node](const zookeeper::ListReply& reply) { OnListed(node, reply); });
      return true;
    case Node::State::kReadingChildren:
      return SendChildren(node);
    case Node::State::kReading: {
      auto read = node->queue->NextRead();
      if (!read) return false;
      AskForData(
          read->path, read->most,
          [this, node, operation = read->operation,
           take = std::move(read->take)](const zookeeper::GetReply& reply) {
            if (take(reply)) return;
            Fail(Defect{Defect::What::kAnswer, node->queue->lock().path, operation, reply.error});
          });
      return true;
    }
    case Node::State::kListing:
    case Node::State::kDone:
      break;
  }
  return false;
}

void Survey::AskForChildren(const std::string& path, zookeeper::Done<zookeeper::ListReply> take) {
  if (const auto* known = cache_->FindChildren(path)) return take(*known);
  ++under_way_;
  store().List(path, request_.watch ? Watch::kYes : Watch::kNo,
               OnReply([this, path, take = std::move(take)](const zookeeper::ListReply& reply) {
                 --under_way_;
                 if (request_.watch && reply.error == Error::kNone) cache_->Keep(path, reply);
                 take(reply);
                 Pump();
               }));
}

void Survey::AskForData(const std::string& path, std::size_t most,
                        zookeeper::Done<zookeeper::GetReply> take) {
  if (const auto* known = cache_->FindData(path)) return take(*known);
  ++under_way_;
  store().Get(path, request_.watch ? Watch::kYes : Watch::kNo,
              OnReply([this, path, most, take = std::move(take)](const zookeeper::GetReply& reply) {
                --under_way_;
                if (request_.watch && reply.error == Error::kNone) {
                  zookeeper::GetReply kept;
                  kept.data = reply.data.substr(0, most);
                  kept.stat = reply.stat;
                  cache_->Keep(path, std::move(kept));
                }
                take(reply);
                Pump();
              }));
}

// ---- classifying a znode by its children: a LOCK, a semaphore, or the parent of LOCKs ----------

void Survey::OnListed(Frontier::iterator node, const zookeeper::ListReply& reply) {
  const std::string shown = request_.place.DisplayPath(node->path);
  switch (reply.error) {
    case Error::kNone:
      node->children = std::make_unique<LockChildren>(node->path, reply.children);
      if (node->children->IsComplete()) return OnChildren(node);
      node->state = Node::State::kReadingChildren;
      return;
    case Error::kNoNode:
      node->state = Node::State::kDone;
      if (!IsRoot(*node)) return;
      result_.exists = false;
      if (walks_) return;
      node->state = Node::State::kReading;
      node->queue = std::make_unique<SurveyQueue>(LockSurvey{.path = shown, .exists = false},
                                                  LockChildren(node->path, {}), QueueReads{});
      return;
    default:
      node->state = Node::State::kDone;
      OnNotListed(node->path, reply.error, IsRoot(*node));
  }
}

/// `is_wanted`: the survey cannot continue without this list.
void Survey::OnNotListed(const std::string& path, Error error, bool is_wanted) {
  const std::string shown = request_.place.DisplayPath(path);
  if (is_wanted || !zookeeper::IsRefusal(error)) {
    return Fail(FailureOf(error, "list", {path, request_.place.chroot}, "READ"));
  }
  result_.unlistable.push_back(shown);
}

/// Sends the next request; returns false if all have been sent.
bool Survey::SendChildren(Frontier::iterator node) {
  return node->children->SendNext(
      {.list = [this](const auto& path, auto done) { AskForChildren(path, std::move(done)); },
       .get = [this](const auto& path,
                     auto done) { AskForData(path, request_.most_data, std::move(done)); }},
      [this, node] { OnChildren(node); });
}

void Survey::OnChildren(Frontier::iterator node) {
  const std::unique_ptr<LockChildren> children = std::move(node->children);
  const Error permits = children->permits_error();
  if (permits != Error::kNone && permits != Error::kNoNode) {
    // In other scopes the walk will reach this znode and report it.
    if (request_.scope == Scope::kLock) {
      return OnNotListed(protocol::PermitsPath(node->path), permits, true);
    }
  }
  const Error turnstile = children->turnstile_error();
  if (children->semaphore() && turnstile != Error::kNone && turnstile != Error::kNoNode) {
    OnNotListed(protocol::TurnstilePath(node->path), turnstile, false);
  }
  LockSurvey lock{.path = request_.place.DisplayPath(node->path), .in_tree = walks_};
  TakeQueue(node, {std::move(lock),
                   *children,
                   {.most_data = request_.most_data,
                    .most_contenders = walks_ ? request_.most_in_tree : request_.most_contenders,
                    .with_last_run = request_.with_last_run,
                    .with_last_start = request_.with_last_start}});
}

void Survey::TakeQueue(Frontier::iterator node, SurveyQueue queue) {
  if (walks_) Walk(node, queue.lock().ignored_children);
  // Most znodes of a large tree are not LOCKs: do not keep them.
  if (walks_ && queue.IsEmpty() && !request_.with_free) {
    node->state = Node::State::kDone;
    return;
  }
  node->state = Node::State::kReading;
  node->queue = std::make_unique<SurveyQueue>(std::move(queue));
}

void Survey::Walk(Frontier::iterator node, const std::vector<std::string>& children) {
  const auto next = std::next(node);
  // A LOCK can have the name of a record only at the top.
  const bool has_records = node->path != "/";
  for (const std::string& child : children) {
    if (has_records && protocol::IsRecordChild(child)) continue;
    const std::string path = protocol::ChildPath(node->path, child);
    if (path != "/zookeeper") frontier_.emplace(next, path);
  }
}

// ---- reporting ------------------------------------------------------------------------------

/// Returns true if the frontier has changed, so that more requests may now be possible.
bool Survey::Report() {
  bool changed = false;
  while (!frontier_.empty() && sink_->WantsMore()) {
    Node& first = frontier_.front();
    if (first.state == Node::State::kReading) {
      if (!first.queue->ReportContenders(*sink_)) break;
      Finish(frontier_.begin());
    } else if (first.state != Node::State::kDone) {
      break;
    }
    frontier_.pop_front();
    changed = true;
  }
  return changed;
}

/// Reports the end of a LOCK, and walks below it if requested or if it turns out not to be one.
void Survey::Finish(Frontier::iterator node) {
  SurveyQueue& queue = *node->queue;
  std::vector<std::string> to_walk = queue.Strays();
  // If we already walk, TakeQueue() has queued the ignored children.
  const bool is_guess = request_.scope == Scope::kGuess && !walks_;
  const bool may_walk = !queue.is_announced() || request_.below_contenders;
  if (is_guess && may_walk && queue.HasOthers()) {
    const auto& ignored = queue.lock().ignored_children;
    to_walk.insert(to_walk.end(), ignored.begin(), ignored.end());
    std::sort(to_walk.begin(), to_walk.end());
    walks_ = true;
    if (!queue.is_announced()) queue.SetInTree();
  }
  if (walks_) Walk(node, to_walk);
  // A free LOCK of a tree is not reported, unless that was requested or nobody can acquire it.
  const bool is_wanted = queue.IsBlocked() || (request_.with_free && queue.IsLock());
  if (walks_ && !queue.is_announced() && !is_wanted) return;
  queue.ReportEnd(*sink_);
}

void Survey::Complete() {
  std::sort(result_.unlistable.begin(), result_.unlistable.end());
  idle_ = true;
  if (!request_.watch) Succeed();
  sink_->OnEnd();
  if (!request_.watch) return;
  if (result_.exists) return WaitForChange();
  WatchForCreation();
}

// ---- watching -------------------------------------------------------------------------------

void Survey::WatchForCreation() {
  store().Exists(request_.place.path, Watch::kYes, OnReply([this](const zookeeper::Reply& reply) {
                   if (!idle_) return;
                   if (reply.error == Error::kNone) stale_ = true;  // created since
                   WaitForChange();
                 }));
}

void Survey::WaitForChange() {
  DisarmAnswerDeadline();
  if (stale_) again_at_ = began_ + kLeastPause;
}

void Survey::Resume() {
  if (IsOver() || idle_ || !store().IsConnected()) return;
  ArmAnswerDeadline();
  Pump();
}

void Survey::Repeat(std::size_t most_contenders) {
  request_.most_contenders = most_contenders;
  stale_ = true;
  if (idle_) again_at_ = clock_.Now();
}

void Survey::OnWatch(const std::string& path, zookeeper::Change /*change*/) {
  cache_->Forget(path);
  stale_ = true;
  if (idle_ && again_at_ == kNever) again_at_ = began_ + kLeastPause;
}

void Survey::OnDisconnected() {
  ServerOperation::OnDisconnected();
  cache_->Clear();
  stale_ = true;
}

EventSource::Interest Survey::GetInterest() {
  Interest interest = ServerOperation::GetInterest();
  if (!IsOver() && idle_ && store().IsConnected()) {
    interest.wake = std::min(interest.wake, again_at_);
  }
  return interest;
}

void Survey::OnReady(short revents) {
  ServerOperation::OnReady(revents);
  if (IsOver() || !idle_ || !store().IsConnected() || clock_.Now() < again_at_) return;
  ArmAnswerDeadline();
  StartOver();
  Pump();
}

}  // namespace zklock::lock
