#pragma once

#include <poll.h>

#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "process/nesting/run_connection.h"
#include "process/tree/process_tree.h"

namespace zklock::process {

/// Returns how a zklock or guard that is killing its tree treats a process in it. Guards of nested
/// runs, and the helpers through which they close their sessions, get KILL only after
/// `guards_until` (protocol::NestedGuardsUntil).
[[nodiscard]] TreeKiller::Treatment TreatmentInTree(const Descendant& process,
                                                    TimePoint guards_until);

/// A guard's copies of the connections from nested runs to the guarded process (NestingServer).
/// That process passes each one on before it admits the run.
class NestedRuns {
 public:
  void Add(UniqueFd connection) { connections_.emplace_back(std::move(connection)); }
  /// Tells the runs to end, like NestingServer::End().
  void End();
  /// Returns whether a run is left. Forgets runs that have ended.
  [[nodiscard]] bool AreLeft();
  /// Appends the descriptors to poll, until wake(), to notice the end of a run.
  void AppendTo(std::vector<pollfd>& polled) const;
  [[nodiscard]] TimePoint wake() const;

 private:
  std::vector<RunConnection> connections_;
};

}  // namespace zklock::process
