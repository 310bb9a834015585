#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/release_record.h"

namespace zklock::protocol {

/// The child of a LOCK in which --min-interval records the last success. It is persistent, so that
/// the servers do not reap an otherwise empty LOCK and the record with it.
inline constexpr std::string_view kLastRunChild = "last-run";

/// Time since the epoch by the servers' clock.
using ServerTime = std::chrono::milliseconds;

/// The last run under a LOCK that succeeded, not counting readers.
struct LastSuccess {
  ServerTime began{};  ///< when it got the lock
  std::string host;    ///< where
  friend bool operator==(const LastSuccess&, const LastSuccess&) = default;
};

/// `zklock/1 BEGAN HOST`, BEGAN in milliseconds.
[[nodiscard]] std::string FormatLastSuccess(const LastSuccess& success);
/// The data of LOCK/last-run: the first line is what FormatLastSuccess writes, or empty if no
/// success is known. Lines below it are ignored. `text` may be any bytes.
struct LastRunData {
  std::optional<LastSuccess> success;
  std::string_view below;  ///< of the text: all that follows the first line, with its newline
};
/// None if the first line is neither; then zklock did not write it.
[[nodiscard]] std::optional<LastRunData> ParseLastRunData(std::string_view text);

/// The newer of `kept`, which --min-interval has recorded, and `record`, the release record written
/// at `released`, if that is a successful run and not a reader's.
[[nodiscard]] std::optional<LastSuccess> NewestSuccess(const std::optional<LastSuccess>& kept,
                                                       const std::optional<ReleaseRecord>& record,
                                                       ServerTime released);

}  // namespace zklock::protocol
