#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/contender_name.h"

namespace zklock::protocol {

/// The last run under a LOCK: left by its holder in the transaction that lets go.
///
/// Who is named there held until then. If it excluded others, everybody before it had gone: the
/// next in the queue need not list it (protocol, section 6).
struct ReleaseRecord {
  std::string contender;  ///< its whole name, the server's number included
  Mode mode = Mode::kExclusive;
  std::int64_t token = 0;           ///< its fencing token; positive
  std::chrono::milliseconds ran{};  ///< how long the command ran; not negative
  int status = 0;                   ///< the command's, as a shell shows it: 0 to 255
  std::string host;                 ///< where it ran
  friend bool operator==(const ReleaseRecord&, const ReleaseRecord&) = default;
};

/// The data of a LOCK that zklock made.
struct LockData {
  std::optional<ReleaseRecord> last_release;  ///< none: no run has ended yet
  friend bool operator==(const LockData&, const LockData&) = default;
};

/// A name as one word of what zklock writes down, so that it can be read back and shown: cut to 255
/// characters, and what is no ASCII letter, digit or sign becomes '-'. Never empty.
[[nodiscard]] std::string RecordWord(std::string_view text);

/// `zklock/1`, and after a release, separated by one blank each,
/// `zklock/1 CONTENDER MODE TOKEN SECONDS STATUS HOST`, with SECONDS to the millisecond, and
/// the contender's name and HOST as words.
[[nodiscard]] std::string FormatLockData(const LockData& data);

/// None for all that FormatLockData does not write, to the letter: the LOCK is somebody else's, and
/// its data is left alone. Any bytes will do.
[[nodiscard]] std::optional<LockData> ParseLockData(std::string_view text);

}  // namespace zklock::protocol
