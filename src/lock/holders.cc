#include "lock/holders.h"

#include <algorithm>
#include <utility>

#include "protocol/queue.h"

namespace zklock::lock {
namespace {

using zookeeper::Error;
using zookeeper::Watch;

// The limit of our own data and one byte, so that longer data, which is not ours, is recognised.
constexpr std::size_t kMostDataKept = 4097;

/// Collects the entries that hold.
class HolderSink final : public SurveySink {
 public:
  explicit HolderSink(std::vector<Holder>& holders) : holders_(holders) {}
  void OnLock(const LockSurvey& /*lock*/) override {}
  void OnEntry(const QueueEntry& entry) override {
    if (!entry.readable || entry.Waits()) return;
    holders_.push_back({entry.name, entry.path, entry.stat, entry.data});
  }
  void OnLockEnd(const LockSurvey& /*lock*/) override {}

 private:
  std::vector<Holder>& holders_;
};

}  // namespace

Holders::Holders(zookeeper::Store& store, const Clock& clock, LockName lock,
                 Duration connect_timeout, std::size_t most)
    : ServerOperation(store, clock, connect_timeout), lock_(std::move(lock)), most_(most) {
  Start();
}

void Holders::Begin() {
  holders_.clear();
  children_.reset();
  queue_.reset();
  to_come_ = 0;
  // Sync first: a moment ago, the lock may have been acquired or released at another server.
  store().Sync(lock_.path, OnReply([](const zookeeper::Reply&) {}));
  store().List(lock_.path, Watch::kNo, OnReply([this](const zookeeper::ListReply& reply) {
                 if (reply.error == Error::kNoNode) return Succeed();
                 if (reply.error != Error::kNone) {
                   return FailBecause(reply.error, "list", lock_.display_path(), "READ",
                                      lock_.display_path());
                 }
                 children_.emplace(lock_.path, reply.children);
                 children_->SendAll(UnwatchedReads(), [this] { OnChildren(); });
               }));
}

void Holders::OnChildren() {
  const auto& semaphore = children_->semaphore();
  const std::size_t holders = semaphore ? protocol::Contenders(semaphore->permits).size()
                                        : protocol::HoldersIn(children_->children()).size();
  queue_.emplace(LockSurvey{}, *children_, std::min(most_, holders));
  queue_->TakeHead(nullptr, 0);
  AskOn();
}

void Holders::AskOn() {
  while (const auto index = queue_->NextToRead()) {
    queue_->MarkAsked(*index);
    ++to_come_;
    store().Get(queue_->PathOf(*index), Watch::kNo,
                OnReply([this, index](const zookeeper::GetReply& reply) {
                  --to_come_;
                  if (!queue_->Take(*index, reply, kMostDataKept)) {
                    return FailBecause(reply.error, "read a contender in", lock_.display_path(),
                                       "READ", lock_.DisplayPath(queue_->PathOf(*index)));
                  }
                  AskOn();
                }));
  }
  if (to_come_ > 0) return;
  HolderSink sink(holders_);
  (void)queue_->ReportContenders(sink);
  Succeed();
}

}  // namespace zklock::lock
