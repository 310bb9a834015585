#include "process/nested_run.h"

#include "process/guard_name.h"
#include "process/transport_helper.h"

namespace zklock::process {

TreeKiller::Treatment TreatmentInTree(const Descendant& process, TimePoint guards_until) {
  using Treatment = TreeKiller::Treatment;
  if (!process.stat || BootClock::now() >= guards_until) return Treatment::kKill;
  if (IsGuard(*process.stat)) return Treatment::kAwait;
  return IsTransportHelper(*process.stat) ? Treatment::kAwaitTree : Treatment::kKill;
}

}  // namespace zklock::process
