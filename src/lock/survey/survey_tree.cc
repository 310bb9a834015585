#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lock/survey/survey.h"
#include "protocol/contender_name.h"
#include "protocol/lock_path.h"
#include "protocol/run_records.h"
#include "protocol/semaphore.h"

// Decides from a znode's children what it is: a LOCK with its queue, a semaphore, or the parent of
// LOCKs.

namespace zklock::lock {
namespace {

using zookeeper::Error;
using Scope = SurveyRequest::Scope;

bool MayBeFreeLock(const std::string& path) {
  return !protocol::IsRecordChild(protocol::BaseOf(path));
}

}  // namespace

void Survey::OnListed(Frontier::iterator place, const zookeeper::ListReply& reply) {
  const std::string shown = request_.place.DisplayPath(place->path);
  switch (reply.error) {
    case Error::kNone:
      place->children = std::make_unique<LockChildren>(place->path, reply.children);
      if (place->children->IsComplete()) return OnChildren(place);
      place->state = Place::State::kReadingChildren;
      return;
    case Error::kNoNode:
      place->state = Place::State::kDone;
      if (!IsPlace(*place)) return;
      result_.exists = false;
      if (walks_) return;
      place->state = Place::State::kReading;
      place->queue = std::make_unique<SurveyQueue>(LockSurvey{.path = shown, .exists = false},
                                                   LockChildren(place->path, {}), QueueReads{});
      return;
    default:
      place->state = Place::State::kDone;
      OnNotListed(place->path, reply.error, IsPlace(*place));
  }
}

/// `is_wanted`: the survey cannot do without this list.
void Survey::OnNotListed(const std::string& path, Error error, bool is_wanted) {
  const std::string shown = request_.place.DisplayPath(path);
  if (is_wanted || !zookeeper::IsRefusal(error)) {
    return FailBecause(error, "list", shown, "READ", shown);
  }
  result_.unlistable.push_back(shown);
}

/// False if all requests have been sent.
bool Survey::SendChildren(Frontier::iterator place) {
  return place->children->SendNext(
      {.list = [this](const auto& path, auto done) { AskForChildren(path, std::move(done)); },
       .get = [this](const auto& path,
                     auto done) { AskForData(path, request_.most_data, std::move(done)); }},
      [this, place] { OnChildren(place); });
}

void Survey::OnChildren(Frontier::iterator place) {
  const std::unique_ptr<LockChildren> children = std::move(place->children);
  const Error permits = children->permits_error();
  if (permits != Error::kNone && permits != Error::kNoNode) {
    // In other scopes the walk meets this znode again and reports it.
    if (request_.scope == Scope::kLock) {
      return OnNotListed(protocol::PermitsPath(place->path), permits, true);
    }
  }
  const Error turnstile = children->turnstile_error();
  if (children->semaphore() && turnstile != Error::kNone && turnstile != Error::kNoNode) {
    OnNotListed(protocol::TurnstilePath(place->path), turnstile, false);
  }
  LockSurvey lock{.path = request_.place.DisplayPath(place->path), .in_tree = walks_};
  TakeQueue(place, {std::move(lock),
                    *children,
                    {.most_data = request_.most_data,
                     .most_contenders = walks_ ? request_.most_in_tree : request_.most_contenders,
                     .with_last_run = request_.with_last_run}});
}

void Survey::TakeQueue(Frontier::iterator place, SurveyQueue queue) {
  if (walks_) Walk(place, queue.lock().ignored_children);
  // Most znodes of a large tree are not LOCKs: do not keep them.
  if (walks_ && queue.IsEmpty() && !(request_.with_free && MayBeFreeLock(place->path))) {
    place->state = Place::State::kDone;
    return;
  }
  place->state = Place::State::kReading;
  place->queue = std::make_unique<SurveyQueue>(std::move(queue));
}

void Survey::Walk(Frontier::iterator place, const std::vector<std::string>& children) {
  const auto next = std::next(place);
  for (const std::string& child : children) {
    const std::string path = protocol::ChildPath(place->path, child);
    if (path != "/zookeeper") frontier_.emplace(next, path);
  }
}

/// Reports the end of a LOCK, or walks below a place that turns out not to be one.
void Survey::Finish(Frontier::iterator place) {
  SurveyQueue& queue = *place->queue;
  std::vector<std::string> to_walk = queue.Strays();
  if (request_.scope == Scope::kGuess && !queue.is_announced() && queue.HasOthers()) {
    const auto& ignored = queue.lock().ignored_children;
    to_walk.insert(to_walk.end(), ignored.begin(), ignored.end());
    std::sort(to_walk.begin(), to_walk.end());
    walks_ = true;
  }
  if (walks_) Walk(place, to_walk);
  if (walks_ && !queue.is_announced() && !(request_.with_free && queue.IsLock())) return;
  queue.ReportEnd(*sink_);
}

}  // namespace zklock::lock
