#include "lock/survey/queue_position.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lock/data/contender_data.h"
#include "lock/survey/lock_survey.h"
#include "protocol/lock_path.h"
#include "protocol/queue.h"
#include "protocol/run_records.h"
#include "protocol/semaphore.h"

namespace zklock::lock {
namespace {

using zookeeper::Error;
using zookeeper::Watch;

}  // namespace

void FindQueuePosition::Begin(const std::string& own,
                              std::function<void(const std::optional<QueuePosition>&)> done) {
  done_ = std::move(done);
  position_ = {};
  if (own != own_) own_created_ms_.reset();
  own_ = own;
  if (!own_created_ms_) {
    store_.Get(own_, Watch::kNo, scope_.Wrap([this](const zookeeper::GetReply& reply) {
      if (reply.error == Error::kNone) own_created_ms_ = reply.stat.created_ms;
    }));
  }
  if (protocol::ParentOf(own_) == lock_.path) {
    return store_.List(lock_.path, Watch::kNo,
                       scope_.Wrap([this](const zookeeper::ListReply& reply) { OnListed(reply); }));
  }
  children_.emplace(LockChildren::OfSemaphore(lock_.path));
  const auto list = [this](const std::string& path, zookeeper::Done<zookeeper::ListReply> take) {
    store_.List(path, Watch::kNo, scope_.Wrap(std::move(take)));
  };
  children_->SendAll({.list = list, .get = nullptr}, [this] { OnSemaphore(); });
}

void FindQueuePosition::OnListed(const zookeeper::ListReply& reply) {
  if (reply.error != Error::kNone) return End(false);
  const protocol::Contenders contenders(reply.children);
  const auto rank = RankIn(contenders);
  // Our contender was deleted, is not known to this server yet, or is the first.
  if (!rank || rank->ahead == 0) return End(false);
  position_.ahead = rank->ahead;
  position_.waiting = rank->waiting;
  if (reply.children.Has(protocol::kLastRunChild)) ReadLastRun();
  position_.first = contenders.First()->full;
  ReadFirst(lock_.path);
}

void FindQueuePosition::OnSemaphore() {
  if (children_->permits_error() != Error::kNone || children_->turnstile_error() != Error::kNone) {
    return End(false);
  }
  const SemaphoreChildren& semaphore = *children_->semaphore();
  const protocol::Contenders permits = protocol::RunsOf(semaphore.permits);
  const auto in_turnstile = RankIn(protocol::Contenders(semaphore.turnstile));
  if (const auto in_permits = RankIn(permits)) {
    position_.ahead = position_.holders = in_permits->ahead;
  } else if (in_turnstile) {
    // Normally, the first contender in the turnstile has created the last permit, and waits with
    // it.
    position_.waiting = in_turnstile->ahead;
    const std::size_t waits_with_permit = position_.waiting > 0 && !permits.empty() ? 1 : 0;
    position_.holders = permits.size() - waits_with_permit;
    position_.ahead = position_.holders + position_.waiting;
  }
  const bool waits = position_.ahead > 0 && !permits.empty();
  if (waits) position_.first = permits.First()->full;
  children_.reset();
  if (!waits) return End(false);
  ReadLastRun();
  ReadFirst(protocol::PermitsPath(lock_.path));
}

std::optional<protocol::Rank> FindQueuePosition::RankIn(
    const protocol::Contenders& contenders) const {
  const std::string_view own = protocol::BaseOf(own_);
  if (contenders.Find(own) == nullptr) return std::nullopt;
  return protocol::RankOf(contenders, own);
}

/// Reads last-run; the answer precedes the one to ReadFirst().
void FindQueuePosition::ReadLastRun() {
  if (last_run_) return;
  const std::string path = protocol::ChildPath(lock_.path, protocol::kLastRunChild);
  store_.Get(path, Watch::kNo, scope_.Wrap([this](const zookeeper::GetReply& reply) {
    last_run_ = reply.error == Error::kNone ? reply.data.substr(0, kMostLastRun) : "";
  }));
}

void FindQueuePosition::ReadFirst(const std::string& queue) {
  store_.Get(protocol::ChildPath(queue, position_.first), Watch::kNo,
             scope_.Wrap([this](const zookeeper::GetReply& first) { OnFirst(first); }));
}

void FindQueuePosition::OnFirst(const zookeeper::GetReply& reply) {
  if (reply.error == Error::kNone) {
    position_.first_data = reply.data.substr(0, kMostContenderData);  // it may be a megabyte
    position_.first_reserved = FindReservation(position_.first, reply.data, reply.stat);
    if (own_created_ms_) {
      position_.first_older_by =
          std::chrono::milliseconds(*own_created_ms_ - reply.stat.created_ms);
    }
  }
  position_.last_run = last_run_.value_or("");
  // If the first contender has since been deleted, or if we lack permission to read it, only its
  // name is known.
  End(true);
}

void FindQueuePosition::End(bool seen) {
  const auto done = std::exchange(done_, nullptr);
  done(seen ? std::optional(position_) : std::nullopt);
}

}  // namespace zklock::lock
