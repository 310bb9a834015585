#pragma once

#include <algorithm>
#include <functional>
#include <optional>

#include "base/clock.h"
#include "cli/options/options.h"
#include "cli/reports/end_reason.h"
#include "cli/reports/report.h"
#include "commands/session/console.h"
#include "commands/session/session_driver.h"
#include "lock/operations/calls.h"
#include "lock/operations/server_operation.h"
#include "process/loop/event_loop.h"
#include "process/loop/signals.h"

namespace zklock::commands {

/// A session that holds nothing, for a few operations in sequence.
class ShortSession {
 public:
  /// All arguments must outlive it.
  ShortSession(const cli::ServerOptions& options, process::Signals& signals, cli::Report& report);

  /// For constructing operations.
  [[nodiscard]] zookeeper::Store& store() { return session_driver_.session(); }
  /// Returns the longest time that can have passed since a server last answered, if the connection
  /// was lost just now: the client library gives up a connection on which nothing has arrived for
  /// two thirds of the timeout.
  [[nodiscard]] Duration AnsweredAgo() {
    const protocol::Lease& lease = session_driver_.session().lease();
    const Duration longest = lease.timeout() * 2 / 3;
    return std::min(longest, clock_.Now() - lease.newest_sent().value_or(TimePoint{}));
  }
  [[nodiscard]] const Clock& clock() const { return clock_; }

  /// For adding sources to serve while an operation runs.
  [[nodiscard]] process::EventLoop& loop() { return loop_; }

  /// Runs `work` with a lock::Calls for its requests to the servers, and returns its result. If it
  /// fails or a signal arrives, reports that and throws Exit.
  template <typename F>
  auto Ask(F work) {
    lock::Calls calls(store(), clock_, options_.connect_timeout,
                      [this](EventSource& source, const std::function<bool()>& is_done) {
                        Serve(source, is_done);
                      });
    try {
      return work(calls);
    } catch (const lock::OperationFailed& failed) {
      Fail(failed.failure());
    }
  }

  /// Returns whether the chroot of --servers does not exist. Throws Exit as Ask() does.
  [[nodiscard]] bool LacksChroot();

  /// Returns whether the last failure was only a missing permission, so that the servers still
  /// answer.
  [[nodiscard]] bool IsOnlyForbidden() const { return is_only_forbidden_; }
  /// Reports the failure, and throws Exit.
  [[noreturn]] void Fail(const lock::OperationFailure& failure);

  /// Runs an operation until it ends. Throws Exit as Ask() does.
  void Run(lock::ServerOperation& operation);
  /// Runs an operation until it ends or `is_left` returns true. If a signal stops it first, returns
  /// the signal. Reports nothing; Failure() does.
  [[nodiscard]] std::optional<int> RunUntilLeft(lock::ServerOperation& operation,
                                                const std::function<bool()>& is_left,
                                                const AroundSuspension& around_suspension = {});
  /// Returns none if the operation has its result or was left. Otherwise reports the error and
  /// returns the exit status.
  [[nodiscard]] std::optional<int> Failure(const lock::ServerOperation& operation);
  /// Likewise, but reports nothing, and returns the message too.
  [[nodiscard]] std::optional<cli::RunEnd> FailureEndOf(const lock::ServerOperation& operation);

  /// Closes the session. No operation can follow.
  void Close();

 private:
  void Serve(EventSource& source, const std::function<bool()>& is_done);
  [[nodiscard]] cli::RunEnd EndOf(const lock::OperationFailure& failure);

  const cli::ServerOptions& options_;
  process::Signals& signals_;
  cli::Report& report_;
  SystemClock clock_;
  process::EventLoop loop_;
  SessionDriver session_driver_;
  bool is_only_forbidden_ = false;
};

}  // namespace zklock::commands
