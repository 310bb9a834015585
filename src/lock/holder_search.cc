#include "lock/holder_search.h"

#include <algorithm>
#include <utility>

#include "lock/contender_check.h"
#include "protocol/queue.h"

namespace zklock::lock {
namespace {

using protocol::ContenderName;
using zookeeper::Error;
using zookeeper::Watch;

// Readers that hold together may be many, and nobody waits for what this finds.
constexpr std::size_t kMostAtOnce = 8;
// Ours are of this host, unless that has got another name since: of other hosts' readers not all
// are read.
constexpr std::size_t kMostOfOtherHosts = 16;

bool MayBeZklock(const ContenderName& holder) {
  return holder.program == protocol::Program::kZklock || holder.full == protocol::kSimpleName;
}

}  // namespace

HolderSearch::HolderSearch(zookeeper::Store& store, std::string queue,
                           const protocol::Children& children, const std::string& host,
                           HoldsForUs holds_for_us, std::function<void()> told)
    : store_(store),
      queue_(std::move(queue)),
      holds_for_us_(std::move(holds_for_us)),
      told_(std::move(told)),
      left_(protocol::HoldersIn(children)) {
  std::erase_if(left_, [](const ContenderName& holder) { return !MayBeZklock(holder); });
  const auto ours = std::stable_partition(
      left_.begin(), left_.end(),
      [&](const ContenderName& holder) { return !protocol::IsOfHost(holder, host); });
  const auto others = static_cast<std::size_t>(ours - left_.begin());
  if (others > kMostOfOtherHosts) {
    left_.erase(left_.begin(), ours - static_cast<std::ptrdiff_t>(kMostOfOtherHosts));
  }
}

void HolderSearch::Begin(const std::string& awaited) {
  const auto found = std::find_if(left_.begin(), left_.end(), [&](const ContenderName& holder) {
    return holder.full == awaited;
  });
  if (found != left_.end()) {
    awaited_ = std::move(*found);
    left_.erase(found);
    ++to_come_;
  }
  AskOn();
}

void HolderSearch::Take(const std::string& child, const zookeeper::GetReply& reply) {
  if (!awaited_ || awaited_->full != child) return;
  const ContenderName holder = *std::move(awaited_);
  awaited_.reset();
  OnRead(holder, reply);
}

void HolderSearch::AskOn() {
  while (to_come_ < kMostAtOnce && !left_.empty()) {
    ++to_come_;
    const std::string path = queue_ + "/" + left_.back().full;
    store_.Get(path, Watch::kNo,
               scope_.Wrap([this, holder = std::move(left_.back())](
                               const zookeeper::GetReply& reply) { OnRead(holder, reply); }));
    left_.pop_back();
  }
}

void HolderSearch::OnRead(const ContenderName& holder, const zookeeper::GetReply& reply) {
  if (IsLost(reply.error)) return;
  // What this session has made, a create whose reply was lost, say, is to go with it.
  const bool is_anothers = reply.error == Error::kNone && reply.stat.ephemeral_owner != 0 &&
                           reply.stat.ephemeral_owner != store_.session_id();
  if (!is_anothers || !holds_for_us_(holder.mode(), reply.data)) return RuleOut();
  const HeldForUs held{holder.mode(), queue_ + "/" + holder.full, reply.stat.created_zxid,
                       reply.data};
  CheckContenders(
      store_, {{held.path, held.token}},
      scope_.Wrap([this, held](const zookeeper::Reply& checked) { OnChecked(held, checked); }));
  Tell();
}

void HolderSearch::OnChecked(const HeldForUs& held, const zookeeper::Reply& reply) {
  if (IsLost(reply.error)) return;
  if (reply.error != Error::kNone) return RuleOut();
  found_ = held;
  Tell();
}

void HolderSearch::RuleOut() {
  --to_come_;
  AskOn();
  Tell();
}

void HolderSearch::Tell() {
  const auto told = told_;  // which may destroy this, and its own with it
  told();
}

}  // namespace zklock::lock
