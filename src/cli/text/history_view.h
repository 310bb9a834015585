#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lock/data/run_history.h"
#include "lock/survey/lock_survey.h"
#include "protocol/grant_time.h"

namespace zklock::cli {

enum class RunState {
  kEnded,
  kRunning,
  kReserved,  ///< a reservation that still exists
  kLost,      ///< its end was not recorded, and its contender is gone
};

/// One run of a LOCK's history as shown to people; see lock::RunRecord.
struct RunView {
  lock::RunRecord run;
  RunState state = RunState::kEnded;

  /// Returns whether the run is known to have failed, or to have lost its lock.
  [[nodiscard]] bool IsBad() const {
    return state == RunState::kLost || run.status.value_or(0) != 0;
  }
};

/// The history of one LOCK.
struct HistoryView {
  std::optional<protocol::LastSuccess> success;
  std::vector<RunView> runs;  ///< the newest first
  bool exists = true;         ///< whether the LOCK exists
  /// For a znode that shows no sign of being a LOCK: its children, which may be LOCKs.
  std::vector<std::string> below{};
};

/// Reads the history from a survey with_last_run; empty if there is no last-run. None if we lack
/// permission to read its data, or the data is not a valid history.
[[nodiscard]] std::optional<HistoryView> DescribeHistory(const lock::LockSurvey& lock);

/// Returns "runs take 4m to 6m": how long the successful runs in a history took; empty if there are
/// none. `last_run`: the data of a LOCK's last-run, arbitrary bytes.
[[nodiscard]] std::string RunsTakeText(std::string_view last_run);

/// Returns "NAME: status 0 after 1m36s, ended 2024-03-01 12:00:00 on b7 (exclusive, token 17)" or
/// "last reserved on b7, until ...".
[[nodiscard]] std::string ReleaseText(std::string_view name, const protocol::LastRelease& last);

/// Returns "reserved for freeze ('audit')", "ended by --max-run", "taken away by root on db1
/// ('stuck')"; may be empty. Printable.
[[nodiscard]] std::string NoteText(const lock::RunRecord& run);

/// Returns "ended", "running", "reserved" or "lost".
[[nodiscard]] std::string_view RunStateName(RunState state);

/// Returns "run: status 0 after 1m5s, began 2024-03-01 12:00:00 on db1 [nightly], waited 2s".
[[nodiscard]] std::string RunText(const RunView& view, bool with_year);

}  // namespace zklock::cli
