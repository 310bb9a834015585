#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/release_record.h"

namespace zklock::protocol {

/// The child of a LOCK that --min-interval keeps what it needs in. Persistent, so that an otherwise
/// empty LOCK is not reaped, and the last success with it.
inline constexpr std::string_view kLastRunChild = "last-run";

/// Since the epoch, by the servers' clock.
using ServerTime = std::chrono::milliseconds;

/// The last run under a LOCK that was a success and no reader's.
struct LastSuccess {
  ServerTime began{};  ///< when it had taken the lock
  std::string host;    ///< where
  friend bool operator==(const LastSuccess&, const LastSuccess&) = default;
};

/// `zklock/1 BEGAN HOST`, BEGAN in milliseconds.
[[nodiscard]] std::string FormatLastSuccess(const LastSuccess& success);
/// None for all that FormatLastSuccess does not write, to the letter. Any bytes will do.
[[nodiscard]] std::optional<LastSuccess> ParseLastSuccess(std::string_view text);

/// The newer of the two that a LOCK tells of: what --min-interval has kept, and the record of the
/// last release, written at `released`, if that was a success and no reader's.
[[nodiscard]] std::optional<LastSuccess> NewestSuccess(const std::optional<LastSuccess>& kept,
                                                       const std::optional<ReleaseRecord>& record,
                                                       ServerTime released);

}  // namespace zklock::protocol
