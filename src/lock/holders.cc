#include "lock/holders.h"

#include <utility>

#include "protocol/queue.h"

namespace zklock::lock {
namespace {

using zookeeper::Error;
using zookeeper::Watch;

// Readers that hold together; one of more than these is not looked for.
constexpr std::size_t kMostHolders = 256;
// Of a holder's data: longer data is none of ours. One byte more than that can be, so that it
// shows.
constexpr std::size_t kMostDataKept = 4097;

}  // namespace

Holders::Holders(zookeeper::Store& store, const Clock& clock, LockName lock,
                 Duration connect_timeout)
    : Errand(store, clock, connect_timeout), lock_(std::move(lock)) {
  Start();
}

void Holders::Begin() {
  holders_.clear();
  // The sync, because what was taken or let go a moment ago may have been so at another server.
  store().Sync(lock_.path, OnReply([](const zookeeper::Reply&) {}));
  store().List(lock_.path, Watch::kNo, OnReply([this](const zookeeper::ListReply& reply) {
                 if (reply.error == Error::kNone) return Read(reply.children);
                 if (reply.error == Error::kNoNode) return Succeed();
                 FailBecause(reply.error, "list", lock_.shown(), "READ", lock_.shown());
               }));
}

void Holders::Read(const std::vector<std::string>& children) {
  std::vector<protocol::ContenderName> holding;
  for (auto& contender : protocol::Queue(children)) {
    if (!holding.empty() && !contender.reads()) break;
    holding.push_back(std::move(contender));
    if (!holding.back().reads() || holding.size() == kMostHolders) break;
  }
  to_come_ = holding.size();
  if (to_come_ == 0) return Succeed();
  for (auto& name : holding) {
    store().Get(lock_.path + "/" + name.full, Watch::kNo,
                OnReply([this, name](const zookeeper::GetReply& reply) {
                  if (reply.error == Error::kNone && reply.stat.ephemeral_owner != 0) {
                    holders_.push_back({name, reply.stat, reply.data.substr(0, kMostDataKept)});
                  }
                  if (--to_come_ == 0) Succeed();
                }));
  }
}

}  // namespace zklock::lock
