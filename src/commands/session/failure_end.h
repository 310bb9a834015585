#pragma once

#include <string>

#include "cli/options/options.h"
#include "cli/reports/end_reason.h"
#include "commands/session/session_driver.h"
#include "lock/data/outcome.h"

namespace zklock::commands {

/// How a run ends if the servers or the LOCK do not allow it. A visitor for variants of failures.
/// Use it after closing the session: only the close shows whether any credentials would help.
class FailureEnd {
 public:
  /// `lock`: the LOCK as messages name it.
  FailureEnd(SessionDriver& session_driver, Duration connect_timeout, std::string lock)
      : session_driver_(session_driver),
        connect_timeout_(connect_timeout),
        lock_(std::move(lock)) {}

  [[nodiscard]] cli::RunEnd operator()(const lock::Unreachable& unreachable) const;
  [[nodiscard]] cli::RunEnd operator()(const lock::TooSlow& slow) const;
  [[nodiscard]] cli::RunEnd operator()(const lock::Refused& refused) const;
  [[nodiscard]] cli::RunEnd operator()(const lock::Unusable& unusable) const;
  [[nodiscard]] cli::RunEnd operator()(const lock::QuotaExceeded& quota) const;
  [[nodiscard]] cli::RunEnd operator()(const lock::Defect& defect) const;

 private:
  SessionDriver& session_driver_;
  Duration connect_timeout_;
  std::string lock_;
};

}  // namespace zklock::commands
