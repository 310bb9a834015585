#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "commands/session/run_context.h"
#include "commands/session/session_driver.h"
#include "lock/data/ticket.h"
#include "lock/hold/history_writer.h"
#include "lock/hold/hold.h"

namespace zklock::commands {

/// How long a release, or a reservation's maker, waits for the answers of slow servers to what is
/// written in the history. Without them the run would be shown as lost.
inline constexpr Duration kLongestHistoryWait = std::chrono::seconds(5);

/// --history: enters the run in the history of its LOCKs while they are held.
class History {
 public:
  using Writes = std::vector<std::optional<zookeeper::DataWrite>>;

  /// The references outlive it. `tickets`: of the session.
  History(RunContext& context, SessionDriver& session_driver,
          const std::vector<lock::Ticket>& tickets);

  /// To be served while the locks are held.
  [[nodiscard]] EventSource& source() { return writer_; }
  /// The run begins. Later calls do nothing.
  void Begin(TimePoint began) { writer_.Begin(began); }

  /// The run has ended: releases, and enters the end. What is not released then, the caller does.
  void Release(lock::Hold& hold, const lock::FinishedRun& run);
  /// Instead: what to write to enter the end. Not with --permits.
  [[nodiscard]] Writes End(const lock::Hold& hold, const lock::FinishedRun& run);
  /// With --verbose: the LOCKs whose history cannot be kept, each once.
  void ReportUnkept();

 private:
  [[nodiscard]] TimePoint Deadline(const lock::Hold& hold) const;

  RunContext& context_;
  SessionDriver& session_driver_;
  const bool is_shared_;
  lock::HistoryWriter writer_;
  std::size_t reported_ = 0;
};

}  // namespace zklock::commands
