#include "lock/operations/lock_names.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string_view>
#include <utility>

#include "lock/data/lock_children.h"
#include "protocol/contender_name.h"
#include "protocol/lock_path.h"
#include "protocol/queue.h"
#include "protocol/run_records.h"

namespace zklock::lock {
namespace {

constexpr std::size_t kMostLists = 1000;
constexpr std::size_t kMostAtOnce = 64;

/// Removes up to `most` paths from the front, and returns them.
std::vector<std::string> TakeSome(std::deque<std::string>& paths, std::size_t most) {
  const auto end = paths.begin() + static_cast<std::ptrdiff_t>(std::min(most, paths.size()));
  std::vector<std::string> some(paths.begin(), end);
  paths.erase(paths.begin(), end);
  return some;
}

/// Returns whether the znode may be a LOCK. Appends to `others` the children that must also be
/// examined.
bool MayBeLock(const LockChildren& children, std::deque<std::string>& others) {
  // A semaphore is a LOCK; its turnstile and the parent of its permits are not.
  if (children.semaphore()) return true;
  bool is_used = false;
  bool has_others = false;
  for (const std::string_view child : children.children()) {
    if (protocol::ViewContenderName(child) || protocol::IsRecordChild(child)) {
      is_used = true;
    } else if (children.lock() != "/" || child != "zookeeper") {
      has_others = true;
      others.push_back(protocol::ChildPath(children.lock(), child));
    }
  }
  return is_used || !has_others;
}

/// Returns how many permits are used. If there are more than the limit, the contender that is
/// passing the turnstile has created the last ones and waits with them.
std::size_t UsedPermits(const SemaphoreChildren& semaphore) {
  const std::vector<protocol::ContenderName> permits = protocol::Queue(semaphore.permits);
  const bool one_waits = semaphore.permit_limit && permits.size() > *semaphore.permit_limit &&
                         !protocol::Contenders(semaphore.turnstile).empty();
  if (!one_waits) return permits.size();
  return permits.size() - protocol::PermitsOfRun(semaphore.permits, permits.back().full).size();
}

FoundLock Found(const LockChildren& children, std::string path) {
  if (const auto& semaphore = children.semaphore()) {
    return {.path = std::move(path),
            .is_semaphore = true,
            .held = UsedPermits(*semaphore),
            .waiting = protocol::Contenders(semaphore->turnstile).size(),
            .permit_limit = semaphore->permit_limit};
  }
  const std::size_t held = protocol::HoldersIn(children.children()).size();
  const std::size_t all = protocol::Contenders(children.children()).size();
  return {.path = std::move(path), .held = held, .waiting = all - std::min(held, all)};
}

}  // namespace

void FindLockNames(Calls& calls, const LockName& above, std::vector<FoundLock>& locks) {
  calls.Repeat([&] {
    locks.clear();
    std::deque<std::string> to_list = {above.path};
    std::size_t lists = 0;
    while (lists < kMostLists && !to_list.empty()) {
      const auto listed = TakeSome(to_list, std::min(kMostAtOnce, kMostLists - lists));
      lists += listed.size();
      const auto replies = calls.ListAll(listed);
      std::vector<LockChildren> found;
      for (std::size_t i = 0; i < listed.size(); ++i) {
        // Otherwise it was deleted, or we lack permission to list it.
        if (replies[i].error == zookeeper::Error::kNone) {
          found.emplace_back(listed[i], replies[i].children);
        }
      }
      calls.Complete(found);
      for (const LockChildren& children : found) {
        if (MayBeLock(children, to_list) && children.lock() != above.path) {
          locks.push_back(Found(children, above.DisplayPath(children.lock())));
        }
      }
    }
  });
}

}  // namespace zklock::lock
