#include "process/guard/nested_run.h"

#include <algorithm>
#include <new>

#include "process/transport/transport_helper.h"
#include "process/tree/guard_name.h"

namespace zklock::process {

TreeKiller::Treatment TreatmentInTree(const Descendant& process, TimePoint guards_until) {
  using Treatment = TreeKiller::Treatment;
  if (!process.stat || BootClock::now() >= guards_until) return Treatment::kKill;
  try {
    if (IsGuard(*process.stat)) return Treatment::kAwait;
    return IsTransportHelper(*process.stat) ? Treatment::kAwaitTree : Treatment::kKill;
  } catch (const std::bad_alloc&) {  // it has one of those names, so it may be a guard or helper
    return Treatment::kAwait;
  }
}

void NestedRuns::End() {
  for (RunConnection& connection : connections_) connection.End();
}

bool NestedRuns::AreLeft() {
  std::erase_if(connections_, [](RunConnection& connection) { return connection.HasEnded(); });
  return !connections_.empty();
}

void NestedRuns::AppendTo(std::vector<pollfd>& polled) const {
  for (const RunConnection& connection : connections_) polled.push_back(connection.ToPoll());
}

TimePoint NestedRuns::wake() const {
  TimePoint wake = kNever;
  for (const RunConnection& connection : connections_) wake = std::min(wake, connection.wake());
  return wake;
}

}  // namespace zklock::process
