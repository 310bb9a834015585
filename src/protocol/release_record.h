#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/contender_name.h"

namespace zklock::protocol {

/// The last run under a LOCK, or its last reservation. It is written in the same transaction that
/// releases the lock.
///
/// The contender named here held the lock until that transaction. If it was not a reader, all
/// contenders before it were gone, so the next contender need not list the queue
/// (zklock-protocol(7), The turn).
struct ReleaseRecord {
  std::string contender;  ///< the whole name, with the server's number
  Mode mode = Mode::kExclusive;
  std::int64_t token = 0;                ///< its fencing token; positive
  std::chrono::milliseconds duration{};  ///< how long the command ran; not negative
  int status = 0;                        ///< the command's exit status, as in a shell: 0 to 255
  std::string host;                      ///< where it ran
  bool is_reservation = false;  ///< not a run but a reservation: `duration` and `status` are 0
  friend bool operator==(const ReleaseRecord&, const ReleaseRecord&) = default;
};

/// The data of a LOCK that zklock created.
struct LockData {
  std::optional<ReleaseRecord> last_release;  ///< none if no run has ended yet
  friend bool operator==(const LockData&, const LockData&) = default;
};

/// Makes `text` a single word of a record: at most 255 characters, with everything except visible
/// ASCII replaced by '-'. The result is never empty.
[[nodiscard]] std::string RecordWord(std::string_view text);

/// Returns `zklock/1` before the first release, and `zklock/1 CONTENDER MODE TOKEN SECONDS STATUS
/// HOST` after it. SECONDS has three decimals; RecordWord() makes CONTENDER and HOST single words.
/// For a reservation, SECONDS and STATUS are `-`.
[[nodiscard]] std::string FormatLockData(const LockData& data);

/// Accepts exactly what FormatLockData writes. Other data belongs to another program and is left
/// alone. `text` may be any bytes.
[[nodiscard]] std::optional<LockData> ParseLockData(std::string_view text);

}  // namespace zklock::protocol
