#include "lock/ahead/holder_search.h"

#include <algorithm>
#include <utility>

#include "lock/data/contender_check.h"
#include "protocol/lock_path.h"
#include "protocol/queue.h"

namespace zklock::lock {
namespace {

using protocol::ContenderName;
using zookeeper::Error;
using zookeeper::Watch;

// Many readers may hold the lock together. The search is seldom urgent: only a `try`, a run that
// finds its queue full and a run for any of several LOCKs wait for its result.
constexpr std::size_t kMostAtOnce = 8;
// A contender that holds the lock on our behalf is on this host, unless the host has been renamed
// since, so not all readers on other hosts are read.
constexpr std::size_t kMostOfOtherHosts = 16;

bool MayBeZklock(const ContenderName& holder) {
  return holder.program == protocol::Program::kZklock || holder.full == protocol::kSimpleName;
}

}  // namespace

HolderSearch::HolderSearch(zookeeper::Store& store, std::string queue,
                           const protocol::Children& children, const std::string& host,
                           HoldsForUs holds_for_us, std::function<void()> on_progress)
    : store_(store),
      queue_(std::move(queue)),
      holds_for_us_(std::move(holds_for_us)),
      on_progress_(std::move(on_progress)),
      unread_(protocol::HoldersIn(children)) {
  std::erase_if(unread_, [](const ContenderName& holder) { return !MayBeZklock(holder); });
  const auto ours = std::stable_partition(
      unread_.begin(), unread_.end(),
      [&](const ContenderName& holder) { return !protocol::IsOfHost(holder, host); });
  const auto others = static_cast<std::size_t>(ours - unread_.begin());
  if (others > kMostOfOtherHosts) {
    unread_.erase(unread_.begin(), ours - static_cast<std::ptrdiff_t>(kMostOfOtherHosts));
  }
}

void HolderSearch::Begin(const std::string& awaited) {
  const auto found = std::find_if(unread_.begin(), unread_.end(), [&](const ContenderName& holder) {
    return holder.full == awaited;
  });
  if (found != unread_.end()) {
    awaited_ = std::move(*found);
    unread_.erase(found);
    ++pending_;
  }
  ReadMore();
}

void HolderSearch::Take(const std::string& child, const zookeeper::GetReply& reply) {
  if (!awaited_ || awaited_->full != child) return;
  const ContenderName holder = *std::move(awaited_);
  awaited_.reset();
  OnRead(holder, reply);
}

void HolderSearch::ReadMore() {
  while (pending_ < kMostAtOnce && !unread_.empty()) {
    ++pending_;
    const std::string path = protocol::ChildPath(queue_, unread_.back().full);
    store_.Get(path, Watch::kNo,
               scope_.Wrap([this, holder = std::move(unread_.back())](
                               const zookeeper::GetReply& reply) { OnRead(holder, reply); }));
    unread_.pop_back();
  }
}

void HolderSearch::OnRead(const ContenderName& holder, const zookeeper::GetReply& reply) {
  if (IsLost(reply.error)) return;
  // A znode of this session, for example from a create whose reply was lost, does not count: it
  // ends with the session.
  const bool is_of_another_session = reply.error == Error::kNone &&
                                     reply.stat.ephemeral_owner != 0 &&
                                     reply.stat.ephemeral_owner != store_.session_id();
  if (!is_of_another_session || !holds_for_us_(holder.mode(), reply.data)) return RuleOut();
  const HeldForUs held{holder.mode(), protocol::ChildPath(queue_, holder.full),
                       reply.stat.created_zxid, reply.data};
  CheckContenders(
      store_, {{held.path, held.token}},
      scope_.Wrap([this, held](const zookeeper::Reply& checked) { OnChecked(held, checked); }));
  Report();
}

void HolderSearch::OnChecked(const HeldForUs& held, const zookeeper::Reply& reply) {
  if (IsLost(reply.error)) return;
  if (reply.error != Error::kNone) return RuleOut();
  found_ = held;
  Report();
}

void HolderSearch::RuleOut() {
  --pending_;
  ReadMore();
  Report();
}

void HolderSearch::Report() {
  const auto on_progress = on_progress_;  // a copy, because the call may destroy this
  on_progress();
}

}  // namespace zklock::lock
