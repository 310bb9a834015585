#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/release_record.h"

namespace zklock::protocol {

// The children of a LOCK that record its runs. They are persistent, so that the servers do not reap
// an otherwise empty LOCK and the record with it.

/// Holds the last success, for --min-interval, and the history.
inline constexpr std::string_view kLastRunChild = "last-run";
/// Holds the last start of a run with --once-per.
inline constexpr std::string_view kLastStartChild = "last-start";

/// Returns whether a child with this name is part of its parent LOCK rather than a LOCK itself.
[[nodiscard]] constexpr bool IsRecordChild(std::string_view name) {
  return name == kLastRunChild || name == kLastStartChild;
}

/// Time since the epoch by the servers' clock.
using ServerTime = std::chrono::milliseconds;

/// The last run under a LOCK that succeeded, not counting readers.
struct LastSuccess {
  ServerTime began{};  ///< when it got the lock
  std::string host;    ///< where
  friend bool operator==(const LastSuccess&, const LastSuccess&) = default;
};

/// Returns `zklock/1 BEGAN HOST`, with BEGAN in milliseconds.
[[nodiscard]] std::string FormatLastSuccess(const LastSuccess& success);
/// The data of LOCK/last-run: the first line is what FormatLastSuccess() writes, or empty if no
/// success is known. The lines below it are ignored.
struct LastRunData {
  std::optional<LastSuccess> success;
  std::string_view below;  ///< all text after the first line, beginning with the newline
};
/// Returns none if the first line is neither a success nor empty, so that zklock cannot have
/// written it. `text` may be any bytes.
[[nodiscard]] std::optional<LastRunData> ParseLastRunData(std::string_view text);

/// Returns the newer of `kept`, which --min-interval has recorded, and `record`, the release record
/// written at `released`. `record` counts only if the run was successful and not a reader.
[[nodiscard]] std::optional<LastSuccess> NewestSuccess(const std::optional<LastSuccess>& kept,
                                                       const std::optional<ReleaseRecord>& record,
                                                       ServerTime released);

/// The record that a run with --once-per writes to LOCK/last-start before it executes its command.
/// The znode's modification time is the time of that start.
struct StartRecord {
  std::int64_t token = 0;  ///< the fencing token, which identifies the run
  std::string host;        ///< where
  friend bool operator==(const StartRecord&, const StartRecord&) = default;
};

/// Returns `zklock/1 TOKEN HOST`.
[[nodiscard]] std::string FormatStartRecord(const StartRecord& start);
/// Returns none if `text`, which may be any bytes, is not what FormatStartRecord() writes.
[[nodiscard]] std::optional<StartRecord> ParseStartRecord(std::string_view text);

}  // namespace zklock::protocol
