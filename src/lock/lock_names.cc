#include "lock/lock_names.h"

#include <utility>

#include "protocol/contender_name.h"

namespace zklock::lock {
namespace {

using zookeeper::Error;
using zookeeper::Watch;

constexpr std::size_t kMostLists = 1000;
constexpr std::size_t kMostUnderWay = 64;

}  // namespace

LockNames::LockNames(zookeeper::Store& store, const Clock& clock, LockName above,
                     Duration connect_timeout)
    : Errand(store, clock, connect_timeout), above_(std::move(above)) {
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
                   Pump();
                 }));
  }
  if (under_way_ == 0) Succeed();
}

void LockNames::OnListed(const std::string& path, const zookeeper::ListReply& reply) {
  if (reply.error != Error::kNone) return;  // gone, or not for us: nothing to offer
  bool has_contenders = false;
  bool has_others = false;
  for (const std::string& child : reply.children) {
    if (protocol::ParseContenderName(child)) {
      has_contenders = true;
      continue;
    }
    if (path == "/" && child == "zookeeper") continue;
    has_others = true;
    to_list_.push_back((path == "/" ? "" : path) + "/" + child);
  }
  if (path != above_.path && (has_contenders || !has_others)) paths_.push_back(above_.Shown(path));
}

}  // namespace zklock::lock
