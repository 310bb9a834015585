#include "lock/survey.h"

#include <algorithm>
#include <utility>

#include "protocol/queue.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using zookeeper::Error;
using zookeeper::Watch;
using Scope = SurveyRequest::Scope;

constexpr std::size_t kMostUnderWay = 64;
constexpr Duration kLeastPause = 100ms;
// Of a lock that has no queue; and beside one, what zklock itself keeps there.
constexpr std::string_view kSimpleLock = "lock";
constexpr std::string_view kLastRun = "last-run";

std::string ChildOf(const std::string& path, const std::string& child) {
  return path == "/" ? "/" + child : path + "/" + child;
}

/// Puts together what a sink is told.
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

std::optional<LockKind> KindOf(const std::vector<QueueEntry>& entries) {
  if (entries.empty()) return std::nullopt;
  using protocol::Mark;
  if (entries.front().name.full == kSimpleLock) return LockKind::kSimple;
  const bool shared = std::any_of(entries.begin(), entries.end(), [](const QueueEntry& entry) {
    return entry.name.reads() || entry.name.mark == Mark::kCuratorWrite;
  });
  return shared ? LockKind::kReadWrite : LockKind::kMutex;
}

}  // namespace

// ---- one LOCK -------------------------------------------------------------------------------

/// A LOCK from its list on: entries are sent for ahead of being told.
struct Survey::Reading {
  enum class State : unsigned char { kUnsent, kSent, kRead, kGone };

  LockSurvey lock;
  std::vector<QueueEntry> entries;
  std::vector<State> states;
  bool head_sent = false;
  bool head_read = false;
  std::size_t next = 0;        ///< to be sent for in turn
  std::size_t candidates = 0;  ///< sent for in turn, and contenders as far as known
  std::size_t unknown = 0;     ///< to be looked at out of turn
  std::size_t telling = 0;     ///< the next to be told
  std::size_t told = 0;
  bool announced = false;
  protocol::Predecessors predecessors;
  std::vector<std::size_t> contenders;  ///< their indices
  std::vector<std::size_t> others;

  [[nodiscard]] bool IsOut(std::size_t index) const {
    return states[index] == State::kGone ||
           (states[index] == State::kRead && !entries[index].IsContender());
  }

  /// The next entry to send for. The first `most` contenders are read, and beyond them who may be
  /// none by its name: the queue is counted by that.
  std::optional<std::size_t> NextToSend(std::size_t most) {
    while (next < entries.size() && candidates < most) {
      const std::size_t index = next++;
      if (!IsOut(index)) ++candidates;
      if (states[index] == State::kUnsent) return index;
    }
    while (unknown < entries.size()) {
      const std::size_t index = unknown++;
      const bool is_unknown = entries[index].name.mark == protocol::Mark::kNone;
      if (is_unknown && states[index] == State::kUnsent) return index;
    }
    return std::nullopt;
  }

  /// What was sent for and not answered has to be sent for again.
  void Forget() {
    head_sent = head_read;
    next = candidates = unknown = 0;
    for (State& state : states) {
      if (state == State::kSent) state = State::kUnsent;
    }
  }

  /// Counts by what is known by now.
  void Count() {
    protocol::Predecessors order;
    lock.held = lock.waiting = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (IsOut(i)) continue;
      ++(order.Next(entries[i].name) ? lock.waiting : lock.held);
    }
  }
};

Survey::Place::Place(std::string znode) : path(std::move(znode)) {}
Survey::Place::~Place() = default;

// ---- asking ---------------------------------------------------------------------------------

Survey::Survey(zookeeper::Store& store, const Clock& clock, SurveyRequest request, SurveySink* sink)
    : Errand(store, clock, request.connect_timeout),
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
  exists_ = true;
  stale_ = false;
  began_ = clock_.Now();
  again_at_ = kNever;
}

