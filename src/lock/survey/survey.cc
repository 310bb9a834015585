#include "lock/survey/survey.h"

#include <algorithm>
#include <utility>

#include "protocol/lock_path.h"
#include "protocol/run_records.h"

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

// ---- reading --------------------------------------------------------------------------------

Survey::Survey(zookeeper::Store& store, const Clock& clock, SurveyRequest request, SurveySink* sink)
    : ServerOperation(store, clock, request.connect_timeout),
      request_(std::move(request)),
      collector_(sink == nullptr ? std::make_unique<Collector>(result_) : nullptr),
      sink_(sink == nullptr ? collector_.get() : sink),
      clock_(clock) {
  Start();
}

Survey::~Survey() = default;

void Survey::StartOver() {
  result_ = {};
  frontier_.clear();
  frontier_.emplace_back(request_.place.path);
  resting_ = false;
  walks_ = request_.scope == Scope::kTree;
  stale_ = false;
  began_ = clock_.Now();
  again_at_ = kNever;
}

void Survey::Begin() {
  if (resting_) StartOver();
  for (Place& place : frontier_) {
    const bool is_listing =
        place.state == Place::State::kListing || place.state == Place::State::kReadingChildren;
    if (is_listing) place.state = Place::State::kToList;
    if (place.queue) place.queue->Forget();
  }
  // A contender may just have released or joined at a server that is ahead of ours. No need to wait
  // for the reply: replies arrive in order.
  under_way_ = 1;
  store().Sync(request_.place.path, OnReply([this](const zookeeper::Reply&) {
                 --under_way_;
                 Pump();
               }));
  Pump();
}

void Survey::Pump() {
  // A sink may call Resume() while it is called.
  if (pumping_ || IsOver() || resting_) return;
  pumping_ = true;
  do {
    SendWindow();
  } while (!IsOver() && Report());
  pumping_ = false;
  if (IsOver()) return;
  if (frontier_.empty()) {
    Complete();
  } else if (under_way_ == 0) {
    Rest();  // until Resume()
  }
}

void Survey::SendWindow() {
  auto place = frontier_.begin();
  while (place != frontier_.end() && under_way_ < kMostUnderWay && !IsOver()) {
    if (!sink_->WantsMore()) return;
    if (!SendNext(place)) ++place;
  }
}

bool Survey::SendNext(Frontier::iterator place) {
  switch (place->state) {
    case Place::State::kToList:
      place->state = Place::State::kListing;
      AskForChildren(place->path,
                     [this, place](const zookeeper::ListReply& reply) { OnListed(place, reply); });
      return true;
    case Place::State::kReadingChildren:
      return SendChildren(place);
    case Place::State::kReading: {
      const auto read = place->queue->NextRead();
      if (!read) return false;
      AskForData(read->path, read->most, [this, place, read](const zookeeper::GetReply& reply) {
        if (read->take(reply)) return;
        Fail(
            Defect{Defect::What::kAnswer, place->queue->lock().path, read->operation, reply.error});
      });
      return true;
    }
    case Place::State::kListing:
    case Place::State::kDone:
      break;
  }
  return false;
}

void Survey::AskForChildren(const std::string& path, zookeeper::Done<zookeeper::ListReply> take) {
  if (const auto* known = cache_.FindChildren(path)) return take(*known);
  ++under_way_;
  store().List(path, request_.watch ? Watch::kYes : Watch::kNo,
               OnReply([this, path, take = std::move(take)](const zookeeper::ListReply& reply) {
                 --under_way_;
                 if (request_.watch && reply.error == Error::kNone) cache_.Keep(path, reply);
                 take(reply);
                 Pump();
               }));
}

void Survey::AskForData(const std::string& path, std::size_t most,
                        zookeeper::Done<zookeeper::GetReply> take) {
  if (const auto* known = cache_.FindData(path)) return take(*known);
  ++under_way_;
  store().Get(path, request_.watch ? Watch::kYes : Watch::kNo,
              OnReply([this, path, most, take = std::move(take)](const zookeeper::GetReply& reply) {
                --under_way_;
                if (request_.watch && reply.error == Error::kNone) {
                  zookeeper::GetReply kept;
                  kept.data = reply.data.substr(0, most);
                  kept.stat = reply.stat;
                  cache_.Keep(path, std::move(kept));
                }
                take(reply);
                Pump();
              }));
}

// ---- reporting ------------------------------------------------------------------------------

/// True if the frontier has changed, so that more requests may be possible.
bool Survey::Report() {
  bool changed = false;
  while (!frontier_.empty() && sink_->WantsMore()) {
    Place& first = frontier_.front();
    if (first.state == Place::State::kReading) {
      if (!first.queue->ReportContenders(*sink_)) break;
      Finish(frontier_.begin());
    } else if (first.state != Place::State::kDone) {
      break;
    }
    frontier_.pop_front();
    changed = true;
  }
  return changed;
}

void Survey::Complete() {
  std::sort(result_.unlistable.begin(), result_.unlistable.end());
  resting_ = true;
  if (!request_.watch) Succeed();
  sink_->OnEnd();
  if (!request_.watch) return;
  if (result_.exists) return BeAtRest();
  WatchForCreation();
}

// ---- watching -------------------------------------------------------------------------------

void Survey::WatchForCreation() {
  store().Exists(request_.place.path, Watch::kYes, OnReply([this](const zookeeper::Reply& reply) {
                   if (!resting_) return;
                   if (reply.error == Error::kNone) stale_ = true;  // created meanwhile
                   BeAtRest();
                 }));
}

void Survey::BeAtRest() {
  Rest();
  if (stale_) again_at_ = began_ + kLeastPause;
}

void Survey::Resume() {
  if (IsOver() || resting_ || !store().IsConnected()) return;
  Rouse();
  Pump();
}

void Survey::Repeat(std::size_t most_contenders) {
  request_.most_contenders = most_contenders;
  stale_ = true;
  if (resting_) again_at_ = clock_.Now();
}

void Survey::OnWatch(const std::string& path, zookeeper::Change /*change*/) {
  cache_.Forget(path);
  stale_ = true;
  if (resting_ && again_at_ == kNever) again_at_ = began_ + kLeastPause;
}

void Survey::OnDisconnected() {
  ServerOperation::OnDisconnected();
  cache_.Clear();
  stale_ = true;
}

EventSource::Interest Survey::GetInterest() {
  Interest interest = ServerOperation::GetInterest();
  if (!IsOver() && resting_ && store().IsConnected()) {
    interest.wake = std::min(interest.wake, again_at_);
  }
  return interest;
}

void Survey::OnReady(short revents) {
  ServerOperation::OnReady(revents);
  if (IsOver() || !resting_ || !store().IsConnected() || clock_.Now() < again_at_) return;
  Rouse();
  StartOver();
  Pump();
}

}  // namespace zklock::lock
