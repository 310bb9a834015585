#include "lock/survey.h"

#include <algorithm>
#include <utility>

#include "protocol/queue.h"

namespace zklock::lock {
namespace {

using zookeeper::Error;
using zookeeper::Watch;

constexpr std::size_t kMostUnderWay = 64;

std::string ChildOf(const std::string& path, const std::string& child) {
  return path == "/" ? "/" + child : path + "/" + child;
}

/// As the user knows it: the chroot's own znode is their root.
std::string Shown(const LockName& place, const std::string& path) {
  const std::string shown = place.Shown(path);
  return shown.empty() ? "/" : shown;
}

/// The rule of the queue over those that are contenders; the others neither wait nor are waited
/// for.
std::vector<std::optional<std::size_t>> WaitsFor(const std::vector<QueueEntry>& entries) {
  std::vector<protocol::ContenderName> queue;
  std::vector<std::size_t> index;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].IsContender()) continue;
    queue.push_back(entries[i].name);
    index.push_back(i);
  }
  std::vector<std::optional<std::size_t>> waits_for(entries.size());
  const auto in_queue = protocol::WaitsFor(queue);
  for (std::size_t i = 0; i < in_queue.size(); ++i) {
    if (in_queue[i]) waits_for[index[i]] = index[*in_queue[i]];
  }
  return waits_for;
}

}  // namespace

bool LockSurvey::IsHeld() const {
  return std::any_of(entries.begin(), entries.end(),
                     [](const QueueEntry& entry) { return entry.IsContender(); });
}

Survey::Survey(zookeeper::Store& store, const Clock& clock, SurveyRequest request)
    : Errand(store, clock, request.connect_timeout), request_(std::move(request)) {
  Start();
}

void Survey::Begin() {
  result_ = {};
  found_.clear();
  to_read_.clear();
  to_list_ = {request_.place.path};
  under_way_ = 0;
  // Who has just released or queued may have talked to a server that is ahead of ours. Its answer
  // is not waited for: replies keep the order.
  store().Sync(request_.place.path, OnReply([](const zookeeper::Reply&) {}));
  Pump();
}

void Survey::Pump() {
  while (under_way_ < kMostUnderWay && !(to_read_.empty() && to_list_.empty())) {
    ++under_way_;
    if (!to_read_.empty()) {
      const Read read = to_read_.front();
      to_read_.pop_front();
      SendRead(read);
    } else {
      const std::string path = std::move(to_list_.back());
      to_list_.pop_back();
      SendList(path);
    }
  }
  if (under_way_ == 0) Complete();
}

void Survey::SendList(const std::string& path) {
  store().List(path, Watch::kNo, OnReply([this, path](const zookeeper::ListReply& reply) {
                 --under_way_;
                 OnListed(path, reply);
                 if (!IsOver()) Pump();
               }));
}

void Survey::OnListed(const std::string& path, const zookeeper::ListReply& reply) {
  const bool is_place = path == request_.place.path;
  switch (reply.error) {
    case Error::kNone:
      return TakeChildren(path, reply.children);
    case Error::kNoNode:
      if (is_place && !walks()) {
        found_[path] = {.path = Shown(request_.place, path), .exists = false};
      }
      return;
    case Error::kNoAuth:
    case Error::kAuthFailed:
      if (is_place) return Fail(Refused{"list", Shown(request_.place, path), reply.error});
      result_.unlistable.push_back(Shown(request_.place, path));
      return;
    default:
      return Fail(Defect{"listing " + Shown(request_.place, path) + ": " +
                         std::string(zookeeper::ErrorText(reply.error))});
  }
}

void Survey::TakeChildren(const std::string& path, const std::vector<std::string>& children) {
  Found::value_type& found = *found_.try_emplace(path).first;
  LockSurvey& lock = found.second;
  lock.path = Shown(request_.place, path);
  for (protocol::ContenderName& name : protocol::Queue(children)) {
    to_read_.push_back({&found, lock.entries.size()});
    lock.entries.push_back({.name = std::move(name)});
  }
  for (const std::string& child : children) {
    if (protocol::ParseContenderName(child)) continue;
    lock.ignored_children.push_back(child);
    const std::string child_path = ChildOf(path, child);
    if (walks() && child_path != "/zookeeper") to_list_.push_back(child_path);
  }
  std::sort(lock.ignored_children.begin(), lock.ignored_children.end());
  if (!walks()) return;
  // Of a large tree most znodes are no locks: they are not kept.
  if (lock.entries.empty()) found_.erase(path);
}

void Survey::SendRead(Read read) {
  const std::string path =
      ChildOf(read.lock->first, read.lock->second.entries[read.entry].name.full);
  store().Get(path, Watch::kNo, OnReply([this, read, path](const zookeeper::GetReply& reply) {
                --under_way_;
                OnRead(read, reply);
                if (IsOver()) return;
                if (walks() && !read.lock->second.entries[read.entry].IsContender()) {
                  to_list_.push_back(path);
                }
                Pump();
              }));
}

void Survey::OnRead(Read read, const zookeeper::GetReply& reply) {
  QueueEntry& entry = read.lock->second.entries[read.entry];
  switch (reply.error) {
    case Error::kNone:
      entry.readable = true;
      entry.stat = reply.stat;
      entry.data = reply.data.substr(0, request_.most_data);
      return;
    case Error::kNoNode:
      entry.name.full.clear();  // left out in the end: indices are in use
      return;
    case Error::kNoAuth:
    case Error::kAuthFailed:
      return;
    default:
      return Fail(Defect{"reading a contender in " + read.lock->second.path + ": " +
                         std::string(zookeeper::ErrorText(reply.error))});
  }
}

void Survey::Complete() {
  for (auto& [path, lock] : found_) {
    std::erase_if(lock.entries, [](const QueueEntry& entry) { return entry.name.full.empty(); });
    lock.waits_for = WaitsFor(lock.entries);
    if (!walks() || lock.IsHeld()) result_.locks.push_back(std::move(lock));
  }
  found_.clear();
  std::sort(result_.unlistable.begin(), result_.unlistable.end());
  Succeed();
}

}  // namespace zklock::lock
