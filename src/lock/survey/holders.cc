#include "lock/survey/holders.h"

#include <algorithm>

#include "lock/data/contender_data.h"
#include "lock/data/lock_children.h"
#include "lock/survey/survey_queue.h"
#include "protocol/queue.h"
#include "protocol/semaphore.h"

namespace zklock::lock {
namespace {

using zookeeper::Error;

// One byte more than zklock writes, so that longer data from other programs is recognised.
constexpr std::size_t kMostHolderData = kMostContenderData + 1;

/// Collects the entries that hold the lock.
class HolderSink final : public SurveySink {
 public:
  HolderSink(std::vector<Holder>& holders, std::vector<Holder>* unreadable)
      : holders_(holders), unreadable_(unreadable) {}
  void OnEntry(const QueueEntry& entry) override {
    std::vector<Holder>* const to = entry.readable ? &holders_ : unreadable_;
    if (to == nullptr || entry.Waits()) return;
    to->push_back({entry.name, entry.path, entry.more, entry.stat, entry.data});
  }

 private:
  std::vector<Holder>& holders_;
  std::vector<Holder>* unreadable_;
};

}  // namespace

std::vector<Holder> ReadHolders(Calls& calls, const LockName& lock, std::size_t most,
                                std::vector<Holder>* unreadable) {
  return calls.Repeat([&]() -> std::vector<Holder> {
    if (unreadable != nullptr) unreadable->clear();
    // Sync first: the lock may have just been acquired or released through another server.
    calls.Sync(lock.path);
    const zookeeper::ListReply list = calls.List(lock.path);
    if (list.error == Error::kNoNode) return {};
    if (list.error != Error::kNone) {
      throw OperationFailed(list.error, "list", lock, "READ");
    }
    LockChildren children(lock.path, list.children);
    calls.Complete({&children, 1});
    const Error permits = children.permits_error();
    if (permits != Error::kNone && permits != Error::kNoNode) {
      throw OperationFailed(permits, "list the permits of", lock, "READ",
                            protocol::PermitsPath(lock.path));
    }
    const auto& semaphore = children.semaphore();
    const std::size_t count = semaphore ? protocol::Contenders(semaphore->permits).size()
                                        : protocol::HoldersIn(children.children()).size();
    SurveyQueue queue(LockSurvey{}, children,
                      {.most_data = kMostHolderData,
                       .most_contenders = std::min(most, count),
                       .with_lock = false});
    for (;;) {
      std::vector<SurveyQueue::Read> reads;
      std::vector<std::string> paths;
      while (auto read = queue.NextRead()) {
        paths.push_back(read->path);
        reads.push_back(std::move(*read));
      }
      if (reads.empty()) break;
      const std::vector<zookeeper::GetReply> replies = calls.GetAll(paths);
      for (std::size_t i = 0; i < reads.size(); ++i) {
        if (reads[i].take(replies[i])) continue;
        throw OperationFailed(replies[i].error, reads[i].operation, lock, "READ", paths[i]);
      }
    }
    std::vector<Holder> holders;
    HolderSink sink(holders, unreadable);
    (void)queue.ReportContenders(sink);
    return holders;
  });
}

OperationFailed MayNotRead(const LockName& lock, const Holder& holder) {
  return {Error::kNoAuth, "read a contender in", lock, "READ", holder.path};
}

}  // namespace zklock::lock
