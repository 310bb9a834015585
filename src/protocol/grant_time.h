#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "protocol/contender_name.h"
#include "protocol/release_record.h"

namespace zklock::protocol {

/// When a holder was given the lock, by the servers' clock, in ms since 1970. A grant writes
/// nothing: it is told from what others have left.
struct GrantTime {
  std::int64_t since_ms = 0;
  bool exact = true;  ///< false: it cannot have been earlier
  friend bool operator==(const GrantTime&, const GrantTime&) = default;
};

/// The last release under the LOCK: its data, and when that was written.
struct LastRelease {
  ReleaseRecord record;
  std::int64_t written_ms = 0;
};

/// A holder that stands just before another one in the queue.
struct HolderBefore {
  std::int64_t number = 0;
  GrantTime granted;
};

/// When `holder` got the lock. Known where nobody can have been before it (the LOCK's first), where
/// the one with the number before it let go last and had kept everybody out, and for a reader that
/// follows a reader whose time is known. Else the earliest that it can have been.
[[nodiscard]] GrantTime GrantTimeOf(const ContenderName& holder, std::int64_t created_ms,
                                    const std::optional<LastRelease>& last,
                                    const std::optional<HolderBefore>& before);

/// When a permit was granted. Exact for the first ones, which were created while there were fewer
/// than `limit`; for others, the earliest possible time.
[[nodiscard]] GrantTime PermitTimeOf(const ContenderName& permit, std::int64_t created_ms,
                                     const std::optional<std::size_t>& limit);

}  // namespace zklock::protocol
