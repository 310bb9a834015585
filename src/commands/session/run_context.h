#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "cli/options/options.h"
#include "cli/reports/end_reason.h"
#include "cli/reports/event_writer.h"
#include "cli/reports/report.h"
#include "commands/session/ancestor_locks.h"
#include "commands/session/event_broadcaster.h"
#include "commands/session/session_for_guard.h"
#include "lock/data/ticket.h"
#include "process/loop/event_loop.h"
#include "process/loop/message_sink.h"
#include "process/loop/signals.h"
#include "process/tree/identity.h"

namespace zklock::commands {

/// The state that all parts of one run share, whether it runs a command or holds for an owner
/// (--hold).
class RunContext {
 public:
  /// All arguments must outlive it. Opens the target of --events; throws cli::UsageError or
  /// cli::ConfigError if it cannot.
  RunContext(const cli::RunOptions& its_options, process::Signals& its_signals,
             process::MessageSink& its_sink);
  RunContext(const RunContext&) = delete;
  RunContext& operator=(const RunContext&) = delete;

  /// Returns the identity of this process. Read at the first call, while the session is created.
  [[nodiscard]] const process::Identity& Self();
  /// Returns the name of a LOCK from the options, with its path on the servers.
  [[nodiscard]] lock::LockName NameOf(const cli::WantedLock& wanted) const;

  /// Publishes and reports how the run on `locks` ends. Call it after closing the session, since no
  /// message may keep others waiting. `unconfirmed`: from SessionDriver. Returns the exit status.
  int End(const std::string& locks, const cli::RunEnd& end, std::optional<Duration> unconfirmed);

  /// Runs the loop, with `source` served last, until `is_done()` or the deadline. Leaves signals
  /// pending, since nothing would read them.
  void ServeUntil(EventSource& source, TimePoint deadline, const std::function<bool()>& is_done);

  const cli::RunOptions& options;
  process::Signals& signals;
  process::MessageSink& sink;
  cli::Report report;
  const std::unique_ptr<cli::EventWriter> event_writer;  ///< none without --events
  EventBroadcaster events;                               ///< to the report and the event writer
  const SystemClock clock;
  const TimePoint began = clock.Now();
  process::EventLoop loop;  ///< contains the signals, the sink and the event writer
  /// The session of the run, for its guard.
  SessionForGuard session_for_guard;
  /// Locks that the run uses without acquiring them itself. RemoveInheritedLocks() and
  /// AcquireLocks() add to them.
  AncestorLocks ancestors;

 private:
  std::optional<process::Identity> self_;
};

}  // namespace zklock::commands
