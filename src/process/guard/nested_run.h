#pragma once

#include <poll.h>

#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "process/nesting/run_connection.h"
#include "process/tree/process_tree.h"

namespace zklock::process {

/// How a zklock or guard that kills its tree treats a process of it. Guards of nested runs, and the
/// helpers through which they close their sessions, get KILL only after `guards_until`
/// (protocol::NestedGuardsUntil).
[[nodiscard]] TreeKiller::Treatment TreatmentInTree(const Descendant& process,
                                                    TimePoint guards_until);

/// In a guard: copies of the connections of nested runs to the process that is guarded
/// (NestingServer), which passes each on before it admits the run.
class NestedRuns {
 public:
  void Add(UniqueFd connection) { connections_.emplace_back(std::move(connection)); }
  /// Tells the runs to end, as NestingServer::End(). For the time after that process has died.
  void End();
  /// Whether a run is left. Forgets those that have ended.
  [[nodiscard]] bool AreLeft();
  /// Adds what to poll for the next end of one, until wake().
  void AppendTo(std::vector<pollfd>& polled) const;
  [[nodiscard]] TimePoint wake() const;

 private:
  std::vector<RunConnection> connections_;
};

}  // namespace zklock::process