void Survey::Begin() {
  if (resting_) StartOver();
  for (Place& place : frontier_) {
    if (place.state == Place::State::kListing) place.state = Place::State::kToList;
    if (place.reading) place.reading->Forget();
  }
  // Who has just released or queued may have talked to a server that is ahead of ours. Its answer
  // is not waited for: replies keep the order.
  under_way_ = 1;
  store().Sync(request_.place.path, OnReply([this](const zookeeper::Reply&) {
                 --under_way_;
                 Pump();
               }));
  Pump();
}

void Survey::Pump() {
  // A sink that has become ready may say so while it is told.
  if (pumping_ || IsOver() || resting_) return;
  pumping_ = true;
  do {
    SendWindow();
  } while (!IsOver() && Tell());
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
      SendList(place);
      return true;
    case Place::State::kReading: {
      Reading& reading = *place->reading;
      if (!std::exchange(reading.head_sent, true)) {
        SendHead(place);
        return true;
      }
      const auto index = reading.NextToSend(most());
      if (index) SendEntry(place, *index);
      return index.has_value();
    }
    case Place::State::kListing:
    case Place::State::kDone:
      break;
  }
  return false;
}

void Survey::SendList(Frontier::iterator place) {
  const std::string& path = place->path;
  if (const auto* known = cache_.FindChildren(path)) return OnListed(place, *known);
  ++under_way_;
  store().List(path, request_.watch ? Watch::kYes : Watch::kNo,
               OnReply([this, place](const zookeeper::ListReply& reply) {
                 --under_way_;
                 if (request_.watch && reply.error == Error::kNone) cache_.Keep(place->path, reply);
                 OnListed(place, reply);
                 Pump();
               }));
}

void Survey::OnListed(Frontier::iterator place, const zookeeper::ListReply& reply) {
  const std::string shown = request_.place.Shown(place->path);
  switch (reply.error) {
    case Error::kNone:
      return TakeChildren(place, reply.children);
    case Error::kNoNode:
      place->state = Place::State::kDone;
      if (!IsPlace(*place)) return;
      exists_ = false;
      if (walks_) return;
      place->state = Place::State::kReading;
      place->reading = std::make_unique<Reading>();
      place->reading->lock = {.path = shown, .exists = false};
      place->reading->head_sent = place->reading->head_read = true;
      return;
    case Error::kNoAuth:
    case Error::kAuthFailed:
    case Error::kAuthRequired:
      if (IsPlace(*place)) return Fail(Refused{"list", shown, reply.error, "READ", shown});
      place->state = Place::State::kDone;
      result_.unlistable.push_back(shown);
      return;
    default:
      return Fail(
          Defect{"listing " + shown + ": " + std::string(zookeeper::ErrorText(reply.error))});
  }
}

void Survey::TakeChildren(Frontier::iterator place, const std::vector<std::string>& children) {
  auto reading = std::make_unique<Reading>();
  LockSurvey& lock = reading->lock;
  lock.path = request_.place.Shown(place->path);
  lock.in_tree = walks_;
  const auto add = [&](protocol::ContenderName name) {
    std::string path = ChildOf(place->path, name.full);
    reading->entries.push_back({.name = std::move(name), .path = std::move(path)});
  };
  const bool may_be_simple =
      std::find(children.begin(), children.end(), kSimpleLock) != children.end();
  if (may_be_simple) add({.full = std::string(kSimpleLock)});
  for (protocol::ContenderName& name : protocol::Queue(children)) add(std::move(name));
  reading->states.resize(reading->entries.size());
  for (const std::string& child : children) {
    if (child == kSimpleLock || protocol::ParseContenderName(child)) continue;
    lock.ignored_children.push_back(child);
  }
  std::sort(lock.ignored_children.begin(), lock.ignored_children.end());
  if (walks_) Walk(place, lock.ignored_children);
  // Of a large tree most znodes are no locks: they are not kept.
  if (walks_ && reading->entries.empty()) {
    place->state = Place::State::kDone;
    return;
  }
  place->state = Place::State::kReading;
  place->reading = std::move(reading);
}

void Survey::Walk(Frontier::iterator place, const std::vector<std::string>& children) {
  const auto behind = std::next(place);
  for (const std::string& child : children) {
    const std::string path = ChildOf(place->path, child);
    if (path != "/zookeeper") frontier_.emplace(behind, path);
  }
}

