#pragma once

#include "base/clock.h"
#include "process/process_tree.h"

namespace zklock::process {

/// How a zklock or guard that kills its tree treats a process of it. Guards of nested runs, and the
/// helpers through which they close their sessions, get KILL only after `guards_until`
/// (protocol::NestedGuardsUntil).
[[nodiscard]] TreeKiller::Treatment TreatmentInTree(const Descendant& process,
                                                    TimePoint guards_until);

}  // namespace zklock::process
