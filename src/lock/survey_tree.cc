#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lock/survey.h"
#include "protocol/contender_name.h"
#include "protocol/lock_path.h"
#include "protocol/semaphore.h"

// What a znode's children show it to be: a LOCK with its queue, a semaphore, or what has LOCKs
// below.

namespace zklock::lock {
namespace {

using zookeeper::Error;
using Scope = SurveyRequest::Scope;

}  // namespace

void Survey::OnListed(Frontier::iterator place, const zookeeper::ListReply& reply) {
  const std::string shown = request_.place.DisplayPath(place->path);
  switch (reply.error) {
    case Error::kNone:
      return TakeChildren(place, reply.children);
    case Error::kNoNode:
      place->state = Place::State::kDone;
      if (!IsPlace(*place)) return;
      exists_ = false;
      if (walks_) return;
      place->state = Place::State::kReading;
      place->queue = std::make_unique<SurveyQueue>(LockSurvey{.path = shown, .exists = false},
                                                   place->path, protocol::Children{}, most());
      place->queue->TakeHead(nullptr, 0);
      return;
    default:
      place->state = Place::State::kDone;
      OnNotListed(place->path, reply.error, IsPlace(*place));
  }
}

/// `is_wanted`: without it there is nothing to tell.
void Survey::OnNotListed(const std::string& path, Error error, bool is_wanted) {
  const std::string shown = request_.place.DisplayPath(path);
  if (is_wanted || !zookeeper::IsRefusal(error)) {
    return FailBecause(error, "list", shown, "READ", shown);
  }
  result_.unlistable.push_back(shown);
}

void Survey::TakeChildren(Frontier::iterator place, const protocol::Children& children) {
  if (protocol::MayBeSemaphore(children)) {
    place->state = Place::State::kLookingInside;
    place->inside = std::make_unique<Inside>(Inside{.children = children});
    return;
  }
  TakeQueue(place, {{.path = request_.place.DisplayPath(place->path), .in_tree = walks_},
                    place->path,
                    children,
                    most()});
}

/// False when all has been asked.
bool Survey::LookInside(Frontier::iterator place) {
  Inside& inside = *place->inside;
  const std::string permits = protocol::PermitsPath(place->path);
  const auto keep_in = [this, place](auto Inside::*part) {
    return [this, place, part](const auto& reply) {
      (*place->inside).*part = reply;
      if (++place->inside->answered == 3) OnInside(place);
    };
  };
  switch (inside.asked++) {
    case 0:
      AskForChildren(permits, keep_in(&Inside::permits));
      return true;
    case 1:
      AskForData(permits, keep_in(&Inside::permit_data));
      return true;
    case 2:
      AskForChildren(protocol::TurnstilePath(place->path), keep_in(&Inside::turnstile));
      return true;
    default:
      return false;
  }
}

void Survey::OnInside(Frontier::iterator place) {
  const std::unique_ptr<Inside> inside = std::move(place->inside);
  LockSurvey lock{.path = request_.place.DisplayPath(place->path), .in_tree = walks_};
  const Error listed = inside->permits.error;
  if (listed != Error::kNone && listed != Error::kNoNode) {
    // Where there is nothing else to look at, it matters. Otherwise it is met again on the walk.
    if (request_.scope == Scope::kLock) {
      return OnNotListed(protocol::PermitsPath(place->path), listed, true);
    }
  }
  if (!protocol::ArePermits(inside->permits.children, inside->permit_data.data)) {
    return TakeQueue(place, {std::move(lock), place->path, inside->children, most()});
  }
  const Error turnstile = inside->turnstile.error;
  if (turnstile != Error::kNone && turnstile != Error::kNoNode) {
    OnNotListed(protocol::TurnstilePath(place->path), turnstile, false);
  }
  TakeQueue(place, {std::move(lock),
                    place->path,
                    inside->children,
                    {.permits = std::move(inside->permits.children),
                     .turnstile = std::move(inside->turnstile.children),
                     .permit_limit = protocol::ParsePermitLimit(inside->permit_data.data)},
                    most()});
}

void Survey::TakeQueue(Frontier::iterator place, SurveyQueue queue) {
  if (walks_) Walk(place, queue.lock().ignored_children);
  // Of a large tree most znodes are no locks: they are not kept.
  if (walks_ && queue.IsEmpty()) {
    place->state = Place::State::kDone;
    return;
  }
  place->state = Place::State::kReading;
  place->queue = std::make_unique<SurveyQueue>(std::move(queue));
}

void Survey::Walk(Frontier::iterator place, const std::vector<std::string>& children) {
  const auto behind = std::next(place);
  for (const std::string& child : children) {
    const std::string path = protocol::ChildPath(place->path, child);
    if (path != "/zookeeper") frontier_.emplace(behind, path);
  }
}

/// The LOCK's end, or what there is below a place that turns out to be none.
void Survey::Finish(Frontier::iterator place) {
  SurveyQueue& queue = *place->queue;
  std::vector<std::string> to_walk = queue.Strays();
  if (request_.scope == Scope::kGuess && !queue.is_announced() && queue.HasOthers()) {
    const auto& ignored = queue.lock().ignored_children;
    to_walk.insert(to_walk.end(), ignored.begin(), ignored.end());
    std::sort(to_walk.begin(), to_walk.end());
    walks_ = true;
    return Walk(place, to_walk);
  }
  if (walks_) Walk(place, to_walk);
  if (walks_ && !queue.is_announced()) return;
  queue.TellEnd(*sink_);
}

}  // namespace zklock::lock