void Survey::SendHead(Frontier::iterator place) {
  const auto take = [this](Place& at, const zookeeper::GetReply& reply) {
    at.reading->head_read = true;
    if (reply.error != Error::kNone) return;  // what the LOCK's data would tell is not known
    at.reading->lock.stat = reply.stat;
    at.reading->lock.data = reply.data.substr(0, request_.most_data);
  };
  if (const auto* known = cache_.FindData(place->path)) return take(*place, *known);
  ++under_way_;
  store().Get(place->path, request_.watch ? Watch::kYes : Watch::kNo,
              OnReply([this, place, take](const zookeeper::GetReply& reply) {
                --under_way_;
                take(*place, reply);
                if (request_.watch && reply.error == Error::kNone) {
                  zookeeper::GetReply kept = reply;
                  kept.data.resize(std::min(kept.data.size(), request_.most_data));
                  cache_.Keep(place->path, std::move(kept));
                }
                Pump();
              }));
}

void Survey::SendEntry(Frontier::iterator place, std::size_t index) {
  const std::string& path = place->reading->entries[index].path;
  if (const auto* known = cache_.FindData(path)) return TakeEntry(*place, index, *known);
  place->reading->states[index] = Reading::State::kSent;
  ++under_way_;
  store().Get(path, request_.watch ? Watch::kYes : Watch::kNo,
              OnReply([this, place, index](const zookeeper::GetReply& reply) {
                --under_way_;
                TakeEntry(*place, index, reply);
                const QueueEntry& entry = place->reading->entries[index];
                if (request_.watch && entry.readable) {
                  zookeeper::GetReply kept;
                  kept.data = entry.data;
                  kept.stat = entry.stat;
                  cache_.Keep(entry.path, std::move(kept));
                }
                Pump();
              }));
}

void Survey::TakeEntry(Place& place, std::size_t index, const zookeeper::GetReply& reply) {
  Reading& reading = *place.reading;
  QueueEntry& entry = reading.entries[index];
  Reading::State& state = reading.states[index];
  state = Reading::State::kRead;
  switch (reply.error) {
    case Error::kNone:
      entry.readable = true;
      entry.stat = reply.stat;
      entry.data = reply.data.substr(0, request_.most_data);
      break;
    case Error::kNoNode:
      state = Reading::State::kGone;
      break;
    case Error::kNoAuth:
    case Error::kAuthFailed:
    case Error::kAuthRequired:
      // Without a number it need not be anybody's.
      if (entry.name.full == kSimpleLock) state = Reading::State::kGone;
      break;
    default:
      return Fail(Defect{"reading a contender in " + reading.lock.path + ": " +
                         std::string(zookeeper::ErrorText(reply.error))});
  }
  if (reading.IsOut(index) && index < reading.next) --reading.candidates;
}

// ---- telling --------------------------------------------------------------------------------

/// True when the frontier has changed, so that there may be more to send for.
bool Survey::Tell() {
  bool changed = false;
  while (!frontier_.empty() && sink_->WantsMore()) {
    Place& first = frontier_.front();
    if (first.state == Place::State::kReading) {
      if (!TellEntries(*first.reading)) break;
      Finish(frontier_.begin());
    } else if (first.state != Place::State::kDone) {
      break;
    }
    frontier_.pop_front();
    changed = true;
  }
  return changed;
}

/// True when there are no more.
bool Survey::TellEntries(Reading& reading) {
  if (!reading.head_read) return false;
  for (; reading.telling < reading.entries.size(); ++reading.telling) {
    const std::size_t index = reading.telling;
    const bool enough = reading.told >= most();
    switch (reading.states[index]) {
      case Reading::State::kSent:
        return false;
      case Reading::State::kUnsent:
        if (!enough) return false;
        continue;
      case Reading::State::kGone:
        continue;
      case Reading::State::kRead:
        break;
    }
    if (!reading.entries[index].IsContender()) {
      reading.others.push_back(index);
    } else if (!enough) {
      if (!sink_->WantsMore()) return false;
      TellContender(reading, index);
    }
  }
  return true;
}

