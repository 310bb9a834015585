#include "lock/survey/holders.h"

#include <algorithm>

#include "lock/data/contender_data.h"
#include "lock/data/lock_children.h"
#include "lock/survey/survey_queue.h"
#include "protocol/queue.h"

namespace zklock::lock {
namespace {

using zookeeper::Error;

// One byte more than zklock writes, so that longer data of other programs is recognised.
constexpr std::size_t kMostHolderData = kMostContenderData + 1;

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

std::vector<Holder> ReadHolders(Calls& calls, const LockName& lock, std::size_t most) {
  return calls.Repeat([&]() -> std::vector<Holder> {
    // Sync first: a moment ago, the lock may have been acquired or released at another server.
    calls.Sync(lock.path);
    const zookeeper::ListReply list = calls.List(lock.path);
    if (list.error == Error::kNoNode) return {};
    if (list.error != Error::kNone) {
      throw OperationFailed(list.error, "list", lock.display_path(), "READ", lock.display_path());
    }
    LockChildren children(lock.path, list.children);
    calls.Complete({&children, 1});
    const auto& semaphore = children.semaphore();
    const std::size_t count = semaphore ? protocol::Contenders(semaphore->permits).size()
                                        : protocol::HoldersIn(children.children()).size();
    SurveyQueue queue(LockSurvey{}, children, std::min(most, count));
    queue.TakeHead(nullptr, 0);
    for (;;) {
      std::vector<std::size_t> indices;
      std::vector<std::string> paths;
      while (const auto index = queue.NextToRead()) {
        queue.MarkAsked(*index);
        indices.push_back(*index);
        paths.push_back(queue.PathOf(*index));
      }
      if (indices.empty()) break;
      const std::vector<zookeeper::GetReply> replies = calls.GetAll(paths);
      for (std::size_t i = 0; i < indices.size(); ++i) {
        if (queue.Take(indices[i], replies[i], kMostHolderData)) continue;
        throw OperationFailed(replies[i].error, "read a contender in", lock.display_path(), "READ",
                              lock.DisplayPath(paths[i]));
      }
    }
    std::vector<Holder> holders;
    HolderSink sink(holders);
    (void)queue.ReportContenders(sink);
    return holders;
  });
}

}  // namespace zklock::lock
