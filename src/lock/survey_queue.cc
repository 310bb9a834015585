#include "lock/survey_queue.h"

#include <algorithm>
#include <utility>

namespace zklock::lock {
namespace {

using zookeeper::Error;

// What zklock itself keeps beside a queue.
constexpr std::string_view kLastRun = "last-run";

std::string ChildOf(const std::string& path, const std::string& child) {
  return path == "/" ? "/" + child : path + "/" + child;
}

LockKind KindOf(const std::vector<QueueEntry>& entries) {
  using protocol::Mark;
  if (entries.front().name.full == protocol::kSimpleName) return LockKind::kSimple;
  const bool shared = std::any_of(entries.begin(), entries.end(), [](const QueueEntry& entry) {
    return entry.name.reads() || entry.name.mark == Mark::kCuratorWrite;
  });
  return shared ? LockKind::kReadWrite : LockKind::kMutex;
}

}  // namespace

SurveyQueue::SurveyQueue(LockSurvey lock, const std::string& path,
                         const std::vector<std::string>& children, std::size_t most)
    : lock_(std::move(lock)), most_(most) {
  const auto add = [&](protocol::ContenderName name) {
    std::string entry_path = ChildOf(path, name.full);
    entries_.push_back({.name = std::move(name), .path = std::move(entry_path)});
  };
  if (std::find(children.begin(), children.end(), protocol::kSimpleName) != children.end()) {
    add({.full = std::string(protocol::kSimpleName)});
  }
  for (protocol::ContenderName& name : protocol::Queue(children)) add(std::move(name));
  states_.resize(entries_.size());
  for (const std::string& child : children) {
    if (child == protocol::kSimpleName || protocol::ParseContenderName(child)) continue;
    lock_.ignored_children.push_back(child);
  }
  std::sort(lock_.ignored_children.begin(), lock_.ignored_children.end());
}

bool SurveyQueue::IsOut(std::size_t index) const {
  return states_[index] == State::kGone ||
         (states_[index] == State::kRead && !entries_[index].IsContender());
}

// ---- asking ---------------------------------------------------------------------------------

void SurveyQueue::Forget() {
  head_asked_ = head_known_;
  next_ = candidates_ = unknown_ = 0;
  for (State& state : states_) {
    if (state == State::kAsked) state = State::kUnasked;
  }
}

bool SurveyQueue::WantsHead() { return !std::exchange(head_asked_, true); }

void SurveyQueue::TakeHead(const zookeeper::GetReply* head, std::size_t most_data) {
  head_asked_ = head_known_ = true;
  if (head == nullptr) return;
  lock_.stat = head->stat;
  lock_.data = head->data.substr(0, most_data);
}

std::optional<std::size_t> SurveyQueue::NextToAsk() {
  while (next_ < entries_.size() && candidates_ < most_) {
    const std::size_t index = next_++;
    if (!IsOut(index)) ++candidates_;
    if (states_[index] == State::kUnasked) return index;
  }
  while (unknown_ < entries_.size()) {
    const std::size_t index = unknown_++;
    const bool is_unknown = entries_[index].name.mark == protocol::Mark::kNone;
    if (is_unknown && states_[index] == State::kUnasked) return index;
  }
  return std::nullopt;
}

bool SurveyQueue::Take(std::size_t index, const zookeeper::GetReply& reply, std::size_t most_data) {
  QueueEntry& entry = entries_[index];
  State& state = states_[index];
  state = State::kRead;
  switch (reply.error) {
    case Error::kNone:
      entry.readable = true;
      entry.stat = reply.stat;
      entry.data = reply.data.substr(0, most_data);
      break;
    case Error::kNoNode:
      state = State::kGone;
      break;
    case Error::kNoAuth:
    case Error::kAuthFailed:
    case Error::kAuthRequired:
      // Without a number it need not be anybody's.
      if (entry.name.full == protocol::kSimpleName) state = State::kGone;
      break;
    default:
      return false;
  }
  if (IsOut(index) && index < next_) --candidates_;
  return true;
}

// ---- telling --------------------------------------------------------------------------------

bool SurveyQueue::TellContenders(SurveySink& sink) {
  if (!head_known_) return false;
  for (; telling_ < entries_.size(); ++telling_) {
    const bool enough = told_.size() >= most_;
    switch (states_[telling_]) {
      case State::kAsked:
        return false;
      case State::kUnasked:
        if (!enough) return false;
        continue;
      case State::kGone:
        continue;
      case State::kRead:
        break;
    }
    if (!entries_[telling_].IsContender()) {
      others_.push_back(telling_);
    } else if (!enough) {
      if (!sink.WantsMore()) return false;
      Tell(telling_, sink);
    }
  }
  return true;
}

void SurveyQueue::Tell(std::size_t index, SurveySink& sink) {
  QueueEntry& entry = entries_[index];
  if (!announced_) TellLock(sink);
  if (const auto before = predecessors_.Next(entry.name)) {
    entry.waits_for = {*before + 1, entries_[told_[*before]].name.full};
  }
  told_.push_back(index);
  entry.position = told_.size();
  sink.OnEntry(entry);
  std::string().swap(entry.data);
}

void SurveyQueue::TellLock(SurveySink& sink) {
  announced_ = true;
  Count();
  lock_.kind = lock_.IsHeld() ? std::optional(KindOf(entries_)) : std::nullopt;
  sink.OnLock(lock_);
}

std::vector<std::string> SurveyQueue::Strays() const {
  std::vector<std::string> names;
  for (const std::size_t index : others_) names.push_back(entries_[index].name.full);
  std::sort(names.begin(), names.end());
  return names;
}

bool SurveyQueue::HasOthers() const {
  const auto& ignored = lock_.ignored_children;
  return !others_.empty() || std::any_of(ignored.begin(), ignored.end(),
                                         [](const std::string& name) { return name != kLastRun; });
}

void SurveyQueue::TellEnd(SurveySink& sink) {
  // A znode `lock` that stays looks like no contender at all.
  const auto simple = std::find_if(others_.begin(), others_.end(), [&](std::size_t index) {
    return entries_[index].name.full == protocol::kSimpleName;
  });
  if (simple != others_.end()) {
    auto& ignored = lock_.ignored_children;
    const std::string& name = entries_[*simple].name.full;
    ignored.insert(std::lower_bound(ignored.begin(), ignored.end(), name), name);
    others_.erase(simple);
  }
  if (!announced_) TellLock(sink);
  for (const std::size_t index : others_) sink.OnEntry(entries_[index]);
  Count();
  sink.OnLockEnd(lock_);
}

/// By what is known by now.
void SurveyQueue::Count() {
  protocol::Predecessors order;
  lock_.held = lock_.waiting = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (IsOut(i)) continue;
    ++(order.Next(entries_[i].name) ? lock_.waiting : lock_.held);
  }
}

}  // namespace zklock::lock