void Survey::TellContender(Reading& reading, std::size_t index) {
  QueueEntry& entry = reading.entries[index];
  if (!reading.announced) TellLock(reading);
  if (const auto before = reading.predecessors.Next(entry.name)) {
    const QueueEntry& predecessor = reading.entries[reading.contenders[*before]];
    entry.waits_for = {*before + 1, predecessor.name.full};
  }
  reading.contenders.push_back(index);
  entry.position = reading.contenders.size();
  ++reading.told;
  sink_->OnEntry(entry);
  std::string().swap(entry.data);
}

void Survey::TellLock(Reading& reading) {
  reading.announced = true;
  reading.Count();
  reading.lock.kind = reading.lock.IsHeld() ? KindOf(reading.entries) : std::nullopt;
  sink_->OnLock(reading.lock);
}

/// The LOCK's end, or what there is below a place that turns out to be none.
void Survey::Finish(Frontier::iterator place) {
  Reading& reading = *place->reading;
  std::vector<std::string>& ignored = reading.lock.ignored_children;
  std::vector<std::string> to_walk;
  std::vector<std::size_t> others;
  for (const std::size_t index : reading.others) {
    const std::string& name = reading.entries[index].name.full;
    to_walk.push_back(name);
    if (name == kSimpleLock) {
      ignored.insert(std::lower_bound(ignored.begin(), ignored.end(), name), name);
    } else {
      others.push_back(index);
    }
  }
  const bool has_below =
      !others.empty() || std::any_of(ignored.begin(), ignored.end(),
                                     [](const std::string& name) { return name != kLastRun; });
  if (request_.scope == Scope::kGuess && !reading.announced && has_below) {
    to_walk.insert(to_walk.end(), ignored.begin(), ignored.end());
    std::sort(to_walk.begin(), to_walk.end());
    to_walk.erase(std::unique(to_walk.begin(), to_walk.end()), to_walk.end());
    walks_ = true;
    return Walk(place, to_walk);
  }
  if (walks_) Walk(place, to_walk);
  if (!reading.announced && walks_) return;
  if (!reading.announced) TellLock(reading);
  for (const std::size_t index : others) sink_->OnEntry(reading.entries[index]);
  reading.Count();
  sink_->OnLockEnd(reading.lock);
}

void Survey::Complete() {
  std::sort(result_.unlistable.begin(), result_.unlistable.end());
  resting_ = true;
  if (!request_.watch) Succeed();
  sink_->OnEnd();
  if (!request_.watch) return;
  if (exists_) return BeAtRest();
  WatchForCreation();
}

// ---- watching -------------------------------------------------------------------------------

void Survey::WatchForCreation() {
  store().Exists(request_.place.path, Watch::kYes, OnReply([this](const zookeeper::Reply& reply) {
                   if (!resting_) return;
                   if (reply.error == Error::kNone) stale_ = true;  // made meanwhile
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

void Survey::LookAgain(std::size_t most_contenders) {
  request_.most_contenders = most_contenders;
  stale_ = true;
  if (resting_) again_at_ = clock_.Now();
}

void Survey::OnWatch(const std::string& path) {
  cache_.Forget(path);
  stale_ = true;
  if (resting_ && again_at_ == kNever) again_at_ = began_ + kLeastPause;
}

void Survey::OnDisconnected() {
  Errand::OnDisconnected();
  cache_.Clear();
  stale_ = true;
}

EventSource::Interest Survey::GetInterest() {
  Interest interest = Errand::GetInterest();
  if (!IsOver() && resting_ && store().IsConnected()) {
    interest.wake = std::min(interest.wake, again_at_);
  }
  return interest;
}

void Survey::OnReady(short revents) {
  Errand::OnReady(revents);
  if (IsOver() || !resting_ || !store().IsConnected() || clock_.Now() < again_at_) return;
  Rouse();
  StartOver();
  Pump();
}

}  // namespace zklock::lock
