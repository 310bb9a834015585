#include "process/guard/nested_run.h"

#include <sys/socket.h>

#include "process/transport/transport_helper.h"
#include "process/tree/guard_name.h"

namespace zklock::process {

TreeKiller::Treatment TreatmentInTree(const Descendant& process, TimePoint guards_until) {
  using Treatment = TreeKiller::Treatment;
  if (!process.stat || BootClock::now() >= guards_until) return Treatment::kKill;
  if (IsGuard(*process.stat)) return Treatment::kAwait;
  return IsTransportHelper(*process.stat) ? Treatment::kAwaitTree : Treatment::kKill;
}

void NestedRuns::End() const {
  for (const UniqueFd& connection : connections_) shutdown(connection.get(), SHUT_WR);
}

bool NestedRuns::AreLeft() {
  std::erase_if(connections_, [](const UniqueFd& connection) {
    // The guarded process reads what a run sends. Here only the other end's close counts.
    pollfd polled{connection.get(), POLLRDHUP, 0};
    return poll(&polled, 1, 0) == 1;
  });
  return !connections_.empty();
}

void NestedRuns::AppendTo(std::vector<pollfd>& polled) const {
  for (const UniqueFd& connection : connections_) {
    polled.push_back({connection.get(), POLLRDHUP, 0});
  }
}

}  // namespace zklock::process
