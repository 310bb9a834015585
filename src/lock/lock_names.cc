#include "lock/lock_names.h"

#include <memory>
#include <string_view>
#include <utility>

#include "protocol/contender_name.h"
#include "protocol/last_run.h"
#include "protocol/lock_path.h"

namespace zklock::lock {
namespace {

using zookeeper::Error;
using zookeeper::Watch;

constexpr std::size_t kMostLists = 1000;
constexpr std::size_t kMostUnderWay = 64;

}  // namespace

LockNames::LockNames(zookeeper::Store& store, const Clock& clock, LockName above,
                     Duration connect_timeout)
    : ServerOperation(store, clock, connect_timeout), above_(std::move(above)) {
  Start();
}

void LockNames::Begin() {
  to_list_ = {above_.path};
  lists_ = 0;
  under_way_ = 0;
  paths_.clear();
  Pump();
}

void LockNames::Pump() {
  while (under_way_ < kMostUnderWay && lists_ < kMostLists && !to_list_.empty()) {
    const std::string path = std::move(to_list_.front());
    to_list_.pop_front();
    ++lists_;
    ++under_way_;
    store().List(path, Watch::kNo, OnReply([this, path](const zookeeper::ListReply& reply) {
                   --under_way_;
                   OnListed(path, reply);
                 }));
  }
  if (under_way_ == 0) Succeed();
}

void LockNames::OnListed(const std::string& path, const zookeeper::ListReply& reply) {
  if (reply.error != Error::kNone) return Pump();  // deleted, or not ours to list
  ++under_way_;
  const auto children = std::make_shared<LockChildren>(path, reply.children);
  children->SendAll(UnwatchedReads(), [this, children] {
    --under_way_;
    OnChildren(*children);
    Pump();
  });
}

/// A semaphore is a LOCK; its turnstile and the parent of its permits are not.
void LockNames::OnChildren(const LockChildren& children) {
  if (children.semaphore()) return Offer(children.lock());
  Take(children.lock(), children.children());
}

void LockNames::Take(const std::string& path, const protocol::Children& children) {
  bool is_used = false;
  bool has_others = false;
  for (const std::string_view child : children) {
    if (protocol::ViewContenderName(child) || protocol::IsRecordChild(child)) {
      is_used = true;
      continue;
    }
    if (path == "/" && child == "zookeeper") continue;
    has_others = true;
    to_list_.push_back(protocol::ChildPath(path, child));
  }
  if (is_used || !has_others) Offer(path);
}

void LockNames::Offer(const std::string& path) {
  if (path != above_.path) paths_.push_back(above_.DisplayPath(path));
}

}  // namespace zklock::lock
